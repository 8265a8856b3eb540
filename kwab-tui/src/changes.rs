//! Watches directories for dumps and logs that come, change and go (inotify on Linux).
//!
//! A thread blocks until the kernel tells something, so that an interface in which nothing happens takes no processor
//! time. Where changes cannot be watched, the directories are looked at from time to time (`app::pace`).

use std::path::{Path, PathBuf};
use std::sync::mpsc::Sender;

/// Whether changes of directories are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Watched {
    /// Those of all, and all were watched before.
    All,
    /// Those of all from now on: what has changed before is not told.
    FromNow,
    /// Not those of all.
    InPart,
}

/// Directories that are watched at most.
pub(crate) const MOST_WATCHED: usize = 2_048;

#[cfg(target_os = "linux")]
mod linux {
    use std::collections::HashSet;
    use std::ffi::OsString;
    use std::mem::MaybeUninit;
    use std::os::fd::OwnedFd;
    use std::os::unix::ffi::OsStrExt as _;
    use std::sync::{Arc, Mutex, PoisonError};
    use std::time::Duration;

    use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
    use rustix::io::Errno;

    use super::{MOST_WATCHED, Path, PathBuf, Sender, Watched};

    /// What is watched for.
    const WATCHED: WatchFlags = WatchFlags::CREATE
        .union(WatchFlags::DELETE)
        .union(WatchFlags::MOVE)
        .union(WatchFlags::MODIFY)
        .union(WatchFlags::ATTRIB)
        .union(WatchFlags::CLOSE_WRITE)
        .union(WatchFlags::DELETE_SELF)
        .union(WatchFlags::MOVE_SELF)
        .union(WatchFlags::ONLYDIR);
    /// What happens within this time after a change is told with it.
    const TOGETHER: Duration = Duration::from_millis(200);

    /// The watched directories.
    pub(crate) struct Changes {
        kernel: Option<Arc<OwnedFd>>,
        /// Numbers of the watches.
        known: Arc<Mutex<HashSet<i32>>>,
        /// Directories of the files that were named.
        folders: Vec<PathBuf>,
    }

    impl Changes {
        /// Sends `change()` when a dump, a log, a directory or one of the files `paths` changes in a watched directory.
        pub(crate) fn start<M: Send + 'static>(paths: &[PathBuf], send: Sender<M>, change: fn() -> M) -> Self {
            let files: Vec<&PathBuf> = paths.iter().filter(|path| !path.is_dir()).collect();
            let folder = |file: &&PathBuf| {
                let folder = file.parent().unwrap_or(Path::new("."));
                if folder.as_os_str().is_empty() { PathBuf::from(".") } else { folder.to_path_buf() }
            };
            let folders = files.iter().map(folder).collect();
            let named = files.iter().filter_map(|file| file.file_name()).map(OsString::from).collect();
            let known: Arc<Mutex<HashSet<i32>>> = Arc::default();
            let kernel = inotify::init(CreateFlags::CLOEXEC).ok().map(Arc::new);
            let kernel = kernel.filter(|kernel| {
                let (kernel, known) = (Arc::clone(kernel), Arc::clone(&known));
                let listen = move || listen(&kernel, &known, &named, || send.send(change()).is_ok());
                std::thread::Builder::new().name("changes".to_string()).spawn(listen).is_ok()
            });
            Self { kernel, known, folders }
        }

        /// Watches these directories too.
        pub(crate) fn watch(&self, folders: &[PathBuf]) -> Watched {
            let Some(kernel) = self.kernel.as_ref().filter(|_| folders.len() <= MOST_WATCHED) else {
                return Watched::InPart;
            };
            let mut watched = Watched::All;
            for folder in self.folders.iter().chain(folders) {
                let number = match inotify::add_watch(&**kernel, folder, WATCHED) {
                    Ok(number) => number,
                    // It cannot be read or is gone, which the directory above it tells.
                    Err(Errno::ACCESS | Errno::NOENT | Errno::NOTDIR) => continue,
                    Err(_) => return Watched::InPart,
                };
                if self.known.lock().unwrap_or_else(PoisonError::into_inner).insert(number) {
                    watched = Watched::FromNow;
                }
            }
            watched
        }
    }

    fn listen(kernel: &OwnedFd, known: &Mutex<HashSet<i32>>, named: &HashSet<OsString>, tell: impl Fn() -> bool) {
        let mut buffer = [MaybeUninit::uninit(); 8192];
        let mut reader = Reader::new(kernel, &mut buffer);
        let mut matters = false;
        loop {
            let Ok(event) = reader.next() else { return };
            if event.events().contains(ReadFlags::IGNORED) {
                known.lock().unwrap_or_else(PoisonError::into_inner).remove(&event.wd());
            }
            // Without a name it is the directory itself, or more than the kernel has kept.
            matters |= event.file_name().is_none_or(|name| {
                let name = std::ffi::OsStr::from_bytes(name.to_bytes());
                let end = Path::new(name).extension();
                let is_meant = end.is_some_and(|end| end == "kwab" || end == "log") || named.contains(name);
                is_meant || event.events().contains(ReadFlags::ISDIR)
            });
            if reader.is_buffer_empty() {
                if std::mem::take(&mut matters) && !tell() {
                    return;
                }
                // A file that is being written tells each piece of it.
                std::thread::sleep(TOGETHER);
            }
        }
    }
}

#[cfg(target_os = "linux")]
pub(crate) use linux::Changes;

/// Systems without inotify: every directory is looked at from time to time.
#[cfg(not(target_os = "linux"))]
pub(crate) struct Changes;

#[cfg(not(target_os = "linux"))]
impl Changes {
    pub(crate) fn start<M>(_: &[PathBuf], _: Sender<M>, _: fn() -> M) -> Self {
        Self
    }

    pub(crate) fn watch(&self, _: &[PathBuf]) -> Watched {
        Watched::InPart
    }
}
