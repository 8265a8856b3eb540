//! Wants handlers of system calls to ask for their arguments by type: no raw register is cast or masked where it is
//! used.

use anyhow::Result;

use super::{House, Violation};

/// Where handlers are.
const HANDLERS: &str = "kernel/src/syscalls/";

pub(super) fn check(house: &House) -> Result<Vec<Violation>> {
    let handlers = house.files.iter().filter(|file| file.path.starts_with(HANDLERS) && file.path.ends_with(".rs"));
    let lines = handlers.flat_map(|file| file.text.lines().enumerate().map(move |(index, line)| (file, index, line)));
    let casts = lines.filter(|(_, _, line)| casts_a_register(line));
    Ok(casts
        .map(|(file, index, _)| {
            let location = format!("{}:{}", file.path, index + 1);
            Violation::new(location, "a raw argument is cast; `Call` has a method for each type of the interface")
        })
        .collect())
}

/// Whether what follows an `.arg(…)` is a cast or the mask of an `int`.
fn casts_a_register(line: &str) -> bool {
    line.match_indices(".arg(").any(|(at, _)| {
        let rest = line.get(at..).unwrap_or_default().split_once(')').map_or("", |(_, rest)| rest);
        rest.starts_with(" as ") || rest.starts_with(" & 0xffff_ffff")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cast_and_a_mask_of_a_raw_argument_are_found() {
        assert!(casts_a_register("    let mode = call.arg(2) as u32;"));
        assert!(casts_a_register("    match call.arg(1) & 0xffff_ffff {"));
        assert!(!casts_a_register("    let (at, count) = (call.arg(0), call.uint(1) as usize);"));
        assert!(!casts_a_register("    let flags = call.arg(3) & abi::MAP_LOCKED;"));
    }
}
