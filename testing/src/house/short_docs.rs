//! Finds docs of at most two words: they repeat the item's name, and say nothing about unit, range, owner or absence.
//!
//! A doc that only refers to where the contract stands is complete: a manual page (`personality(2)`), a link
//! (`` See [`find`] ``) or the name in C (`` `si_fd` ``).

use anyhow::Result;

use super::{House, Violation};

/// A doc of so many words, or fewer, is too short.
const MOST: usize = 2;

pub(super) fn check(house: &House) -> Result<Vec<Violation>> {
    Ok(find(house))
}

fn find(house: &House) -> Vec<Violation> {
    let mut violations = Vec::new();
    for file in house.rust() {
        let mut lines = file.text.lines().map(str::trim_start).enumerate().peekable();
        while let Some((number, line)) = lines.next() {
            let Some(first) = line.strip_prefix("///") else { continue };
            let mut doc = first.to_owned();
            while let Some((_, more)) = lines.next_if(|(_, line)| line.starts_with("///")) {
                doc.push_str(more.trim_start_matches("///"));
            }
            if is_too_short(&doc) {
                let location = format!("{}:{}", file.path, number + 1);
                violations.push(Violation::new(location, format!("`{}` repeats a name", doc.trim())));
            }
        }
    }
    violations
}

fn is_too_short(doc: &str) -> bool {
    let words: Vec<&str> = doc.split_whitespace().collect();
    let refers = words.iter().all(|word| *word == "See" || is_reference(word)) && words.last() != Some(&"See");
    words.len() <= MOST && !refers
}

/// Whether a word is code, a link, or a page of the manual.
fn is_reference(word: &str) -> bool {
    let word = word.trim_end_matches(['.', ',', ':']);
    let page = word.strip_suffix(')').and_then(|word| word.rsplit_once('('));
    word.contains('`') || page.is_some_and(|(_, section)| section.starts_with(|letter: char| letter.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::super::tests::of;
    use super::*;

    fn found(doc: &str) -> usize {
        find(&of("kwab/src/x.rs", &format!("//! Decides it.\n\nstruct S {{\n    {doc}\n    a: u8,\n}}\n"))).len()
    }

    #[test]
    fn a_doc_of_two_words_is_found() {
        assert_eq!(found("/// Flags."), 1);
        assert_eq!(found("/// The flags."), 1);
        assert_eq!(found("///"), 0, "nothing is said, and nothing claimed");
        assert_eq!(found("/// The flags of open(2)."), 0);
    }

    #[test]
    fn a_doc_on_several_lines_is_taken_together() {
        assert_eq!(found("/// The flags\n    /// of open(2)."), 0);
        assert_eq!(found("/// The\n    /// flags."), 1);
    }

    #[test]
    fn a_reference_is_a_contract() {
        assert_eq!(found("/// See [`find`]."), 0);
        assert_eq!(found("/// `si_fd`"), 0);
        assert_eq!(found("/// personality(2)"), 0);
        assert_eq!(found("/// Flags (all)"), 1);
    }
}
