//! Shows the text of source lines when the source files are there.
//!
//! Compilers record paths of the machine they ran on, so a path is also tried below the given roots, losing its leading
//! components one by one. Files are read once and kept; a file larger than `MAX_SOURCE_BYTES` is left alone.

use std::collections::HashMap;
use std::fs;
use std::path::{Component, Path, PathBuf};

/// The longest source file that is read.
const MAX_SOURCE_BYTES: u64 = 8 << 20;

/// Source files, found and cached.
#[derive(Debug, Default)]
pub struct SourceLines {
    roots: Vec<PathBuf>,
    files: HashMap<String, Option<Vec<String>>>,
}

impl SourceLines {
    /// Looks below these directories besides the recorded paths.
    #[must_use]
    pub fn new(roots: Vec<PathBuf>) -> Self {
        Self { roots, files: HashMap::new() }
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

    fn find(&self, file: &str) -> Option<PathBuf> {
        let recorded = Path::new(file);
        if recorded.is_absolute() && recorded.is_file() {
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
    if fs::metadata(path).ok()?.len() > MAX_SOURCE_BYTES {
        return None;
    }
    let bytes = fs::read(path).ok()?;
    Some(String::from_utf8_lossy(&bytes).lines().map(str::to_owned).collect())
}
