//! Finds words that hide who acts: comments, messages and documents name the actor instead ("the holder", "another
//! user").
//!
//! Rust, C, scripts and Markdown are searched line by line, whatever the line is. A name that contains such a word
//! (`become_nobody`) and a constant in capitals are not words. The user nobody, id 65534, may be named where the line
//! says that it is one: after "user", or beside the number. What Linux prints is quoted as it prints it.

use anyhow::Result;

use super::{House, Violation};

/// The words, in parts, so that this file does not contain what it looks for.
const WORDS: &[&str] =
    &[concat!("who", "ever"), USER, concat!("some", "body"), concat!("any", "body"), concat!("an", "ew")];
/// A word that is also the name of a user.
const USER: &str = concat!("no", "body");
/// What Linux prints of an interrupt that no driver took; the importer's table has to match it.
const PRINTED_BY_LINUX: &str = concat!(": no", "body cared");
/// The id of that user.
const USER_ID: &str = "65534";
/// "The file is not an archive" needs no decoding; what is written with these two words does.
const NEGATED: &str = concat!("is", " no ");

/// Ends of the names of files that are searched.
const KINDS: &[&str] = &[".rs", ".c", ".h", ".s", ".md", ".sh", ".py"];
/// Text that is kept as others, or the tools themselves, wrote it, and the history.
const QUOTED: &[&str] = &["testing/data/", "testing/dumps/", "testing/RESULTS.md", "CHANGELOG.md"];
/// Bounds of the part of README.md that a command renders.
const RENDERED: [&str; 2] = ["<!-- exam: rendered", "<!-- end of exam"];

pub(super) fn check(house: &House) -> Result<Vec<Violation>> {
    Ok(find(house))
}

fn find(house: &House) -> Vec<Violation> {
    let mut violations = Vec::new();
    for file in house.files.iter().filter(|file| is_ours(&file.path)) {
        let mut rendered = false;
        for (number, line) in file.text.lines().enumerate() {
            rendered = (rendered || line.starts_with(RENDERED[0])) && !line.starts_with(RENDERED[1]);
            if rendered {
                continue;
            }
            let location = || format!("{}:{}", file.path, number + 1);
            let found = WORDS.iter().filter(|word| has_word(line, word));
            violations.extend(found.map(|word| Violation::new(location(), format!("`{word}`: name the actor"))));
            if is_negated(line) {
                violations.push(Violation::new(location(), format!("`{}`: write `is not a`", NEGATED.trim())));
            }
        }
    }
    violations
}

fn is_ours(path: &str) -> bool {
    KINDS.iter().any(|end| path.ends_with(end)) && !QUOTED.iter().any(|quoted| path.starts_with(quoted))
}

/// Whether the word stands in the line by itself, in small letters or with a capital first.
fn has_word(line: &str, word: &str) -> bool {
    let line = &line.replace(PRINTED_BY_LINUX, "");
    let (first, rest) = word.split_at(1);
    let matches = |found: &&str| *found == word || (found.starts_with(&first.to_uppercase()) && found[1..] == *rest);
    let is_user = |at: usize| {
        let before = line[..at].trim_end_matches(['`', '"', ' ']);
        word == USER && (line.contains(USER_ID) || before.ends_with("user"))
    };
    let name = |letter: char| letter.is_alphanumeric() || letter == '_';
    let start = |part: &str| part.as_ptr() as usize - line.as_ptr() as usize;
    line.split(|letter| !name(letter)).filter(matches).any(|part| !is_user(start(part)))
}

/// Whether something "is no" thing: "there is no" and "is no longer" are plain.
fn is_negated(line: &str) -> bool {
    line.match_indices(NEGATED).any(|(at, _)| {
        let before = line[..at].trim_end().rsplit(|letter: char| !letter.is_alphanumeric()).next().unwrap_or_default();
        let word_starts = line[..at].chars().next_back().is_none_or(|letter| !letter.is_alphanumeric());
        let after = &line[at + NEGATED.len()..];
        let plain = ["longer", "more", "less", "need", "other"].iter().any(|word| after.starts_with(word));
        word_starts && !before.eq_ignore_ascii_case("there") && !plain
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::of;
    use super::*;

    fn found(path: &str, line: &str) -> usize {
        find(&of(path, line)).len()
    }

    #[test]
    fn a_word_without_an_actor_is_found_in_comments_texts_and_documents() {
        for word in WORDS {
            assert_eq!(found("kwab/src/x.rs", &format!("// {word} waits")), 1);
            assert_eq!(found("testing/contracts/x/y.c", &format!("    section(\"{word} else\");")), 1);
            assert_eq!(found("kwab/README.md", &format!("- {}{} waits", word[..1].to_uppercase(), &word[1..])), 1);
        }
    }

    #[test]
    fn names_capitals_and_longer_words_are_no_words() {
        let text = format!("become_{USER}(); {}; {USER}_else();", USER.to_uppercase());
        assert_eq!(found("testing/contracts/x/y.c", &text), 0);
        assert_eq!(found("kwab/src/x.rs", "// a sinewy renewal"), 0);
    }

    #[test]
    fn the_user_of_that_name_may_be_named() {
        assert_eq!(found("testing/contracts/README.md", &format!("the user {USER} owns it")), 0);
        assert_eq!(found("testing/contracts/README.md", &format!("{USER} (uid 65534) owns it")), 0);
        assert_eq!(found("testing/contracts/README.md", &format!("the user waits, {USER} owns it")), 1);
    }

    #[test]
    fn what_linux_prints_is_quoted_and_nothing_else_of_the_line() {
        let line = format!("row(\"irq{PRINTED_BY_LINUX}\"),");
        assert_eq!(found("kwab/src/x.rs", &line), 0);
        assert_eq!(found("kwab/src/x.rs", &format!("{line} // {USER} waits")), 1);
    }

    #[test]
    fn a_thing_that_is_said_to_be_none_is_found() {
        assert_eq!(found("kwab/src/x.rs", &format!("// it {NEGATED}log")), 1);
        assert_eq!(found("kwab/src/x.rs", &format!("// there {NEGATED}log, and it {NEGATED}longer waits")), 0);
        assert_eq!(found("kwab/src/x.rs", &format!("// all of it (there {NEGATED}log)")), 0);
    }

    #[test]
    fn quoted_and_rendered_text_is_not_judged() {
        assert_eq!(found("CHANGELOG.md", WORDS[0]), 0);
        let page = format!("{}\n{}\n{} -->\n{}\n", RENDERED[0], WORDS[0], RENDERED[1], WORDS[0]);
        assert_eq!(found("README.md", &page), 1);
    }
}
