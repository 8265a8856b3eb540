//! Keeps one machine's facts out of the repository: its own paths, the hosts of registries.
//!
//! The forbidden words are put together at compile time, so that this file does not contain what it looks for.

use anyhow::Result;

use super::{House, Violation};

/// What must not occur, and why.
const FORBIDDEN: &[(&str, &str)] = &[
    (concat!("/wo", "rk/"), "a path of one machine"),
    (concat!("/ho", "me/"), "a path of one machine"),
    (concat!("/root", "/."), "a path of one machine"),
    (concat!("deb.deb", "ian.org"), "a registry's host; apt knows its own"),
    (concat!("static.cra", "tes.io"), "a registry's host; cargo knows its own"),
    (concat!("index.cra", "tes.io"), "a registry's host; cargo knows its own"),
];

/// Data that others wrote, kept as it was.
const DATA: &[&str] = &["testing/data/", "Cargo.lock"];

pub(super) fn check(house: &House) -> Result<Vec<Violation>> {
    let mut violations = Vec::new();
    for file in house.files.iter().filter(|file| !DATA.iter().any(|data| file.path.starts_with(data))) {
        for (number, line) in file.text.lines().enumerate() {
            for (word, reason) in FORBIDDEN.iter().filter(|(word, _)| line.contains(word)) {
                let location = format!("{}:{}", file.path, number + 1);
                violations.push(Violation::new(location, format!("`{word}` is {reason}")));
            }
        }
    }
    Ok(violations)
}

#[cfg(test)]
mod tests {
    use super::super::tests::of;
    use super::*;

    #[test]
    fn a_path_of_this_machine_in_a_script_is_found() {
        let text = format!("#!/bin/sh\ncd {}w\n", FORBIDDEN[0].0);
        assert_eq!(check(&of(".ci/run", &text)).unwrap()[0].location, ".ci/run:2");
    }
}
