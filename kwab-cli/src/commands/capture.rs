//! `kwab capture --qmp SOCKET [-o FILE] [--no-nmi] [--wait SECONDS] [--force] [--json]`
//!
//! Takes a dump from a guest of QEMU that hangs. The kernel is asked first, by an NMI: ours dumps then, to wherever its
//! command line says. A guest that does not act on it is paused, the registers and stacks of its processors are read
//! through the monitor into FILE, and it runs on. Status 0 when there is a dump, 3 when some memory could not be read,
//! 2 when there is none.

use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::Result;
use kwab::capture::qmp::Session;
use kwab::capture::{CaptureError, CaptureReport, Nmi, Options, SCHEMA, Snapshot, capture};

use crate::cli::Capture;
use crate::failure::{DAMAGED, about, shown, system};
use crate::output::{self, Output};
use crate::render;

/// How long one read waits.
const TICK: Duration = Duration::from_millis(250);

/// Runs the command.
pub(crate) fn run(arguments: &Capture) -> Result<ExitCode> {
    let output = Output::of(Some(&arguments.output), arguments.force, [arguments.qmp.as_path()])?.of_binary()?;
    if output.is_stdout() && arguments.json {
        anyhow::bail!("--json and the dump would both go to stdout; name a file with -o");
    }
    let failed = |error: CaptureError| match error {
        CaptureError::Io(error) => about(&arguments.qmp, system(&error)),
        error => about(&arguments.qmp, error),
    };
    let mut session = connect(&arguments.qmp).map_err(failed)?;
    let options = Options { nmi: !arguments.no_nmi, wait: Duration::from_secs(arguments.wait) };
    let snapshot = capture(&mut session, options).map_err(failed)?;
    let report = report(arguments, &output, snapshot.as_ref());
    if let Some(snapshot) = &snapshot {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        let id = now as u64 ^ u64::from(std::process::id()).rotate_left(40);
        output.write(|out| snapshot.write(id, i64::try_from(now).unwrap_or(i64::MAX), out))?;
    }
    if arguments.json {
        output::json(&report)?;
    } else if output.is_stdout() {
        output::remark(&render::tables::capture(&report));
    } else {
        output::text(&render::tables::capture(&report))?;
    }
    Ok(ExitCode::from(if report.missing.is_empty() { 0 } else { DAMAGED }))
}

fn connect(socket: &Path) -> Result<Session, CaptureError> {
    let stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(TICK))?;
    let input = stream.try_clone()?;
    Session::open(Box::new(input), Box::new(stream))
}

fn report(arguments: &Capture, output: &Output, snapshot: Option<&Snapshot>) -> CaptureReport {
    let name = || if output.is_stdout() { "stdout".to_owned() } else { shown(output.path()) };
    CaptureReport {
        schema: SCHEMA,
        target: shown(&arguments.qmp),
        nmi: snapshot.map_or(Nmi::Taken, |snapshot| snapshot.nmi),
        output: snapshot.map(|_| name()),
        processors: snapshot.map_or(0, |snapshot| snapshot.processors.len()),
        bytes: snapshot.map_or(0, |snapshot| snapshot.pieces.iter().map(|piece| piece.bytes.len() as u64).sum()),
        missing: snapshot.map(|snapshot| snapshot.missing.clone()).unwrap_or_default(),
    }
}
