//! Requires a `//!` first in every Rust file: one sentence that says what the file decides or owns.

use anyhow::Result;

use super::{House, Violation};

/// Fewer characters than this say nothing.
const SHORTEST: usize = 16;

pub(super) fn check(house: &House) -> Result<Vec<Violation>> {
    let violation = |path: &str, text: &str| {
        let first = text.lines().next().unwrap_or_default();
        match first.strip_prefix("//! ") {
            Some(words) if words.trim().len() >= SHORTEST => None,
            Some(words) => Some(Violation::new(path, format!("its first line says too little: `{words}`"))),
            None => Some(Violation::new(path, "does not open with `//! ` and what it decides or owns")),
        }
    };
    Ok(house.rust().filter_map(|file| violation(&file.path, &file.text)).collect())
}

#[cfg(test)]
mod tests {
    use super::super::tests::of;
    use super::*;

    #[test]
    fn a_file_that_opens_with_its_imports_is_found() {
        assert_eq!(check(&of("kwab/src/x.rs", "use std::fmt;\n//! late\n")).unwrap().len(), 1);
        assert_eq!(check(&of("kwab/src/x.rs", "//! Things.\n")).unwrap().len(), 1);
        assert!(check(&of("kwab/src/x.rs", "//! Decides which line is an event.\n")).unwrap().is_empty());
    }
}
