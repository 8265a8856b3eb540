//! Names of dumps in commands that a report tells the user to run.

use std::borrow::Cow;
use std::path::Path;

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
}
