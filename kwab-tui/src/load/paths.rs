//! Completes paths that are typed, as a shell does.

use std::path::{Path, PathBuf};

/// Names of a directory that are looked at.
const MOST_NAMES: usize = 20_000;
/// Names that are shown when several fit.
const SHOWN: usize = 6;

/// What all paths that begin with `input` have in common, and their names when there are several.
pub(super) fn complete(input: &str) -> (String, String) {
    let (folder, front) = match input.rfind('/') {
        Some(at) => (&input[..=at], &input[at + 1..]),
        None => ("", input),
    };
    let looked_at = if folder.is_empty() { PathBuf::from(".") } else { with_home(folder) };
    let names = std::fs::read_dir(looked_at).into_iter().flatten().flatten().take(MOST_NAMES).filter_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        let is_meant = name.starts_with(front) && (front.starts_with('.') || !name.starts_with('.'));
        // What cannot be shown as it is cannot be typed either.
        let is_plain = !name.chars().any(kwab::plain::is_hostile);
        let end = if entry.path().is_dir() { "/" } else { "" };
        (is_meant && is_plain).then(|| format!("{name}{end}"))
    });
    let mut names: Vec<String> = names.collect();
    names.sort_unstable();
    match names.as_slice() {
        [] => (input.to_string(), "nothing begins so".to_string()),
        [only] => (format!("{folder}{only}"), String::new()),
        [first, .., last] => {
            // Of sorted names the first and the last differ most.
            let same = first.chars().zip(last.chars()).take_while(|(a, b)| a == b);
            let common: usize = same.map(|(letter, _)| letter.len_utf8()).sum();
            let more = names.len().saturating_sub(SHOWN);
            let shown = names.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join("  ");
            let others = if more > 0 { format!("{shown}  and {more} more") } else { shown };
            (format!("{folder}{}", &first[..common]), others)
        }
    }
}

/// The path that was typed, if something is there.
pub(super) fn locate(input: &str) -> Result<PathBuf, String> {
    let path = with_home(input.trim());
    let meta = std::fs::metadata(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    if meta.is_file() || meta.is_dir() {
        Ok(path)
    } else {
        Err(format!("{}: neither a file nor a directory", path.display()))
    }
}

/// `~/x` below the user's directory.
fn with_home(input: &str) -> PathBuf {
    match (input.strip_prefix("~/"), std::env::var_os("HOME")) {
        (Some(rest), Some(home)) => Path::new(&home).join(rest),
        _ => PathBuf::from(input),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_completed_to_what_all_that_fits_has_in_common() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| format!("{}/{name}", folder.path().display());
        for name in ["vmlinux-6.1", "vmlinux-6.12", "initramfs.cpio", ".hidden", "bad\u{1b}[31m"] {
            std::fs::write(at(name), "").unwrap();
        }
        std::fs::create_dir(at("target")).unwrap();
        assert_eq!(complete(&at("vm")), (at("vmlinux-6.1"), "vmlinux-6.1  vmlinux-6.12".to_string()));
        assert_eq!(complete(&at("t")), (at("target/"), String::new()));
        assert_eq!(complete(&at("x")), (at("x"), "nothing begins so".to_string()));
        assert_eq!(complete(&at(".h")), (at(".hidden"), String::new()));
        assert_eq!(complete(&at("")).1, "initramfs.cpio  target/  vmlinux-6.1  vmlinux-6.12");
        assert_eq!(locate(&at("vmlinux-6.1")).unwrap(), Path::new(&at("vmlinux-6.1")));
        assert!(locate(&at("vm")).unwrap_err().contains("o such file"));
    }
}
