//! Opens the files and directories that commands read: by path, or, in a process of `kwab mcp`, only below the folders
//! that were given to the server.
//!
//! The second way trusts no path. A folder is a descriptor that the server opened when it started; a name is resolved
//! below it by `openat2(2)` with `RESOLVE_BENEATH`, so that neither `..` nor a symbolic link nor a rename in between
//! leads out of it. What is opened is looked at before it is read: a FIFO, a socket or a device is refused unopened.

use std::fs::{File, Metadata};
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};
use std::sync::mpsc::RecvTimeoutError;
use std::sync::{Mutex, OnceLock};
use std::time::Duration;

use kwab::plain;
use rustix::fs::{Dir, Mode, OFlags, ResolveFlags, openat2};

use crate::failure::{about, say, shown, system};
use crate::paint::remark;

/// The folders that this process is confined to, once it is.
static ROOTS: OnceLock<Vec<Root>> = OnceLock::new();

/// A folder, and the name by which a user knows it.
#[derive(Debug)]
pub(crate) struct Root {
    name: PathBuf,
    folder: OwnedFd,
}

impl Root {
    /// The folder at a path.
    ///
    /// # Errors
    /// Those of the system, also when the path leads to something else.
    pub(crate) fn open(name: &Path, path: &Path) -> io::Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = rustix::fs::open(path, flags, Mode::empty())?;
        Ok(Self { name: name.to_path_buf(), folder })
    }

    /// Lets processes that are started from now on have the descriptor, and says its number.
    ///
    /// # Errors
    /// Those of the system.
    pub(crate) fn inherit(&self) -> io::Result<i32> {
        rustix::io::fcntl_setfd(&self.folder, rustix::io::FdFlags::empty())?;
        Ok(self.folder.as_raw_fd())
    }

    /// What a path of the user names below this folder.
    fn below<'p>(&self, path: &'p Path) -> Option<&'p Path> {
        let below = path.strip_prefix(&self.name).ok()?;
        Some(if below.as_os_str().is_empty() { Path::new(".") } else { below })
    }

    /// Finds a name without opening what it names; links are followed as far as they stay below the folder, with
    /// `NOFOLLOW` all but the last component.
    fn find(&self, below: &Path, last: OFlags) -> io::Result<File> {
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        let found = openat2(&self.folder, below, OFlags::PATH | OFlags::CLOEXEC | last, Mode::empty(), resolve);
        found.map(File::from).map_err(|error| match error {
            rustix::io::Errno::XDEV => io::Error::other("leads out of the folders of this server"),
            rustix::io::Errno::NOSYS => io::Error::other("cannot be confined here: Linux 5.6 has openat2"),
            error => error.into(),
        })
    }
}

/// Confines this process to these folders, once and for all.
pub(crate) fn confine(roots: Vec<Root>) {
    // A second call would be a defect; the first one holds.
    let _ = ROOTS.set(roots);
}

/// Whether this process reads below given folders only.
pub(crate) fn is_confined() -> bool {
    ROOTS.get().is_some()
}

/// Opens a file or a directory for reading.
///
/// # Errors
/// Those of the system; in a confined process also for what lies elsewhere and for what is neither.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    match ROOTS.get() {
        Some(roots) => read(&find(roots, path, OFlags::empty())?),
        None => open_patiently(path),
    }
}

/// How long a FIFO may be without its other end before that is said.
const ALONE: Duration = Duration::from_millis(500);

/// Opens a file; the system lets the first reader of a FIFO wait for a writer.
fn open_patiently(path: &Path) -> io::Result<File> {
    patiently(path, "writes", || File::open(path))
}

/// Opens one end of what may be a FIFO; while the system waits for a program that `does` the other end, a user hears
/// of it.
pub(crate) fn patiently(path: &Path, does: &str, open: impl FnOnce() -> io::Result<File>) -> io::Result<File> {
    if !std::fs::metadata(path).is_ok_and(|meta| meta.file_type().is_fifo()) {
        return open();
    }
    let (opened, waits) = std::sync::mpsc::channel::<()>();
    let said = format!("kwab: {}: a FIFO that no program {does}; waiting for one\n", plain::line(&shown(path)));
    let told = std::thread::spawn(move || {
        if waits.recv_timeout(ALONE) == Err(RecvTimeoutError::Timeout) {
            remark(&said);
        }
    });
    let file = open();
    drop(opened);
    // It ends at once; what it says stands before what comes of the file.
    let _ = told.join();
    file
}

