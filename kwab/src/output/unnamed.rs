//! Holds a file without a name and gives it one when it is complete.
//!
//! On Linux it is made with `O_TMPFILE` and named with `linkat(2)`; where a file system has no such files, it is made
//! under a temporary name that is removed at once, and copied when it gets its name. Either way the kernel frees the
//! bytes when the process ends before that.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use tempfile::NamedTempFile;

use super::signals::Held;
use super::{Replace, folder_of};

/// What temporary names begin with.
const PREFIX: &str = ".kwab-";
/// Permissions of a new file before the umask.
const MODE: u32 = 0o666;
/// Bytes copied between two looks at pending signals.
const CHUNK: u64 = 16 << 20;

/// A file without a name.
#[derive(Debug)]
pub struct Unnamed {
    file: File,
}

impl Unnamed {
    /// An empty file on the file system of `folder`, with the permissions that the umask leaves a new file.
    ///
    /// # Errors
    /// When it cannot be made there.
    pub fn in_folder(folder: &Path) -> io::Result<Self> {
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        match rustix::fs::open(folder, flags, Mode::from_raw_mode(MODE)) {
            Ok(file) => Ok(Self { file: File::from(file) }),
            // The ways in which kernels and file systems without O_TMPFILE say so (open(2)).
            Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::ISDIR | rustix::io::Errno::INVAL) => {
                let _held = Held::now();
                let (file, path) = temporary(folder)?.into_parts();
                path.close()?;
                Ok(Self { file })
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Names the file `path`. A name that is taken is an error, or with [`Replace::Force`] names this file from then
    /// on.
    ///
    /// # Errors
    /// `AlreadyExists`, or what the system says; the file is gone then, and what was at `path` is untouched.
    pub fn name(mut self, path: &Path, replace: Replace) -> io::Result<()> {
        match replace {
            Replace::Never => match self.link(path) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => self.copy(path, replace),
                other => other,
            },
            Replace::Force => {
                let held = Held::now();
                take_over(&self.file, path);
                let beside = free_name(path)?;
                if self.link(&beside).is_err() {
                    drop(held);
                    return self.copy(path, replace);
                }
                fs::rename(&beside, path).inspect_err(|_| {
                    // The rename has failed and is reported; the second name must not stay.
                    let _ = fs::remove_file(&beside);
                })
            }
        }
    }

    /// Copies the whole file into `out`.
    ///
    /// # Errors
    /// Those of either side.
    pub fn copy_to(&mut self, out: &mut dyn Write) -> io::Result<u64> {
        self.file.seek(SeekFrom::Start(0))?;
        io::copy(&mut self.file, out)
    }

    fn link(&self, path: &Path) -> io::Result<()> {
        let own = format!("/proc/self/fd/{}", self.file.as_raw_fd());
        Ok(rustix::fs::linkat(CWD, own, CWD, path, AtFlags::SYMLINK_FOLLOW)?)
    }

    /// Names a copy, where the file itself cannot be named.
    fn copy(&mut self, path: &Path, replace: Replace) -> io::Result<()> {
        let held = Held::now();
        let mut named = temporary(folder_of(path))?;
        self.file.seek(SeekFrom::Start(0))?;
        while io::copy(&mut Read::take(&mut self.file, CHUNK), &mut named)? > 0 {
            if held.is_pending() {
                return Err(io::ErrorKind::Interrupted.into());
            }
        }
        if replace == Replace::Force {
            take_over(named.as_file(), path);
        }
        let named = if replace == Replace::Force { named.persist(path) } else { named.persist_noclobber(path) };
        named.map(drop).map_err(|error| error.error)
    }
}

impl Read for Unnamed {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.file.read(bytes)
    }
}

impl Write for Unnamed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Seek for Unnamed {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file.seek(to)
    }
}

impl From<Unnamed> for File {
    fn from(unnamed: Unnamed) -> Self {
        unnamed.file
    }
}

/// Gives a file the permissions, and where that is allowed the owner, of the one that it replaces: what its owner kept
/// private stays private.
fn take_over(file: &File, replaced: &Path) {
    let Some(old) = fs::symlink_metadata(replaced).ok().filter(fs::Metadata::is_file) else { return };
    // Only root may give files away, and then the mode must not be wider for a moment than it is in the end.
    let _ = std::os::unix::fs::fchown(file, Some(old.uid()), Some(old.gid()));
    let _ = file.set_permissions(fs::Permissions::from_mode(old.mode() & 0o777));
}

/// A file with a temporary name.
fn temporary(folder: &Path) -> io::Result<NamedTempFile> {
    tempfile::Builder::new().prefix(PREFIX).permissions(fs::Permissions::from_mode(MODE)).tempfile_in(folder)
}

/// A temporary name beside `path` that is free.
fn free_name(path: &Path) -> io::Result<PathBuf> {
    let named =
        |name: &Path| if name.symlink_metadata().is_ok() { Err(io::ErrorKind::AlreadyExists.into()) } else { Ok(()) };
    let free = tempfile::Builder::new().prefix(PREFIX).make_in(folder_of(path), named)?;
    // Nothing was made there: only the name is wanted.
    free.into_temp_path().keep().map_err(|error| error.error)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(folder)
            .unwrap()
            .flatten()
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_has_no_name_until_it_gets_one_and_a_copy_is_as_good() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let unnamed = |text: &str| {
            let mut file = Unnamed::in_folder(folder.path()).unwrap();
            file.write_all(text.as_bytes()).unwrap();
            assert!(!names(folder.path()).iter().any(|name| name.starts_with(PREFIX)));
            file
        };
        unnamed("one").name(&at("a"), Replace::Never).unwrap();
        let refused = unnamed("two").name(&at("a"), Replace::Never).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read_to_string(at("a")).unwrap(), "one");
        unnamed("three").name(&at("a"), Replace::Force).unwrap();
        assert_eq!(fs::read_to_string(at("a")).unwrap(), "three");
        unnamed("four").copy(&at("b"), Replace::Never).unwrap();
        assert!(unnamed("five").copy(&at("b"), Replace::Never).is_err());
        unnamed("six").copy(&at("b"), Replace::Force).unwrap();
        assert_eq!(fs::read_to_string(at("b")).unwrap(), "six");
        assert_eq!(names(folder.path()), ["a", "b"]);
        assert_eq!(fs::metadata(at("a")).unwrap().permissions(), fs::metadata(at("b")).unwrap().permissions());
        // What was private stays private.
        for name in ["a", "b"] {
            fs::set_permissions(at(name), fs::Permissions::from_mode(0o400)).unwrap();
        }
        unnamed("seven").name(&at("a"), Replace::Force).unwrap();
        unnamed("eight").copy(&at("b"), Replace::Force).unwrap();
        for (name, text) in [("a", "seven"), ("b", "eight")] {
            assert_eq!(fs::metadata(at(name)).unwrap().mode() & 0o777, 0o400, "{name}");
            assert_eq!(fs::read_to_string(at(name)).unwrap(), text);
        }
    }

    #[test]
    fn a_private_file_stays_private_when_it_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("dump");
        for mode in [0o400, 0o600, 0o640] {
            let _ = fs::remove_file(&path);
            fs::write(&path, "old").unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            let mut file = Unnamed::in_folder(folder.path()).unwrap();
            file.write_all(b"new").unwrap();
            file.name(&path, Replace::Force).unwrap();
            assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, mode);
            let mut copied = Unnamed::in_folder(folder.path()).unwrap();
            copied.copy(&path, Replace::Force).unwrap();
            assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, mode, "by a copy");
        }
    }
}
