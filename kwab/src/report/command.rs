//! Names of dumps in commands that a report tells the user to run.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::path::Path;

use crate::plain;

/// Dump `number`, from 1, of the file at `path` as the arguments of a `kwab` command, quoted for a POSIX shell where
/// that is needed; the first dump of a file needs no number.
#[must_use]
pub fn arguments(path: &Path, number: usize) -> String {
    let shown = path.display().to_string();
    // A name with a NUL is the name of no file.
    let quoted = shlex::try_quote(&shown).unwrap_or(Cow::Borrowed(&shown));
    let file = if quoted.starts_with('-') && quoted.len() > 1 { format!("./{quoted}") } else { quoted.into_owned() };
    if number < 2 { file } else { format!("{file} --dump {number}") }
}

/// A word of a command line for a shell of POSIX.1-2024 to read back. Characters that hide in a text or steer a
/// terminal are spelled as bytes, in `$'…'`.
#[must_use]
pub fn word(text: &str) -> String {
    if !text.contains(plain::is_hostile) {
        return shlex::try_quote(text).unwrap_or(Cow::Borrowed(text)).into_owned();
    }
    let mut out = String::from("$'");
    for character in text.chars() {
        match character {
            '\'' | '\\' => out.extend(['\\', character]),
            _ if plain::is_hostile(character) => {
                for byte in character.encode_utf8(&mut [0; 4]).bytes() {
                    // Octal, of which a shell takes three digits at most.
                    let _ = write!(out, "\\{byte:03o}");
                }
            }
            _ => out.push(character),
        }
    }
    out + "'"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_reads_back_the_name() {
        for (name, number, command) in [
            ("crash.kwab", 1, "crash.kwab"),
            ("crashes/a-b_2.kwab", 3, "crashes/a-b_2.kwab --dump 3"),
            ("my crash.kwab", 1, "'my crash.kwab'"),
            ("it's;rm.kwab", 1, "\"it's;rm.kwab\""),
            ("-rf", 1, "./-rf"),
            ("-", 1, "-"),
        ] {
            let said = arguments(Path::new(name), number);
            assert_eq!(said, command);
            let words = shlex::split(&said).expect("words of a shell");
            assert_eq!(words[0].trim_start_matches("./"), name);
        }
    }

    #[test]
    fn a_word_with_hidden_characters_is_spelled_out_and_read_back_by_a_shell() {
        for name in ["a\u{202e}b\u{1b}[31m7\n.kwab", "it's \\ \u{7}1", "plain", "two words"] {
            let said = word(name);
            assert!(!said.contains(plain::is_hostile), "{said:?}");
            let shell = std::process::Command::new("bash").arg("-c").arg(format!("printf %s {said}")).output();
            assert_eq!(String::from_utf8(shell.expect("bash runs").stdout).expect("UTF-8"), name, "{said}");
        }
    }
}
