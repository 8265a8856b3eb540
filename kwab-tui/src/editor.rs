//! Says how the user's editor opens a file at a line.
//!
//! The command is `VISUAL`, else `EDITOR`, else `vi`, taken apart into words as a shell does and run without one: a
//! name that a dump holds is never read as a command. The file is an absolute path, so that it is never an option.

use std::ffi::OsString;
use std::path::Path;

/// How an editor takes a line.
enum Form {
    /// `+LINE FILE`
    Plus,
    /// `FILE:LINE`
    Colon,
    /// `--goto FILE:LINE`
    Goto,
    /// It takes none.
    None,
}

/// Editors by the name of their program.
const FORMS: &[(&[&str], Form)] = &[
    (
        &[
            "vi",
            "vim",
            "nvim",
            "view",
            "vim.basic",
            "vim.tiny",
            "vis",
            "kak",
            "nano",
            "pico",
            "micro",
            "emacs",
            "emacsclient",
            "mg",
            "zile",
            "jed",
            "joe",
            "jmacs",
            "jstar",
            "ne",
            "mcedit",
            "nvi",
            "elvis",
        ],
        Form::Plus,
    ),
    (&["hx", "helix", "subl", "zed", "zeditor", "lapce"], Form::Colon),
    (&["code", "code-insiders", "codium", "vscodium", "cursor", "windsurf"], Form::Goto),
];

/// The words of the user's editor.
#[must_use]
pub fn of_user() -> String {
    let mut named = ["VISUAL", "EDITOR"].into_iter().filter_map(|name| std::env::var(name).ok());
    named.find(|words| !words.trim().is_empty()).unwrap_or_else(|| "vi".to_string())
}

/// The command that opens `path`, which is absolute, at `line`: the program and its arguments.
///
/// # Errors
/// What is wrong with the user's words, in a line.
pub fn command(words: &str, path: &Path, line: u32) -> Result<(String, Vec<OsString>), String> {
    let mut words = shlex::split(words).unwrap_or_default().into_iter();
    let program = words.next().filter(|program| !program.is_empty());
    let program = program.ok_or_else(|| "EDITOR cannot be taken apart into words".to_string())?;
    if !path.is_absolute() {
        return Err(format!("{} is not an absolute path", path.display()));
    }
    let name = Path::new(&program).file_name().unwrap_or_default().to_string_lossy().into_owned();
    let form = FORMS.iter().find(|(names, _)| names.contains(&name.as_str())).map_or(&Form::None, |(_, form)| form);
    let mut arguments: Vec<OsString> = words.map(OsString::from).collect();
    let file = path.as_os_str().to_os_string();
    let mut at_line = file.clone();
    at_line.push(format!(":{line}"));
    match form {
        Form::Plus => arguments.extend([format!("+{line}").into(), file]),
        Form::Colon => arguments.push(at_line),
        Form::Goto => arguments.extend(["--goto".into(), at_line]),
        Form::None => arguments.push(file),
    }
    Ok((program, arguments))
}

/// Takes `file:line` apart; `None` without a line.
#[must_use]
pub fn place_of(text: &str) -> Option<(String, u32)> {
    let mut rest = text.trim();
    let mut line = None;
    // `a.rs:12:5`: of two numbers the first is the line.
    while let Some((front, number)) = rest.rsplit_once(':') {
        let Ok(number) = number.parse::<u32>() else { break };
        (rest, line) = (front, Some(number));
    }
    let line = line.filter(|line| *line > 0)?;
    (!rest.is_empty()).then(|| (rest.to_string(), line))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(words: &str, path: &str) -> String {
        match command(words, Path::new(path), 12) {
            Ok((program, arguments)) => format!("{program} {arguments:?}"),
            Err(why) => why,
        }
    }

    #[test]
    fn each_editor_has_its_own_way_to_name_a_line() {
        for (words, expected) in [
            ("vi", r#"vi ["+12", "/s/a.c"]"#),
            ("/usr/bin/nano -w", r#"/usr/bin/nano ["-w", "+12", "/s/a.c"]"#),
            ("emacsclient -t -a ''", r#"emacsclient ["-t", "-a", "", "+12", "/s/a.c"]"#),
            ("code --wait", r#"code ["--wait", "--goto", "/s/a.c:12"]"#),
            ("hx", r#"hx ["/s/a.c:12"]"#),
            ("'/opt/my editor/ed' -x", r#"/opt/my editor/ed ["-x", "/s/a.c"]"#),
            ("'", "EDITOR cannot be taken apart into words"),
            ("", "EDITOR cannot be taken apart into words"),
        ] {
            assert_eq!(shown(words, "/s/a.c"), expected, "{words}");
        }
    }

    #[test]
    fn a_hostile_name_stays_one_argument_that_is_not_an_option() {
        assert_eq!(shown("vi", "/s/$(reboot); a 'b.c"), r#"vi ["+12", "/s/$(reboot); a 'b.c"]"#);
        assert_eq!(shown("vi", "-c!reboot"), "-c!reboot is not an absolute path");
    }

    #[test]
    fn a_place_is_a_file_and_a_line_perhaps_with_a_column() {
        assert_eq!(place_of("fs/inode.rs:120"), Some(("fs/inode.rs".to_string(), 120)));
        assert_eq!(place_of(" a:b.c:3:7 "), Some(("a:b.c".to_string(), 3)));
        for none in ["", "a.c", "a.c:0", ":3", "a.c:x", "a.c:99999999999"] {
            assert_eq!(place_of(none), None, "{none}");
        }
    }
}
