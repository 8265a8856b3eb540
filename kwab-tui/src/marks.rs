//! Keeps marks and notes of a dump in a file beside it, so that they are there tomorrow and for the next person.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::target::Target;

/// The longest file with marks that is read.
const MOST_BYTES: u64 = 16 << 20;

/// A marked row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark {
    /// What is marked.
    pub target: Target,
    /// The row as it looked.
    pub row: String,
    /// The user's note.
    pub note: String,
}

/// All marks of a dump.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Marks {
    /// The marks, in the order they were made.
    pub marks: Vec<Mark>,
}

#[derive(Serialize, Deserialize)]
struct Stored {
    #[serde(default)]
    mark: Vec<StoredMark>,
}

#[derive(Serialize, Deserialize)]
struct StoredMark {
    target: String,
    #[serde(default)]
    row: String,
    #[serde(default)]
    note: String,
}

impl Marks {
    /// The file that keeps the marks of a dump.
    #[must_use]
    pub fn path(dump: &Path) -> PathBuf {
        let mut name = dump.as_os_str().to_os_string();
        name.push(".marks");
        PathBuf::from(name)
    }

    /// The marks that were kept of a dump; `None` when there is no such file. Anything but a regular file of moderate
    /// length is refused: a FIFO would never end.
    #[must_use]
    pub fn beside(dump: &Path) -> Option<Result<Self, String>> {
        let path = Self::path(dump);
        let meta = std::fs::metadata(&path).ok()?;
        if !meta.is_file() || meta.len() > MOST_BYTES {
            return Some(Err(format!("not a regular file of at most {MOST_BYTES} bytes")));
        }
        Some(std::fs::read_to_string(&path).map_err(|error| error.to_string()).and_then(|text| Self::parse(&text)))
    }

    /// Reads what [`text`](Self::text) wrote.
    ///
    /// # Errors
    /// What is wrong with the file, in a line.
    pub fn parse(text: &str) -> Result<Self, String> {
        let stored: Stored = toml::from_str(text).map_err(|error| error.message().to_string())?;
        let marks = stored
            .mark
            .into_iter()
            .filter_map(|mark| Some(Mark { target: Target::parse(&mark.target)?, row: mark.row, note: mark.note }));
        Ok(Self { marks: marks.collect() })
    }

    /// The marks as a file.
    #[must_use]
    pub fn text(&self) -> String {
        let mark =
            |mark: &Mark| StoredMark { target: mark.target.name(), row: mark.row.clone(), note: mark.note.clone() };
        toml::to_string(&Stored { mark: self.marks.iter().map(mark).collect() }).unwrap_or_default()
    }

    /// The mark of a target.
    #[must_use]
    pub fn get(&self, target: &Target) -> Option<&Mark> {
        self.marks.iter().find(|mark| mark.target == *target)
    }

    /// Marks a target, or takes its mark away; says which.
    pub fn toggle(&mut self, target: Target, row: String) -> bool {
        let before = self.marks.len();
        self.marks.retain(|mark| mark.target != target);
        let fresh = self.marks.len() == before;
        if fresh {
            self.marks.push(Mark { target, row, note: String::new() });
        }
        fresh
    }

    /// Writes a note at a target, marking it.
    pub fn note(&mut self, target: Target, row: String, note: String) {
        match self.marks.iter_mut().find(|mark| mark.target == target) {
            Some(mark) => mark.note = note,
            None => self.marks.push(Mark { target, row, note }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::Slot;

    #[test]
    fn marks_and_notes_survive_their_file() {
        let mut marks = Marks::default();
        assert!(marks.toggle(Target::Bytes(0x51_c000), "00 00 \"quoted\"".to_string()));
        marks.note(Target::Row(Slot::Registers, 3), "rax".to_string(), "why\nzero?".to_string());
        assert_eq!(Marks::parse(&marks.text()).unwrap(), marks);
        assert!(!marks.toggle(Target::Bytes(0x51_c000), String::new()));
        assert_eq!(marks.marks.len(), 1);
        assert!(Marks::parse("mark = 7").is_err());
        assert_eq!(Marks::path(Path::new("a/b.kwab")), PathBuf::from("a/b.kwab.marks"));
    }
}
