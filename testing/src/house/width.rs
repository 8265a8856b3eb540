//! Finds lines of Rust and C that are longer than 120 characters; rustfmt leaves comments and string literals alone.

use anyhow::Result;

use super::{House, Violation};

/// The longest line, as in `rustfmt.toml`.
const LONGEST: usize = 120;

/// Text that others wrote, kept as it was.
const DATA: &str = "testing/data/";

pub(super) fn check(house: &House) -> Result<Vec<Violation>> {
    Ok(find(house))
}

fn find(house: &House) -> Vec<Violation> {
    let mut violations = Vec::new();
    let judged = |path: &str| [".rs", ".c", ".h"].iter().any(|end| path.ends_with(end)) && !path.starts_with(DATA);
    for file in house.files.iter().filter(|file| judged(&file.path)) {
        for (number, line) in file.text.lines().enumerate() {
            let width = line.chars().count();
            if width > LONGEST {
                let location = format!("{}:{}", file.path, number + 1);
                violations.push(Violation::new(location, format!("{width} characters, {LONGEST} are allowed")));
            }
        }
    }
    violations
}

#[cfg(test)]
mod tests {
    use super::super::tests::of;
    use super::*;

    #[test]
    fn a_line_over_the_limit_is_found_and_characters_are_counted() {
        let found = |line: &str| find(&of("kwab/src/x.rs", line)).len();
        assert_eq!(found(&format!("// {}", "x".repeat(118))), 1);
        assert_eq!(found(&format!("// {}", "x".repeat(117))), 0);
        assert_eq!(found(&format!("// {}", "→".repeat(117))), 0);
    }
}
