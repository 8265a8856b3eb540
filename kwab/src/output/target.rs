//! Looks at an output path: a regular file, a free name, standard output, a stream, or a refusal with its reason.

use std::ffi::OsStr;
use std::fs::{self, File, Metadata};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use rustix::io::Errno;

use super::folder_of;

/// Symbolic links followed before a path is taken for a loop, as Linux does (`MAXSYMLINKS`).
const MOST_LINKS: usize = 40;
/// Descriptor of standard output.
const STDOUT: u32 = 1;

/// Whether an existing regular file may be replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replace {
    /// No: it is refused.
    Never,
    /// Existing files are replaced (`--force`).
    Force,
}

impl Replace {
    /// As the option says.
    #[must_use]
    pub const fn of(force: bool) -> Self {
        if force { Self::Force } else { Self::Never }
    }
}

/// Why a path is refused as an output, or why writing to it failed.
#[derive(Debug, thiserror::Error)]
pub enum OutputError {
    /// The system refused.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// A regular file is there already.
    #[error("exists; --force overwrites it")]
    Exists,
    /// The path names a file that the command reads.
    #[error("is an input of this command; it is never overwritten, name another output")]
    Input,
    /// A file of the program's own is to stand there, and something else does.
    #[error("is not a regular file; it is never replaced")]
    NotOwn,
    /// The path names a directory.
    #[error("is a directory; name a file")]
    Directory,
    /// A symbolic link to a name that is free.
    #[error("is a symbolic link to {0}, which does not exist; --force creates it")]
    Dangling(PathBuf),
    /// More links than a path may have.
    #[error("is a loop of symbolic links")]
    Loop,
    /// A block device.
    #[error("is a block device; it is never written, name a file")]
    BlockDevice,
    /// The path names a socket.
    #[error("is a socket; it is never replaced, name a file")]
    Socket,
    /// A FIFO, where waiting for a reader would stop the program.
    #[error("is a FIFO that no program reads; start its reader first")]
    Unread,
    /// The directory is missing.
    #[error("there is no directory {0}")]
    NoFolder(PathBuf),
}

/// The regular files that a command reads, by device and inode: links and other names of a file are the same file.
#[derive(Debug, Clone, Default)]
pub struct Inputs(Vec<(u64, u64)>);

impl Inputs {
    /// The files at these paths; `-` is standard input. What is not there, or not a regular file, is left out.
    pub fn of<'a>(paths: impl IntoIterator<Item = &'a Path>) -> Self {
        let meta = |path: &Path| if path == Path::new("-") { meta_of(&io::stdin()) } else { fs::metadata(path).ok() };
        let files = paths.into_iter().filter_map(meta).filter(Metadata::is_file);
        Self(files.map(|meta| (meta.dev(), meta.ino())).collect())
    }

    fn has(&self, meta: &Metadata) -> bool {
        meta.is_file() && self.0.contains(&(meta.dev(), meta.ino()))
    }
}

/// Metadata of an open descriptor.
fn meta_of(stream: &impl AsFd) -> Option<Metadata> {
    File::from(stream.as_fd().try_clone_to_owned().ok()?).metadata().ok()
}

/// Where an output goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// Write to standard output.
    Stdout,
    /// A character device, a FIFO or an inherited descriptor: bytes are written into it, and it stays what it is.
    Stream(PathBuf),
    /// A regular file or a free name, with all symbolic links followed.
    File(PathBuf),
}

impl Target {
    /// What `path` names; `-` is standard output. Nothing is created or changed.
    ///
    /// # Errors
    /// [`OutputError`] when an output there is refused.
    pub fn of(path: &Path, replace: Replace, inputs: &Inputs) -> Result<Self, OutputError> {
        if path == Path::new("-") {
            return Self::stdout(inputs);
        }
        let mut at = path.to_path_buf();
        for _ in 0..MOST_LINKS {
            if let Some((process, number)) = descriptor(&at) {
                let own = process == OsStr::new(&std::process::id().to_string());
                if own && number == STDOUT {
                    return Self::stdout(inputs);
                }
                if inputs.has(&fs::metadata(&at)?) {
                    return Err(OutputError::Input);
                }
                return Ok(Self::Stream(at));
            }
            let meta = match fs::symlink_metadata(&at) {
                Ok(meta) => meta,
                Err(error) if error.kind() == io::ErrorKind::NotFound => return free(path, at, replace),
                Err(error) => return Err(error.into()),
            };
            if !meta.is_symlink() {
                return there(at, &meta, replace, inputs);
            }
            at = folder_of(&at).join(fs::read_link(&at)?);
        }
        Err(OutputError::Loop)
    }

