//! A step of `cargo xtask test`: all memory of a running guest, taken from outside, is what the guest and QEMU say.
//!
//! Our kernel and Linux run a program that has a known text on its stack. `kwab`'s capture takes all RAM through the
//! machine protocol. The text must be found, the kernel's build-id must be that of the image that runs, and a few
//! hundred addresses of the kernel must translate as QEMU's own walker translates them (`gva2gpa` of its monitor).

use std::fs;
use std::ops::Range;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use kwab::capture::qmp::Session;
use kwab::capture::{Level, Options, capture};
use kwab::memory::{Ram, Space, Wanted, walk};
use kwab::model::{Depth, Dump};
use kwab::report::address::search::{Pattern, search};
use kwab::symbols::{Image, IndexCache, Symbols};

use crate::boot::{self, Options as Boot};
use crate::kernel::Which;
use crate::paths;
use crate::qemu::run::Next;
use crate::qemu::{Limits, run};
use crate::setup::{self, Consent, Tool};

/// What the guest's program holds.
const TEXT: &str = "a text that only this guest holds";
/// Addresses that are compared: through the kernel's image, and as much again on both sides of it.
const ADDRESSES: u64 = 384;

/// Runs the step under both kernels.
pub fn check(consent: Consent) -> Result<()> {
    setup::require(&[Tool::Qemu, Tool::MuslGcc], consent)?;
    for kernel in [Which::Ours, Which::Linux] {
        let said = under(kernel, consent).with_context(|| format!("under {}", kernel.name()))?;
        println!("{}: {said}", kernel.name());
    }
    Ok(())
}

fn under(kernel: Which, consent: Consent) -> Result<String> {
    let folder = paths::build("outside")?;
    let socket = folder.join("qmp");
    let _ = fs::remove_file(&socket);
    let script = format!("text='{TEXT}'; echo READY; sleep 100");
    let options = Boot::once(kernel, &["/bin/sh", "-c", &script]).memory(256).processors(2);
    let mut machine = boot::machine(&options, consent)?;
    machine.extra.extend(["-qmp".to_owned(), format!("unix:{},server=on,wait=off", socket.display())]);
    let mut said = None;
    let outcome = run(&machine, Limits::seconds(120), |line| {
        if line.contains("READY") {
            said = Some(captured(&machine.kernel, kernel == Which::Ours, &socket, &folder));
            return Next::Stop;
        }
        Next::Go
    })?;
    match said {
        Some(said) => said,
        None => bail!("the guest was not ready: {:?}", outcome.ending),
    }
}

/// Takes the memory and compares.
fn captured(kernel: &Path, is_ours: bool, socket: &Path, folder: &Path) -> Result<String> {
    let stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(Duration::from_millis(250)))?;
    let mut session = Session::open(Box::new(stream.try_clone()?), Box::new(stream))?;
    let options = Options { nmi: false, wait: Duration::ZERO, level: Level::All(folder.to_owned()) };
    // What is compared behind the capture must not change before.
    session.execute("stop", None)?;
    let snapshot = capture(&mut session, &options)?.context("nothing was captured")?;
    let file = folder.join(if is_ours { "ours.kwab" } else { "linux.kwab" });
    let mut out = std::io::BufWriter::new(fs::File::create(&file)?);
    let totals = snapshot.write(1, 1, &mut out)?;
    drop(out);
    let dump = Dump::open(&file, Depth::Rules)?;
    ensure!(dump.defects().is_empty(), "{:?}", dump.defects());
    let (case, ram) = (dump.case(), Ram::of(&dump));
    let pattern = Pattern::new(TEXT.as_bytes().to_vec(), 1)?;
    let found = search(&case, &ram, &Symbols::new(), &pattern, 1, "");
    ensure!(found.count > 0, "the guest's text is not in {}", paths::shown(&file));
    if is_ours {
        let image = Image::open(kernel, &IndexCache::none())?;
        let id = case.identities.first().and_then(|identity| identity.kernel_build_id);
        ensure!(image.build_id().map(|id| id.0).as_deref() == id, "the build-id is {id:?}");
    }
    let space = Wanted { cpu: Some(0), ..Wanted::default() }.find(&case)?;
    let kernel = snapshot.kernel.as_ref().context("no kernel was found in the memory")?;
    let mapped = compare(&mut session, &ram, &space, kernel.start..kernel.end)?;
    let (all, zeros) = (totals.bytes >> 20, totals.zeros >> 20);
    Ok(format!("{all} MiB captured, {zeros} MiB of them zeros; {mapped} of {ADDRESSES} addresses mapped alike"))
}

/// Translates addresses here and in QEMU; how many are mapped.
fn compare(session: &mut Session, ram: &Ram<'_>, space: &Space, image: Range<u64>) -> Result<usize> {
    let tables = space.tables.context("CPU 0 has no page tables")?;
    let length = image.end - image.start;
    let step = (length * 3 / ADDRESSES) | 1;
    let mut mapped = 0;
    for number in 0..ADDRESSES {
        let addr = (image.start - length).wrapping_add(number * step);
        let ours = walk(tables, addr, &|paddr| ram.word(paddr)).paddr();
        let said = session.monitor(&format!("gva2gpa {addr:#x}"), Some(0))?;
        let theirs = said.trim().strip_prefix("gpa: 0x").and_then(|hex| u64::from_str_radix(hex, 16).ok());
        ensure!(ours == theirs, "{addr:#x} leads to {ours:x?} here and {theirs:x?} in QEMU ({})", said.trim());
        mapped += usize::from(ours.is_some());
    }
    ensure!(mapped > 0, "none of the addresses is mapped");
    Ok(mapped)
}
