//! Names one dump of a file: its path, with `#N` behind it for the N-th of a file that holds several.
//!
//! Marks, links and the list of dumps name a dump by such a path; only what opens the file takes it apart ([`split`]).

use std::path::{Path, PathBuf};

use kwab::report::command;

/// The name of dump `number`, from 1, of a file that holds `dumps`.
#[must_use]
pub fn named(file: &Path, number: usize, dumps: usize) -> PathBuf {
    if dumps < 2 {
        return file.to_path_buf();
    }
    let mut name = file.as_os_str().to_os_string();
    name.push(format!("#{number}"));
    PathBuf::from(name)
}

/// The file and the number of the dump that a name means; a file of that very name wins.
#[must_use]
pub fn split(name: &Path) -> (PathBuf, usize) {
    let whole = || (name.to_path_buf(), 1);
    if name.exists() {
        return whole();
    }
    let Some((file, number)) = name.to_str().and_then(|text| text.rsplit_once('#')) else { return whole() };
    match number.parse() {
        Ok(number) if number > 0 => (PathBuf::from(file), number),
        _ => whole(),
    }
}

/// The name as commands of `kwab` take it: `FILE --dump N`.
#[must_use]
pub fn in_commands(name: &Path) -> String {
    match split(name) {
        (file, number) if file != name => format!("{} --dump {number}", command::arguments(&file, 1)),
        _ => command::arguments(name, 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_taken_apart_into_file_and_number_unless_a_file_has_that_name() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("two.kwab");
        assert_eq!(named(&file, 1, 1), file);
        let second = named(&file, 2, 2);
        assert_eq!(split(&second), (file.clone(), 2));
        assert_eq!(in_commands(&second), format!("{} --dump 2", file.display()));
        assert_eq!(split(&file), (file.clone(), 1));
        assert_eq!(split(&named(&file, 0, 2)).1, 1, "dumps are counted from 1");
        std::fs::write(&second, "x").unwrap();
        assert_eq!(split(&second), (second.clone(), 1));
    }
}
