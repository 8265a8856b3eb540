//! Finds unsafe code outside of the rooms where it is allowed, by tokens: comments and strings do not count, macros and
//! attributes do. The kernel has one room, `kernel/machine`; the examples, which no product contains, have theirs.

use std::str::FromStr as _;

use anyhow::Result;
use proc_macro2::{TokenStream, TokenTree};

use super::{House, Violation};

/// The files and folders where `unsafe` is allowed, each with its reason.
const ROOMS: &[(&str, &str)] = &[
    ("kernel/machine/", "the kernel's machine: all of its assembly and unsafe code"),
    ("examples/boot/", "the first instructions of the example kernels"),
    ("examples/rust-kernel/src/machine.rs", "the machine of the example kernel in Rust, and the bug that it shows"),
    ("examples/c-library/src/", "functions and pointers of C, for kernels that are not in Rust"),
];

/// Sources of what tests read as data; nothing is built of them.
const DATA: &str = "testing/data/";

/// Attributes that give a symbol to the linker, which `forbid(unsafe_code)` refuses as well.
const EXPORTS: &[&str] = &["no_mangle", "export_name", "link_section", "global_asm", "naked"];

pub(super) fn check(house: &House) -> Result<Vec<Violation>> {
    let mut violations = Vec::new();
    let in_room = |path: &str| ROOMS.iter().any(|(room, _)| path.starts_with(room));
    for file in house.files.iter().filter(|file| !in_room(&file.path)) {
        let assembly = file.path.ends_with(".S") || file.path.ends_with(".s");
        if assembly && !file.path.starts_with(DATA) {
            violations.push(Violation::new(&file.path, "an assembly file outside its room"));
        }
        if !file.path.ends_with(".rs") {
            continue;
        }
        match TokenStream::from_str(&file.text) {
            Ok(tokens) => search(tokens, &file.path, &mut violations),
            Err(error) => violations.push(Violation::new(&file.path, format!("cannot be read as Rust: {error}"))),
        }
    }
    Ok(violations)
}

fn search(tokens: TokenStream, path: &str, violations: &mut Vec<Violation>) {
    for token in tokens {
        match token {
            TokenTree::Group(group) => search(group.stream(), path, violations),
            TokenTree::Ident(word) if word == "unsafe" || EXPORTS.iter().any(|export| word == export) => {
                let location = format!("{path}:{}", word.span().start().line);
                violations.push(Violation::new(location, format!("`{word}` outside its room")));
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::of;
    use super::*;

    fn lines(text: &str) -> Vec<String> {
        check(&of("kwab/src/x.rs", text)).unwrap().into_iter().map(|violation| violation.location).collect()
    }

    #[test]
    fn the_word_in_a_comment_a_string_or_a_longer_name_is_not_the_keyword() {
        assert!(lines("// unsafe\n#![forbid(unsafe_code)]\nconst A: &str = \"unsafe { }\"; /* unsafe */").is_empty());
    }

    #[test]
    fn the_keyword_inside_a_macro_is_found_with_its_line() {
        assert_eq!(lines("\nmacro_rules! m {\n () => { unsafe { f() } };\n}"), ["kwab/src/x.rs:3"]);
    }

    #[test]
    fn an_exported_symbol_is_found_too() {
        assert_eq!(lines("#[unsafe(no_mangle)] extern \"C\" fn f() {}").len(), 2);
    }

    #[test]
    fn the_room_itself_is_free() {
        assert!(check(&of("kernel/machine/src/x.rs", "unsafe fn f() {}")).unwrap().is_empty());
        assert_eq!(check(&of("examples/crash/src/lib.rs", "unsafe fn f() {}")).unwrap().len(), 1);
    }

    #[test]
    fn every_room_is_in_use() {
        let house = House::read().unwrap();
        let used = |room: &str| house.files.iter().any(|file| file.path.starts_with(room));
        assert!(ROOMS.iter().all(|(room, reason)| used(room) && !reason.is_empty()));
    }
}
