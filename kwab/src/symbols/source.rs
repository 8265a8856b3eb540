//! Shows the text of source lines when the source files are there.
//!
//! Compilers record paths of the machine they ran on, so a path is also tried below the given roots, losing its leading
//! components one by one. Of several files that fit a path, the one with the recorded checksum is taken; without a file
//! that has it, no text is shown, since it would be that of another version. Files are read once and kept; a file
//! larger than 8 MiB is left alone.

use std::collections::{BTreeSet, HashMap};
use std::path::{Component, Path, PathBuf};

use super::regular;
use super::version::{MAX_SOURCE_BYTES, Md5, SourceVersion};

/// Source files, found and cached.
#[derive(Debug, Default)]
pub struct SourceLines {
    roots: Vec<PathBuf>,
    /// Whether a recorded path counts only below one of the roots.
    only_below: bool,
    files: HashMap<(String, SourceVersion), Option<SourceText>>,
}

/// A source file that was read.
#[derive(Debug)]
struct SourceText {
    lines: Vec<String>,
    fit: SourceFit,
}

/// How a file fits what an image says of its source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SourceFit {
    /// Nothing speaks against it.
    Fits,
    /// It was changed after the image was written: lines may have moved.
    Newer,
    /// Its checksum is not the recorded one.
    Other,
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

    /// The text of a line (from 1), without indentation; `None` when the file or the line is not there, or the file is
    /// of another version.
    pub fn line(&mut self, file: &str, line: u32, version: SourceVersion) -> Option<&str> {
        let key = (file.to_owned(), version);
        if !self.files.contains_key(&key) {
            let text = self.read(file, version);
            self.files.insert(key.clone(), text);
        }
        let text = self.files.get(&key)?.as_ref().filter(|text| text.fit != SourceFit::Other)?;
        let index = usize::try_from(line).ok()?.checked_sub(1)?;
        text.lines.get(index).map(|text| text.trim())
    }

    /// What does not fit of the files that were asked for, a sentence for each, by path.
    #[must_use]
    pub fn remarks(&self) -> Vec<String> {
        let files = self.files.iter().filter_map(|((file, _), text)| Some((file, text.as_ref()?.fit)));
        let said = files.filter_map(|(file, fit)| {
            let why = fit.words()?;
            Some(format!("{file} {why}"))
        });
        said.collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// Why the text of a file that was asked for is not shown, or may be of another version.
    #[must_use]
    pub fn doubt(&self, file: &str, version: SourceVersion) -> Option<&'static str> {
        self.files.get(&(file.to_owned(), version))?.as_ref()?.fit.words()
    }

    /// The file that a recorded path means, if it is there: a regular file at that path, else below a root.
    #[must_use]
    pub fn path(&self, file: &str) -> Option<PathBuf> {
        self.candidates(file).next()
    }

    fn read(&self, file: &str, version: SourceVersion) -> Option<SourceText> {
        let mut other = None;
        for path in self.candidates(file) {
            let Ok(bytes) = regular::read(&path, MAX_SOURCE_BYTES) else { continue };
            let fit = match version {
                SourceVersion::Unknown => SourceFit::Fits,
                SourceVersion::Md5(recorded) if Md5::of(&bytes) == recorded => SourceFit::Fits,
                SourceVersion::Md5(_) => SourceFit::Other,
                SourceVersion::Before(image) => {
                    let changed = path.metadata().and_then(|meta| meta.modified());
                    if changed.is_ok_and(|changed| changed > image) { SourceFit::Newer } else { SourceFit::Fits }
                }
            };
            let lines = || String::from_utf8_lossy(&bytes).lines().map(str::to_owned).collect();
            if fit != SourceFit::Other {
                return Some(SourceText { lines: lines(), fit });
            }
            other = Some(SourceText { lines: Vec::new(), fit });
        }
        other
    }

    /// The files that are there and may be meant by a recorded path, the likeliest first.
    fn candidates<'s>(&'s self, file: &'s str) -> impl Iterator<Item = PathBuf> + 's {
        let recorded = Path::new(file);
        let itself = (recorded.is_absolute() && !self.only_below).then(|| recorded.to_path_buf());
        let parts: Vec<Component<'_>> =
            recorded.components().filter(|part| matches!(part, Component::Normal(_))).collect();
        let below = self.roots.iter().flat_map(move |root| {
            let parts = parts.clone();
            (0..parts.len()).map(move |skip| root.join(parts[skip..].iter().collect::<PathBuf>()))
        });
        itself.into_iter().chain(below).filter(|path| path.is_file())
    }
}

