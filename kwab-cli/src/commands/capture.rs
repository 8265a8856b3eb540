//! `kwab capture --qmp SOCKET|--gdb HOST:PORT|--mem FILE [-o FILE] [--memory WHICH] [--no-nmi] [--wait SECONDS]
//! [--keep-stopped] [--force] [--json]`
//!
//! Takes a dump from a guest of QEMU that hangs. The kernel is asked first, by an NMI: ours dumps then, to wherever its
//! command line says. A guest that does not act on it is paused, the registers and stacks of its processors are read
//! through the monitor into FILE, with all RAM where `--memory all` asks for it, and it runs on. `--gdb`
//! does that through the stub for GDB, which has no NMI and stops the guest at once. `--mem` makes the same
//! of the core of a machine, in ELF or kdump-compressed, wherever that comes from: it is one machine and becomes one
//! dump, as with a guest, while `kwab import` makes many of a log. Status 0 when there is a dump, 3 when some memory
//! could not be read, 2 when there is none.

use std::fs::File;
use std::io::{Seek as _, SeekFrom};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result};
use kwab::capture::gdb::Remote;
use kwab::capture::qmp::Session;
use kwab::capture::{
    CaptureError, CaptureReport, Level, Nmi, Options, SCHEMA, Snapshot, Written, capture, capture_gdb, of_core,
};

use crate::cli::{Capture, Memory};
use crate::failure::{DAMAGED, about, is_stdio, shown, system};
use crate::output::{self, Output};
use crate::{inputs, render};

/// How long one read waits.
const TICK: Duration = Duration::from_millis(250);
/// How long a whole session with a stub may take for the stacks, and for all memory.
const STACKS: Duration = Duration::from_secs(60);
const ALL: Duration = Duration::from_secs(1800);
/// How long the monitor may leave a command unread.
const WRITE: Duration = Duration::from_secs(10);

/// Runs the command.
pub(crate) fn run(arguments: &Capture) -> Result<ExitCode> {
    let stub = arguments.gdb.as_ref().map(PathBuf::from);
    let source = arguments.mem.as_ref().or(arguments.qmp.as_ref()).or(stub.as_ref());
    let source = source.context("give --qmp, --gdb or --mem")?;
    let output = Output::of(Some(&arguments.output), arguments.force, [source.as_path()])?.of_binary()?;
    if output.is_stdout() && arguments.json {
        anyhow::bail!("--json and the dump would both go to stdout; name a file with -o");
    }
    let captured = match (&arguments.mem, &arguments.gdb) {
        (Some(file), _) => opened(file).and_then(of_core).map(Some),
        (None, Some(stub)) => of_stub(stub, arguments, &output).map(Some),
        (None, None) => of_guest(source, arguments, &output),
    };
    let snapshot = captured.map_err(|error| match error {
        CaptureError::Io(error) => about(source, system(&error)),
        error => about(source, error),
    })?;
    let mut written = Written::default();
    if let Some(snapshot) = &snapshot {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        let id = now as u64 ^ u64::from(std::process::id()).rotate_left(40);
        output.write(|out| {
            written = snapshot.write(id, i64::try_from(now).unwrap_or(i64::MAX), out)?;
            Ok(())
        })?;
    }
    let report = report(source, &output, snapshot.as_ref(), &written);
    output::beside(&report)?;
    if arguments.json {
        output::json(&report)?;
    } else if output.is_stdout() {
        output::remark(&render::tables::capture(&report));
    } else {
        output::text(&render::tables::capture(&report))?;
    }
    Ok(ExitCode::from(if report.missing.is_empty() { 0 } else { DAMAGED }))
}

fn of_guest(socket: &Path, arguments: &Capture, output: &Output) -> Result<Option<Snapshot>, CaptureError> {
    let level = level(arguments, output);
    let options = Options { nmi: !arguments.no_nmi, wait: Duration::from_secs(arguments.wait), level };
    capture(&mut connect(socket)?, &options)
}

fn level(arguments: &Capture, output: &Output) -> Level {
    match arguments.memory {
        Memory::Stacks => Level::Stacks,
        Memory::All if output.is_stdout() => Level::All(std::env::temp_dir()),
        Memory::All => Level::All(output.folder()),
    }
}

/// Reads a guest through its stub for GDB: a host with a port, or the path of a socket.
fn of_stub(stub: &str, arguments: &Capture, output: &Output) -> Result<Snapshot, CaptureError> {
    let level = level(arguments, output);
    let whole = if level == Level::Stacks { STACKS } else { ALL };
    let mut remote = if stub.contains('/') {
        let stream = UnixStream::connect(stub)?;
        stream.set_read_timeout(Some(TICK))?;
        stream.set_write_timeout(Some(WRITE))?;
        Remote::open(Box::new(stream.try_clone()?), Box::new(stream), whole)?
    } else {
        // `:1234` is of this machine, as for gdb.
        let name = if stub.starts_with(':') { format!("localhost{stub}") } else { stub.to_owned() };
        let stream = connect_to(&name)?;
        stream.set_read_timeout(Some(TICK))?;
        stream.set_write_timeout(Some(WRITE))?;
        stream.set_nodelay(true)?;
        Remote::open(Box::new(stream.try_clone()?), Box::new(stream), whole)?
    };
    capture_gdb(&mut remote, &level, !arguments.keep_stopped)
}

/// Connects to the first address of a name that takes the connection.
fn connect_to(name: &str) -> Result<TcpStream, CaptureError> {
    let mut last = std::io::Error::other("the name has no address");
    for address in name.to_socket_addrs()?.take(8) {
        match TcpStream::connect_timeout(&address, WRITE) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last.into())
}

/// The file, or one without a name that holds what came from stdin: a core is not read in order.
fn opened(path: &Path) -> Result<File, CaptureError> {
    if !is_stdio(path) {
        return Ok(inputs::open(path)?);
    }
    let mut file = tempfile::tempfile()?;
    std::io::copy(&mut std::io::stdin().lock(), &mut file)?;
    file.seek(SeekFrom::Start(0))?;
    Ok(file)
}

fn connect(socket: &Path) -> Result<Session, CaptureError> {
    let stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(TICK))?;
    stream.set_write_timeout(Some(WRITE))?;
    let input = stream.try_clone()?;
    Session::open(Box::new(input), Box::new(stream))
}

fn report(source: &Path, output: &Output, snapshot: Option<&Snapshot>, written: &Written) -> CaptureReport {
    let name = || if output.is_stdout() { "stdout".to_owned() } else { shown(output.path()) };
    CaptureReport {
        schema: SCHEMA,
        target: shown(source),
        nmi: snapshot.map_or(Nmi::Taken, |snapshot| snapshot.nmi),
        output: snapshot.map(|_| name()),
        processors: snapshot.map_or(0, |snapshot| snapshot.processors.len()),
        bytes: snapshot.map_or(0, |snapshot| snapshot.pieces.iter().map(|piece| piece.bytes.len() as u64).sum()),
        ram_bytes: written.bytes,
        ram_zeros: written.zeros,
        missing: snapshot.iter().flat_map(|snapshot| &snapshot.missing).chain(&written.lost).cloned().collect(),
    }
}
