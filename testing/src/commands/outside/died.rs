//! Guests of ours that die of a planted bug: what is read out of their memory afterwards is what their own dump says.
//!
//! The kernel writes its dump and then waits before it reboots. Meanwhile all memory is captured. Where no mapping and
//! no page table decides ([`AGREE`]) both must have the same cause, registers, callers, flight events and system calls,
//! and the same first hypothesis. With `KWAB_OUTSIDE_ALL` set every question is asked, and those are named whose first
//! hypotheses differ.

use std::fs;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use kwab::capture::qmp::Session;
use kwab::capture::{Level, Options, capture};
use kwab::format::record::{Cause, RegisterRole};
use kwab::model::{Case, Dump};

use super::first;
use super::rings::same_rings;
use crate::commands::exam::room;
use crate::exam::{self, Question, Room};
use crate::paths;
use crate::qemu::run::{Next, OnSilence, run_asking};
use crate::qemu::{Limits, Machine};
use crate::setup::Consent;

/// The questions of the exam whose truth is in what is read from outside: the rest needs the mappings and page tables.
const AGREE: [&str; 4] = ["null-dereference", "stack-overflow", "use-after-free", "user-pointer"];
/// Guest memory, MiB.
const MEMORY: u32 = 96;

/// A guest that died, as captured and in its own words.
struct Dead {
    captured: Vec<u8>,
    own: Vec<u8>,
}

/// Asks all questions, which takes minutes.
const ALL: &str = "KWAB_OUTSIDE_ALL";

/// Captures the guests after their deaths and compares.
pub(super) fn check(consent: Consent) -> Result<String> {
    let (mut alike, mut unlike, mut failed) = (Vec::new(), Vec::new(), Vec::new());
    let all = std::env::var_os(ALL).is_some();
    let (first_asked, others): (Vec<_>, Vec<_>) =
        exam::QUESTIONS.iter().partition(|question| AGREE.contains(&question.fault));
    for question in first_asked.into_iter().chain(others.into_iter().filter(|_| all)) {
        let room = room(question, consent)?;
        let dead = died(question, &room).with_context(|| question.name())?;
        let both = (first(&exam::judge(&dead.captured, &room)?), first(&exam::judge(&dead.own, &room)?));
        let agrees = both.0 == both.1;
        if agrees { &mut alike } else { &mut unlike }.push(question.name());
        if all {
            println!("{}: {both:?}", question.name());
        }
        if !AGREE.contains(&question.fault) {
            continue;
        }
        match same(&dead) {
            Ok(rings) if agrees => println!("{}: {rings}, {:?}", question.name(), both.0),
            Ok(_) => failed.push(format!("{}: the first hypothesis differs: {both:?}", question.name())),
            Err(error) => failed.push(format!("{}: {error:#}", question.name())),
        }
    }
    ensure!(failed.is_empty(), "{}", failed.join("\n"));
    let count = alike.len() + unlike.len();
    Ok(format!("{} of {count} are judged as by their own dumps {unlike:?}", alike.len()))
}

/// Compares all but the judgement; what there was.
fn same(dead: &Dead) -> Result<String> {
    let (captured, own) = (Dump::from_bytes(dead.captured.clone())?, Dump::from_bytes(dead.own.clone())?);
    ensure!(captured.defects().is_empty(), "{:?}", captured.defects());
    same_death(&captured.case(), &own.case())?;
    same_rings(&captured.case(), &own.case())
}

fn died(question: &Question, room: &Room) -> Result<Dead> {
    let (memory, socket) = (room.folder.join("died.ram"), room.folder.join("died.qmp"));
    // It waits long enough to be looked at.
    let mut machine =
        Machine::new(room.kernel.clone(), room.initrd.clone(), format!("{} panic=60", exam::options(question, room)));
    (machine.cpus, machine.memory_mib) = (question.cpus, MEMORY);
    for file in [&memory, &socket] {
        fs::remove_file(file).ok();
    }
    machine.keep_dumps_in(&memory)?;
    machine.extra = vec!["-qmp".to_owned(), format!("unix:{},server=on,wait=off", socket.display())];
    let mut captured = None;
    let mut ask = || exam::ask_for_dump(&socket);
    let on_silence = question.hangs.then_some(OnSilence { after: exam::SILENCE, act: &mut ask });
    let outcome = run_asking(&machine, Limits::seconds(180), on_silence, |line| {
        if line.contains("kwab: dump of ") {
            captured = Some(taken(&socket, &room.folder));
            return Next::Stop;
        }
        Next::Go
    })?;
    let captured = captured.with_context(|| format!("the guest did not die: {:?}", outcome.ending))??;
    let region = fs::read(&memory)?;
    fs::remove_file(&memory).ok();
    let own = exam::best(&region).context("the guest left no dump of its own")?;
    let folder = paths::build("outside")?;
    fs::write(folder.join(format!("{}.kwab", question.name())), &captured)?;
    fs::write(folder.join(format!("{}-own.kwab", question.name())), &own)?;
    Ok(Dead { captured, own })
}

/// Takes all memory of the guest, which is at its end.
fn taken(socket: &Path, folder: &Path) -> Result<Vec<u8>> {
    let stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(Duration::from_millis(250)))?;
    let mut session = Session::open(Box::new(stream.try_clone()?), Box::new(stream))?;
    let options = Options { nmi: false, wait: Duration::ZERO, level: Level::All(folder.to_owned()) };
    let snapshot = capture(&mut session, &options)?.context("nothing was captured")?;
    let mut bytes = Vec::new();
    snapshot.write(1, 1, &mut bytes)?;
    Ok(bytes)
}

/// Compares cause, callers and registers.
fn same_death(captured: &Case<'_>, own: &Case<'_>) -> Result<()> {
    // The command line is the program's, and times go on.
    let facts = |cause: &Cause<'_>| {
        let plain = Cause { cmdline: None, exception: None, stamp: Default::default(), ..*cause };
        format!("{plain:x?}")
    };
    let told = |case: &Case<'_>| case.causes.iter().map(|cause| facts(cause)).collect::<Vec<_>>();
    ensure!(told(captured) == told(own), "causes differ:\n{:#?}\n{:#?}", told(captured), told(own));
    let callers = |case: &Case<'_>| {
        let of_death = case.frames.iter().filter(|frame| frame.at.kind == kwab::format::SectionKind::CAUSE);
        of_death.map(|frame| frame.addr).collect::<Vec<_>>()
    };
    let (found, wanted) = (callers(captured), callers(own));
    ensure!(!found.is_empty() && found == wanted, "callers differ:\n{found:x?}\n{wanted:x?}");
    let registers = |case: &Case<'_>| {
        let roles = [RegisterRole::FAULT, RegisterRole::STOPPED];
        let sets = case.registers.iter().filter(|set| set.role.is_some_and(|role| roles.contains(&role)));
        let values = sets.map(|set| {
            let regs = set.regs.iter().flat_map(kwab::format::List::iter).map(|reg| (reg.id, reg.value));
            (set.role, set.stamp.cpu, set.tid, regs.collect::<std::collections::BTreeMap<_, _>>())
        });
        values.collect::<Vec<_>>()
    };
    let (found, wanted) = (registers(captured), registers(own));
    ensure!(!found.is_empty() && found == wanted, "registers differ:\n{found:x?}\n{wanted:x?}");
    Ok(())
}