    /// Standard output.
    ///
    /// # Errors
    /// [`OutputError::Input`] when it is redirected to a file that the command reads.
    pub fn stdout(inputs: &Inputs) -> Result<Self, OutputError> {
        match meta_of(&io::stdout()) {
            Some(meta) if inputs.has(&meta) => Err(OutputError::Input),
            _ => Ok(Self::Stdout),
        }
    }

    /// A directory on the same file system for what has no name yet; of a stream, the one for temporary files.
    #[must_use]
    pub fn folder(&self) -> PathBuf {
        match self {
            Self::File(path) => folder_of(path).to_path_buf(),
            Self::Stdout | Self::Stream(_) => std::env::temp_dir(),
        }
    }

    /// [`open_stream`](Self::open_stream) without a wait.
    ///
    /// # Errors
    /// [`OutputError::Unread`] for a FIFO without a reader; else as there.
    pub(super) fn open_read_stream(&self) -> Result<File, OutputError> {
        let Self::Stream(path) = self else { return Ok(self.open_stream()?) };
        let flags = OFlags::NONBLOCK.bits() as i32;
        let file = match File::options().append(true).custom_flags(flags).open(path) {
            Err(error) if Errno::from_io_error(&error) == Some(Errno::NXIO) => return Err(OutputError::Unread),
            opened => opened?,
        };
        // A reader that is slower is waited for.
        rustix::fs::fcntl_setfl(&file, OFlags::APPEND).map_err(io::Error::from)?;
        Ok(file)
    }

    /// Opens a stream for writing; nothing is truncated and nothing created. A FIFO waits for its reader.
    ///
    /// # Errors
    /// Those of the system; a file is not a stream.
    pub fn open_stream(&self) -> io::Result<File> {
        match self {
            Self::Stdout => Ok(File::from(io::stdout().as_fd().try_clone_to_owned()?)),
            Self::Stream(path) => File::options().append(true).open(path),
            Self::File(_) => Err(io::ErrorKind::InvalidInput.into()),
        }
    }
}

/// A name that is free.
fn free(path: &Path, at: PathBuf, replace: Replace) -> Result<Target, OutputError> {
    if at.file_name().is_none() {
        return Err(OutputError::Directory);
    }
    let folder = folder_of(&at);
    if !folder.is_dir() {
        return Err(OutputError::NoFolder(folder.to_path_buf()));
    }
    if replace == Replace::Never && at != path {
        return Err(OutputError::Dangling(at));
    }
    Ok(Target::File(at))
}

/// Something that is there and is not a symbolic link.
fn there(at: PathBuf, meta: &Metadata, replace: Replace, inputs: &Inputs) -> Result<Target, OutputError> {
    let kind = meta.file_type();
    if kind.is_dir() {
        return Err(OutputError::Directory);
    }
    if kind.is_block_device() {
        return Err(OutputError::BlockDevice);
    }
    if kind.is_socket() {
        return Err(OutputError::Socket);
    }
    if !kind.is_file() {
        return Ok(Target::Stream(at));
    }
    if inputs.has(meta) {
        return Err(OutputError::Input);
    }
    if replace == Replace::Never {
        return Err(OutputError::Exists);
    }
    Ok(Target::File(at))
}

