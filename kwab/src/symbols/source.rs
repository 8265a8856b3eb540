//! Shows the text of source lines when the source files are there.
//!
//! Compilers record paths of the machine they ran on, so a path is also tried below the given roots, losing its leading
//! components one by one. Files are read once and kept; a file larger than `MAX_SOURCE_BYTES` is left alone.

use std::collections::HashMap;
use std::path::{Component, Path, PathBuf};

use super::regular;

/// The longest source file that is read.
const MAX_SOURCE_BYTES: u64 = 8 << 20;

/// Source files, found and cached.
#[derive(Debug, Default)]
pub struct SourceLines {
    roots: Vec<PathBuf>,
    /// Whether a recorded path counts only below one of the roots.
    only_below: bool,
    files: HashMap<String, Option<Vec<String>>>,
}

impl SourceLines {
    /// Looks below these directories besides the recorded paths.
    #[must_use]
    pub fn new(roots: Vec<PathBuf>) -> Self {
        Self { roots, ..Self::default() }
    }

    /// Looks below these directories only, whatever path an image records.
    #[must_use]
    pub fn below(roots: Vec<PathBuf>) -> Self {
        Self { roots, only_below: true, ..Self::default() }
    }

    /// The text of a line (from 1), without indentation; `None` when the file or the line is not there.
    pub fn line(&mut self, file: &str, line: u32) -> Option<&str> {
        if !self.files.contains_key(file) {
            let text = self.find(file).and_then(|path| read_lines(&path));
            self.files.insert(file.to_owned(), text);
        }
        let lines = self.files.get(file)?.as_ref()?;
        let index = usize::try_from(line).ok()?.checked_sub(1)?;
        lines.get(index).map(|text| text.trim())
    }

    /// The file that a recorded path means, if it is there: a regular file at that path, else below a root.
    #[must_use]
    pub fn path(&self, file: &str) -> Option<PathBuf> {
        self.find(file)
    }

    fn find(&self, file: &str) -> Option<PathBuf> {
        let recorded = Path::new(file);
        if recorded.is_absolute() && !self.only_below && recorded.is_file() {
            return Some(recorded.to_path_buf());
        }
        let parts: Vec<Component<'_>> =
            recorded.components().filter(|part| matches!(part, Component::Normal(_))).collect();
        self.roots.iter().find_map(|root| {
            (0..parts.len())
                .map(|skip| root.join(parts[skip..].iter().collect::<PathBuf>()))
                .find(|path| path.is_file())
        })
    }
}

fn read_lines(path: &Path) -> Option<Vec<String>> {
    let bytes = regular::read(path, MAX_SOURCE_BYTES).ok()?;
    Some(String::from_utf8_lossy(&bytes).lines().map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_recorded_path_outside_the_roots_is_read_only_where_that_is_allowed() {
        let folder = tempfile::tempdir().unwrap();
        let secret = folder.path().join("secret.c");
        fs::write(&secret, "first\n  second\n").unwrap();
        let root = folder.path().join("tree");
        fs::create_dir_all(root.join("lib")).unwrap();
        fs::write(root.join("lib/a.c"), "one\n").unwrap();
        let recorded = secret.to_str().unwrap();
        assert_eq!(SourceLines::new(vec![root.clone()]).line(recorded, 2), Some("second"));
        let mut below = SourceLines::below(vec![root]);
        assert_eq!(below.line(recorded, 2), None);
        assert_eq!(below.line("../secret.c", 2), None);
        assert_eq!(below.line("/build/x/lib/a.c", 1), Some("one"));
    }
}