/// Folders with images beside the dumps that were opened.
static BESIDE: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Opens a dump or a log; [`images_beside`] knows the images that lie beside it.
pub(crate) fn open_dump(path: &Path) -> io::Result<File> {
    if !is_confined()
        && let Ok(mut beside) = BESIDE.lock()
    {
        for images in kwab::pack::images_beside(path) {
            if !beside.contains(&images) {
                beside.push(images);
            }
        }
    }
    open(path)
}

/// The folders with images that lie beside the dumps that were opened.
pub(crate) fn images_beside() -> Vec<PathBuf> {
    BESIDE.lock().map(|beside| beside.clone()).unwrap_or_default()
}

/// Files that were read and that no argument names, or only by their directory.
static FOUND: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Remembers files that were read: [`found`] gives them to whatever writes an output.
pub(crate) fn were_read<'p>(paths: impl IntoIterator<Item = &'p Path>) {
    if let Ok(mut found) = FOUND.lock() {
        found.extend(paths.into_iter().map(Path::to_path_buf));
    }
}

/// The files that were read beside those that the command named as its inputs.
pub(crate) fn found() -> Vec<PathBuf> {
    FOUND.lock().map(|found| found.clone()).unwrap_or_default()
}

/// Whether a path names a directory that may be read.
pub(crate) fn is_dir(path: &Path) -> bool {
    match ROOTS.get() {
        Some(roots) => {
            find(roots, path, OFlags::empty()).and_then(|found| found.metadata()).is_ok_and(|meta| meta.is_dir())
        }
        None => path.is_dir(),
    }
}

/// The files below a directory in the order of their paths, when this process is confined; links are not followed.
pub(crate) fn confined_files(folder: &Path) -> Option<Vec<(PathBuf, Metadata)>> {
    let roots = ROOTS.get()?;
    let mut files = Vec::new();
    collect(roots, folder, &mut files);
    Some(files)
}

/// What cannot be looked into is left out and said; what is gone since its folder was read is not there.
fn collect(roots: &[Root], folder: &Path, files: &mut Vec<(PathBuf, Metadata)>) {
    let missed = |path: &Path, error: io::Error| {
        if error.kind() != io::ErrorKind::NotFound {
            say(&about(path, format!("not read: {}", system(&error))));
        }
    };
    let entries = match find(roots, folder, OFlags::empty()).and_then(|folder| names(&folder)) {
        Ok(entries) => entries,
        Err(error) => return missed(folder, error),
    };
    for name in entries {
        let path = folder.join(&name);
        match find(roots, &path, OFlags::NOFOLLOW).and_then(|found| found.metadata()) {
            Ok(meta) if meta.is_dir() => collect(roots, &path, files),
            Ok(meta) if meta.is_file() => files.push((path, meta)),
            Ok(_) => {}
            Err(error) => missed(&path, error),
        }
    }
}

/// The names in a directory, in order.
fn names(folder: &File) -> io::Result<Vec<PathBuf>> {
    use std::os::unix::ffi::OsStrExt as _;
    let mut names = Vec::new();
    for entry in Dir::new(read(folder)?)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if name != b"." && name != b".." {
            names.push(PathBuf::from(std::ffi::OsStr::from_bytes(name)));
        }
    }
    names.sort();
    Ok(names)
}

fn find(roots: &[Root], path: &Path, last: OFlags) -> io::Result<File> {
    let mut error = io::Error::other("lies outside of the folders of this server");
    for root in roots {
        let Some(below) = root.below(path) else { continue };
        match root.find(below, last) {
            Ok(found) => return Ok(found),
            Err(why) => error = why,
        }
    }
    Err(error)
}

/// Opens what was found for reading, by its descriptor: no name is resolved again.
fn read(found: &File) -> io::Result<File> {
    let meta = found.metadata()?;
    if !meta.is_file() && !meta.is_dir() {
        return Err(io::Error::other("is neither a regular file nor a directory; this server reads nothing else"));
    }
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    Ok(rustix::fs::open(format!("/proc/self/fd/{}", found.as_raw_fd()), flags, Mode::empty())?.into())
}
