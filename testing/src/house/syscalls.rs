//! Requires the system call table in order: one row per number, rising, no name twice.

use anyhow::Result;

use super::{House, Violation};

const TABLE: &str = "kernel/abi/src/syscalls/table.rs";

pub(super) fn check(house: &House) -> Result<Vec<Violation>> {
    Ok(match house.text(TABLE) {
        Ok(text) => disorder(text),
        Err(violation) => vec![violation],
    })
}

/// Rows look like `39 getpid() -> Pid;`.
fn disorder(text: &str) -> Vec<Violation> {
    let mut violations = Vec::new();
    let mut last: Option<u64> = None;
    let mut names: Vec<&str> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let Some((number, rest)) = line.trim().split_once(' ') else { continue };
        let (Ok(number), Some((name, _))) = (number.parse::<u64>(), rest.split_once('(')) else { continue };
        let location = || format!("{TABLE}:{}", index + 1);
        if last.is_some_and(|last| number <= last) {
            violations.push(Violation::new(location(), format!("{number} {name} does not come after {last:?}")));
        }
        if names.contains(&name) {
            violations.push(Violation::new(location(), format!("{name} is listed twice")));
        }
        last = Some(number);
        names.push(name);
    }
    if names.len() < 300 {
        violations
            .push(Violation::new(TABLE, format!("only {} rows were recognised; Linux has over 350", names.len())));
    }
    violations
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_out_of_order_and_a_name_twice_are_found() {
        let found = disorder(
            "    0 read(fd: Fd) -> Size;\n    2 open() -> Fd;\n    1 write() -> Size;\n    3 read() -> Size;\n",
        );
        assert!(found.iter().any(|violation| violation.text.starts_with("1 write does not come after")));
        assert!(found.iter().any(|violation| violation.text == "read is listed twice"));
    }
}