impl SourceFit {
    /// What is to be said of a file that does not fit.
    const fn words(self) -> Option<&'static str> {
        match self {
            Self::Fits => None,
            Self::Newer => Some("was changed after the image was built: lines may have moved"),
            Self::Other => Some("is not of the version that the image was built from: its lines are not shown"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::{Duration, SystemTime};

    use super::*;

    const ANY: SourceVersion = SourceVersion::Unknown;

    #[test]
    fn a_recorded_path_outside_the_roots_is_read_only_where_that_is_allowed() {
        let folder = tempfile::tempdir().unwrap();
        let secret = folder.path().join("secret.c");
        fs::write(&secret, "first\n  second\n").unwrap();
        let root = folder.path().join("tree");
        fs::create_dir_all(root.join("lib")).unwrap();
        fs::write(root.join("lib/a.c"), "one\n").unwrap();
        let recorded = secret.to_str().unwrap();
        assert_eq!(SourceLines::new(vec![root.clone()]).line(recorded, 2, ANY), Some("second"));
        let mut below = SourceLines::below(vec![root]);
        assert_eq!(below.line(recorded, 2, ANY), None);
        assert_eq!(below.line("../secret.c", 2, ANY), None);
        assert_eq!(below.line("/build/x/lib/a.c", 1, ANY), Some("one"));
        assert_eq!(below.remarks(), Vec::<String>::new());
    }

    #[test]
    fn lines_of_another_version_are_not_shown_and_the_right_file_is_found_behind_a_wrong_one() {
        let folder = tempfile::tempdir().unwrap();
        let (old, new) = (folder.path().join("old"), folder.path().join("new"));
        fs::create_dir_all(&old).unwrap();
        fs::create_dir_all(&new).unwrap();
        fs::write(old.join("a.c"), "what ran\n").unwrap();
        fs::write(new.join("a.c"), "what is\n").unwrap();
        let ran = SourceVersion::Md5(Md5::of(b"what ran\n"));
        let mut sources = SourceLines::new(vec![new.clone()]);
        assert_eq!(sources.line("/build/a.c", 1, ran), None);
        assert!(sources.doubt("/build/a.c", ran).unwrap().contains("not shown"));
        assert_eq!(sources.remarks().len(), 1);
        let mut sources = SourceLines::new(vec![new, old]);
        assert_eq!(sources.line("/build/a.c", 1, ran), Some("what ran"));
        assert_eq!(sources.remarks(), Vec::<String>::new());
    }

    #[test]
    fn lines_that_are_newer_than_their_image_are_shown_with_a_remark() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("a.c"), "text\n").unwrap();
        let mut sources = SourceLines::new(vec![folder.path().to_path_buf()]);
        let (past, future) =
            (SystemTime::UNIX_EPOCH, SystemTime::now().checked_add(Duration::from_secs(3600)).unwrap());
        assert_eq!(sources.line("a.c", 1, SourceVersion::Before(future)), Some("text"));
        assert_eq!(sources.remarks(), Vec::<String>::new());
        assert_eq!(sources.line("a.c", 1, SourceVersion::Before(past)), Some("text"));
        assert!(sources.remarks()[0].contains("changed after"), "{:?}", sources.remarks());
    }
}
