//! Where a console's bytes come from: a thread reads them and hands them over.

use std::fs::File;
use std::io::{self, Read};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::FileTypeExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use super::chunk::{Chunk, READ};
use super::growing::Growing;
use super::hook::words;
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
        if is_stdio(path) {
            return Ok(Self::of_stream("stdin".to_string(), "stdin", io::stdin(), None));
        }
        if let Some(address) = path.to_str().and_then(|text| text.strip_prefix("tcp:")) {
            let stream = TcpStream::connect(local(address)?).map_err(|error| about(path, system(&error)))?;
            return Ok(Self::of_stream(path.display().to_string(), "tcp", stream, None));
        }
        let opened = |error: io::Error| about(path, system(&error));
        let meta = std::fs::metadata(path).map_err(opened)?;
        if meta.is_dir() {
            return Err(about(path, "is a directory; follow takes one console"));
        }
        let name = path.display().to_string();
        let stem = path.file_stem().map_or_else(|| "console".to_string(), |stem| stem.to_string_lossy().into_owned());
        if meta.file_type().is_socket() {
            return Ok(Self::of_stream(name, &stem, UnixStream::connect(path).map_err(opened)?, None));
        }
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
        let (sender, chunks) = sync_channel(WAITING);
        thread::spawn(move || growing.read(&sender));
        Ok(Self { name, stem, chunks, child: None, ended: None })
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
        let (sender, chunks) = sync_channel(WAITING);
        thread::spawn(move || read_stream(stream, &sender));
        Self { name, stem: stem.to_string(), chunks, child, ended: None }
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

/// The address of a port of this machine.
fn local(address: &str) -> Result<SocketAddr> {
    let address = address.strip_prefix("localhost:").map_or(address.to_string(), |port| format!("127.0.0.1:{port}"));
    let parsed: SocketAddr = address.parse().with_context(|| format!("tcp:{address}: expected tcp:127.0.0.1:PORT"))?;
    if !parsed.ip().is_loopback() {
        bail!("tcp:{address}: only this machine's own addresses are followed (127.0.0.1, [::1])");
    }
    Ok(parsed)
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
fn read_stream(mut stream: impl Read, sender: &SyncSender<Chunk>) {
    let mut buffer = vec![0; READ];
    loop {
        let chunk = match stream.read(&mut buffer) {
            Ok(0) => return,
            Ok(count) => Chunk::read(buffer[..count].to_vec()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            // A pseudo-terminal whose other side has gone.
            Err(error) if error.raw_os_error() == Some(EIO) => return,
            Err(error) => Chunk::Failed(error),
        };
        if matches!(chunk, Chunk::Failed(_)) || sender.send(chunk).is_err() {
            return;
        }
    }
}

/// Linux's number of an input/output error.
const EIO: i32 = 5;
