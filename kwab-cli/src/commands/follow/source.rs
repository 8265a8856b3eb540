//! Where a console's bytes come from: a thread reads them and hands them over.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};

use super::chunk::{Chunk, End, drain};
use super::growing::Growing;
use super::hook::words;
use super::socket::Socket;
use crate::cli::Follow;
use crate::failure::{about, is_stdio, system};
use crate::{inputs, output};

/// Chunks that wait; a reader that is faster waits.
const WAITING: usize = 16;

/// An open console.
pub(super) struct Console {
    /// Its name, for people and for the dumps.
    pub name: String,
    /// What the names of its dumps begin with.
    pub stem: String,
    /// Its pieces; the sender goes at the end of the console.
    pub chunks: Receiver<Chunk>,
    child: Option<Child>,
    /// When the command was seen to have ended.
    ended: Option<Instant>,
}

/// How long the output of a command that has ended may be silent while a process that it left holds it open.
const LEFT_OPEN: Duration = Duration::from_millis(500);

impl Console {
    /// Opens what the arguments name and begins to read.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub(super) fn open(arguments: &Follow) -> Result<Self> {
        if let Some(command) = &arguments.exec {
            return Self::of_command(command);
        }
        let path = arguments.source.as_deref().unwrap_or(Path::new("-"));
        if let Some(socket) = Socket::of(path, arguments.reconnect)? {
            let stem = if socket.is_tcp() { "tcp".to_string() } else { stem_of(path) };
            let read = socket.reader(path, arguments.reconnect)?;
            return Ok(Self::of_reader(path.display().to_string(), &stem, read));
        }
        if arguments.reconnect {
            return Err(about(path, "is not a socket; --reconnect is for one (a file is followed through rotation)"));
        }
        if is_stdio(path) {
            return Ok(Self::of_stream("stdin".to_string(), "stdin", io::stdin(), None));
        }
        let opened = |error: io::Error| about(path, system(&error));
        let meta = std::fs::metadata(path).map_err(opened)?;
        if meta.is_dir() {
            return Err(about(path, "is a directory; follow takes one console"));
        }
        let name = path.display().to_string();
        let stem = stem_of(path);
        if meta.file_type().is_fifo() {
            // Its first reader waits for a writer, and meanwhile a signal must still end the command.
            return Ok(Self::of_stream(name, &stem, Unopened { path: path.to_path_buf(), file: None }, None));
        }
        if !meta.is_file() {
            return Ok(Self::of_stream(name, &stem, inputs::open(path).map_err(opened)?, None));
        }
        let (growing, unwatched) = Growing::open(path, arguments.new).map_err(opened)?;
        if let Some(error) = unwatched {
            let why = system(&error);
            output::remark(&format!("kwab: {name}: rotations within 20 ms may be missed: {why}\n"));
        }
        Ok(Self::of_reader(name, &stem, move |sender| growing.read(sender)))
    }

    fn of_command(command: &str) -> Result<Self> {
        let words = words(command, "--exec")?;
        let program = words.first().map_or("", String::as_str);
        let mut started = Command::new(program);
        started.args(words.iter().skip(1)).stdout(Stdio::piped());
        let mut child = started.spawn().map_err(|error| about(Path::new(program), system(&error)))?;
        let output = child.stdout.take().context("the command has no stdout")?;
        let stem = Path::new(program).file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        Ok(Self::of_stream(program.to_string(), &stem, output, Some(child)))
    }

    fn of_stream(name: String, stem: &str, stream: impl Read + Send + 'static, child: Option<Child>) -> Self {
        let console = Self::of_reader(name, stem, move |sender| read_stream(stream, sender));
        Self { child, ..console }
    }

    /// A console that this reads in a thread of its own.
    fn of_reader(name: String, stem: &str, read: impl FnOnce(&SyncSender<Chunk>) + Send + 'static) -> Self {
        let (sender, chunks) = sync_channel(WAITING);
        thread::spawn(move || read(&sender));
        Self { name, stem: stem.to_string(), chunks, child: None, ended: None }
    }

    /// Whether the command has ended some time ago although its output has not. Asked when nothing comes.
    pub(super) fn is_orphaned(&mut self) -> bool {
        let Some(child) = &mut self.child else { return false };
        if self.ended.is_none() && matches!(child.try_wait(), Ok(Some(_))) {
            self.ended = Some(Instant::now());
        }
        self.ended.is_some_and(|ended| ended.elapsed() >= LEFT_OPEN)
    }

    /// Ends the command that was started.
    pub(super) fn close(self) {
        let Self { child, chunks, .. } = self;
        // A command that still writes gets SIGPIPE or SIGTERM, and does not wait for a reader.
        drop(chunks);
        child.into_iter().for_each(super::child::end);
    }
}

/// What the names of the dumps of a file or a socket begin with.
fn stem_of(path: &Path) -> String {
    path.file_stem().map_or_else(|| "console".to_string(), |stem| stem.to_string_lossy().into_owned())
}

/// A file that the first read opens.
struct Unopened {
    path: PathBuf,
    file: Option<File>,
}

impl Read for Unopened {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.file.is_none() {
            self.file = Some(inputs::open(&self.path)?);
        }
        self.file.as_mut().map_or(Ok(0), |file| file.read(into))
    }
}

/// Reads a stream to its end.
fn read_stream(stream: impl Read, sender: &SyncSender<Chunk>) {
    if let End::Failed(error) = drain(stream, sender) {
        // The receiver may have gone, and then the error is lost with it.
        let _ = sender.send(Chunk::Failed(error));
    }
}