/// Process and number of a path below `/proc/PID/fd`: such a link names an open file, not the path that it shows.
fn descriptor(path: &Path) -> Option<(std::ffi::OsString, u32)> {
    let number = path.file_name()?.to_str()?.parse().ok()?;
    let folder = fs::canonicalize(folder_of(path)).ok()?;
    let process = folder.strip_prefix("/proc").ok()?.components().next()?.as_os_str().to_owned();
    folder.ends_with("fd").then_some((process, number))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;

    use super::*;

    fn of(path: &Path, replace: Replace) -> Result<Target, OutputError> {
        Target::of(path, replace, &Inputs::default())
    }

    #[test]
    fn a_path_is_a_file_a_stream_or_refused_by_what_is_there() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("file"), "x").unwrap();
        symlink("file", at("link")).unwrap();
        symlink("nothing", at("dangling")).unwrap();
        symlink("loop", at("loop")).unwrap();
        let _socket = UnixListener::bind(at("socket")).unwrap();
        assert!(matches!(of(&at("file"), Replace::Never), Err(OutputError::Exists)));
        assert_eq!(of(&at("link"), Replace::Force).unwrap(), Target::File(at("file")));
        assert!(matches!(of(&at("dangling"), Replace::Never), Err(OutputError::Dangling(_))));
        assert_eq!(of(&at("dangling"), Replace::Force).unwrap(), Target::File(at("nothing")));
        assert!(matches!(of(&at("loop"), Replace::Force), Err(OutputError::Loop)));
        assert!(matches!(of(&at("socket"), Replace::Force), Err(OutputError::Socket)));
        assert!(matches!(of(folder.path(), Replace::Force), Err(OutputError::Directory)));
        assert!(matches!(of(&at("no/file"), Replace::Force), Err(OutputError::NoFolder(_))));
        assert_eq!(of(Path::new("/dev/null"), Replace::Never).unwrap(), Target::Stream("/dev/null".into()));
        for stdout in ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"] {
            assert_eq!(of(Path::new(stdout), Replace::Never).unwrap(), Target::Stdout, "{stdout}");
        }
    }

    #[test]
    fn an_input_is_known_by_every_name_of_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("log"), "x").unwrap();
        fs::hard_link(at("log"), at("hard")).unwrap();
        symlink("hard", at("soft")).unwrap();
        let inputs = Inputs::of([at("log").as_path(), Path::new("absent")]);
        for name in ["log", "hard", "soft"] {
            let refused = Target::of(&at(name), Replace::Force, &inputs);
            assert!(matches!(refused, Err(OutputError::Input)), "{name}: {refused:?}");
        }
    }

    #[test]
    fn a_fifo_without_a_reader_is_refused_at_once_and_one_with_a_reader_is_written() {
        use std::io::Read as _;
        let folder = tempfile::tempdir().unwrap();
        let fifo = folder.path().join("fifo");
        rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, rustix::fs::Mode::RWXU).unwrap();
        let text = "row\n".repeat(100_000);
        let write = || super::super::replace(&fifo, text.as_bytes(), &Inputs::default());
        assert!(matches!(write(), Err(OutputError::Unread)));
        // Opened before the writer: it reads no end until the writer has gone.
        let reader = File::options().read(true).custom_flags(OFlags::NONBLOCK.bits() as i32).open(&fifo).unwrap();
        rustix::fs::fcntl_setfl(&reader, OFlags::empty()).unwrap();
        let read = std::thread::spawn(move || {
            let (mut reader, mut bytes) = (reader, String::new());
            // Without a writer yet, an end is nothing.
            while bytes.is_empty() {
                reader.read_to_string(&mut bytes).unwrap();
            }
            bytes
        });
        write().unwrap();
        assert_eq!(read.join().unwrap(), text);
    }

    #[test]
    fn an_own_file_replaces_itself_and_nothing_that_another_put_there() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("victim"), "mine").unwrap();
        symlink("victim", at("link")).unwrap();
        symlink("nothing", at("dangling")).unwrap();
        for name in ["link", "dangling"] {
            let refused = super::super::replace_own(&at(name), b"marks");
            assert!(matches!(refused, Err(OutputError::NotOwn)), "{name}: {refused:?}");
        }
        assert_eq!(fs::read(at("victim")).unwrap(), b"mine");
        assert!(!at("nothing").exists());
        for text in ["marks", "more marks"] {
            super::super::replace_own(&at("own"), text.as_bytes()).unwrap();
            assert_eq!(fs::read(at("own")).unwrap(), text.as_bytes());
        }
    }
}
