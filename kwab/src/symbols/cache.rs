//! Keeps index files in the user's cache directory, safe against other writers and against damage.
//!
//! A file is named after what it was made from and gets its name when it is complete, so a reader sees a
//! whole file or none, and the last of several writers wins with the same content. Anything that cannot be read or
//! written only costs the time to build the index again.

use std::fs::{self, File};
use std::path::PathBuf;

use super::index::Index;
use super::layout::VERSION;

/// Where index files are kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IndexCache {
    dir: Option<PathBuf>,
}

impl IndexCache {
    /// `$XDG_CACHE_HOME/kwab/symbols`, or below `$HOME/.cache`; no cache when neither is set.
    #[must_use]
    pub fn of_user() -> Self {
        let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let base = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")));
        Self { dir: base.map(|base| base.join("kwab").join("symbols")) }
    }

    /// A directory of the caller's choice.
    #[must_use]
    pub const fn in_dir(dir: PathBuf) -> Self {
        Self { dir: Some(dir) }
    }

    /// A cache that keeps nothing: every image is indexed when it is opened.
    #[must_use]
    pub const fn none() -> Self {
        Self { dir: None }
    }

    /// The directory, when there is one.
    #[must_use]
    pub fn folder(&self) -> Option<&std::path::Path> {
        self.dir.as_deref()
    }

    /// The index of this name, if there is a sound one.
    pub(super) fn load(&self, key: &str) -> Option<Index> {
        Index::open(File::open(self.path(key)?).ok()?).ok()
    }

    /// Puts an index under this name; whether that worked makes no difference to the caller but in speed.
    pub(super) fn store(&self, key: &str, bytes: &[u8]) -> bool {
        let Some(path) = self.path(key) else { return false };
        let Some(dir) = path.parent() else { return false };
        if fs::create_dir_all(dir).is_err() {
            return false;
        }
        crate::output::replace_own(&path, bytes).is_ok()
    }

    /// Forgets an index that turned out to be damaged.
    pub(super) fn remove(&self, key: &str) {
        if let Some(path) = self.path(key) {
            // A file that cannot be removed will be found damaged again and rebuilt again.
            let _ = fs::remove_file(path);
        }
    }

    fn path(&self, key: &str) -> Option<PathBuf> {
        Some(self.dir.as_ref()?.join(format!("{key}.v{VERSION}")))
    }
}
