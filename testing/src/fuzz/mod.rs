//! The system call fuzzer: what one boot of it is asked, and what it answers.
//!
//! A [`Case`] is a seed with a machine around it; [`Bench::run`] boots it with the guest program `testing/guest/fuzz`
//! and gives an [`Answer`]: the findings, counts of calls, the console, and the dump with its triage if the kernel left
//! one. [`mod@shrink`] looks for the smallest sequence of calls that still fails, [`mod@record`] keeps findings and
//! totals.

pub mod abi;
pub mod record;
pub mod report;
pub mod shrink;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use crate::boot;
use crate::exam::{self, Room};
use crate::image::{self, Image, Node};
use crate::kernel::Which;
use crate::process::Call;
use crate::qemu::{self, Ending, Limits, Machine, OnSilence, run::Next};
use crate::setup::Consent;
use crate::{contracts, crashes, guest, paths};

pub use report::{Count, Finding, Report};

/// One boot of the fuzzer.
#[derive(Clone, Debug)]
pub struct Case {
    /// What all choices follow from.
    pub seed: u64,
    /// Longest time for the programs, in seconds of the guest.
    pub seconds: u64,
    /// The largest number of programs to run.
    pub programs: u32,
    /// Programs at the same time.
    pub workers: u32,
    /// Number of CPUs.
    pub cpus: u32,
    /// Memory in MiB.
    pub memory: u32,
    /// Calls that are not made.
    pub without: Vec<String>,
    /// `NUMBER=STEPS` of the only programs that run, again and again; without any, all from 0.
    pub only: Vec<String>,
}

/// What one boot gave.
#[derive(Debug)]
pub struct Answer {
    /// The console's lines, and a lost machine as one more finding.
    pub report: Report,
    /// Everything the console showed.
    pub serial: Vec<u8>,
    /// The kernel's dump.
    pub dump: Option<Vec<u8>>,
    /// The triage of the dump: its first hypotheses.
    pub triage: Vec<String>,
    /// Seconds of the host.
    pub seconds: f64,
}

/// The guest that every case runs in.
#[derive(Debug)]
pub struct Bench {
    which: Which,
    kernel: PathBuf,
    base: Image,
    folder: PathBuf,
    program: PathBuf,
}

impl Bench {
    /// Builds kernel, guest program and file system.
    pub fn new(which: Which, consent: Consent) -> Result<Self> {
        let program = program(consent)?;
        let mut base = image::base(consent)?;
        base.program("/bin/fuzz", &program)?;
        // The same program, set-id: what it does then is root's, and must not be its caller's.
        base.put("/bin/fuzz-root", 0o4755, Node::File(fs::read(&program)?));
        base.put("/etc/kwab/secret", 0o600, Node::File(Vec::new()));
        Ok(Self { which, kernel: which.image(consent)?, base, folder: paths::build("fuzz")?, program })
    }

    /// Boots a case and waits for its end.
    pub fn run(&self, case: &Case) -> Result<Answer> {
        let memory = self.folder.join("dumps.ram");
        let socket = self.folder.join("qmp");
        fs::remove_file(&memory).ok();
        let mut machine = self.machine(case)?;
        let ours = self.which == Which::Ours;
        if ours {
            machine.keep_dumps_in(&memory)?;
            machine.extra = crashes::qmp::arguments(&socket).to_vec();
        }
        let mut ask = || exam::ask_for_dump(&socket);
        let on_silence = ours.then_some(OnSilence { after: exam::SILENCE, act: &mut ask });
        let mut report = Report::default();
        let outcome = qemu::run_asking(&machine, limits(case), on_silence, |line| {
            report.line(line);
            if line.contains("kwab: dump of ") && !line.contains("live") { Next::Stop } else { Next::Go }
        })?;
        fs::remove_file(&socket).ok();
        if let Some((kind, text)) = lost(&outcome.ending, &outcome.serial) {
            let programs = report.last_programs(case.workers);
            report.findings.push(Finding { kind: kind.to_owned(), text, programs });
        }
        let dump = if ours { exam::best(&fs::read(&memory).context("the memory for dumps")?) } else { None };
        fs::remove_file(&memory).ok();
        let triage = dump.as_deref().map_or_else(|| Ok(Vec::new()), |dump| self.triage(dump))?;
        Ok(Answer { report, serial: outcome.serial, dump, triage, seconds: outcome.elapsed.as_secs_f64() })
    }

    /// A program of a seed as text, without running it.
    pub fn print(&self, seed: u64, only: &str) -> Result<String> {
        let (number, steps) = only.split_once('=').unwrap_or((only, "all"));
        let call = Call::new(&self.program).args(["print", &seed.to_string(), number, steps]);
        Ok(call.capture().context("writing a program to a file")?.stdout)
    }

    fn machine(&self, case: &Case) -> Result<Machine> {
        let mut image = self.base.clone();
        let numbers = [case.seed, case.seconds, u64::from(case.programs), u64::from(case.workers)];
        let head = ["/bin/fuzz".to_owned(), "supervise".to_owned()];
        let without = case.without.iter().map(|call| format!("-{call}"));
        let words: Vec<String> =
            head.into_iter().chain(numbers.map(|n| n.to_string())).chain(without).chain(case.only.clone()).collect();
        boot::put_command(&mut image, &words);
        let initrd = self.folder.join("fuzz.cpio");
        paths::write(&initrd, &image.archive())?;
        let level = if self.which == Which::Ours { "loglevel=4 coredump=off" } else { "loglevel=1 oops=panic" };
        let options = format!("{} quiet {level} rdinit=/sbin/oneshot", self.which.options());
        let mut machine = Machine::new(self.kernel.clone(), initrd, options);
        machine.cpus = case.cpus;
        machine.memory_mib = case.memory;
        Ok(machine)
    }

    fn triage(&self, dump: &[u8]) -> Result<Vec<String>> {
        let room = Room {
            kernel: self.kernel.clone(),
            initrd: PathBuf::new(),
            options: String::new(),
            folder: self.folder.clone(),
        };
        let triage = exam::judge(dump, &room)?;
        Ok(triage
            .hypotheses
            .iter()
            .take(3)
            .map(|first| format!("{:.2} {} [{}]", first.score, first.claim, first.rule))
            .collect())
    }
}

/// The guest program, with its table of calls made from the kernel's.
fn program(consent: Consent) -> Result<PathBuf> {
    let folder = paths::root().join("testing/guest");
    let own = folder.join("fuzz");
    let generated = paths::build("guest")?.join("fuzz-abi");
    fs::create_dir_all(&generated)?;
    let (header, text) = (generated.join("abi.h"), abi::header(&contracts::coverage::answered()?));
    if fs::read_to_string(&header).ok().as_deref() != Some(&text) {
        paths::write(&header, text.as_bytes())?;
    }
    let mut sources = guest::c_files(&own)?;
    sources.sort();
    let result = paths::build("guest")?.join("fuzz");
    let includes: [&Path; 3] = [&folder, &own, &generated];
    guest::compile(&sources, &includes, "-O2", guest::Link::Static, &result, consent)?;
    Ok(result)
}

/// Guest time stands still on a busy host, so the host is patient.
fn limits(case: &Case) -> Limits {
    let mut limits = Limits::seconds(case.seconds * 3 + 180);
    limits.silence = std::time::Duration::from_secs(60);
    limits
}

/// A machine that did not come to its end, as a finding: its kind and text.
fn lost(ending: &Ending, serial: &[u8]) -> Option<(&'static str, String)> {
    match ending {
        Ending::Exited(0 | 1) => None,
        Ending::Exited(status) => Some(("supervisor", format!("ended with status {status}"))),
        Ending::Panicked(line) => Some(panic(serial).unwrap_or(("panic", line.clone()))),
        Ending::Enough => Some(panic(serial).unwrap_or(("panic", "a dump without a message".to_owned()))),
        Ending::Hung => Some(("hang", "nothing on the console".to_owned())),
        Ending::TimedOut => Some(("hang", "not finished in three times its time limit".to_owned())),
        Ending::Stopped(code) => Some(("reset", format!("the machine stopped (QEMU: {code:?})"))),
    }
}

/// What our kernel says about its end, in its event; one that was asked for is that of a machine that hung.
fn panic(serial: &[u8]) -> Option<(&'static str, String)> {
    let text = String::from_utf8_lossy(serial);
    let event = text.lines().find(|line| line.contains("\"type\":\"panic\""))?;
    let (_, rest) = event.split_once("\"message\":\"")?;
    let (message, rest) = rest.split_once('"')?;
    let where_ = rest.split("\"addr\":\"").skip(1).take(4).filter_map(|part| part.split('"').next());
    let kind = if message.contains("non-maskable") { "hang" } else { "panic" };
    Some((kind, format!("{message} at {}", where_.collect::<Vec<_>>().join(" "))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_own_words_are_the_finding() {
        let serial = b"[PANIC] CPU=0\n\
            DBG {\"type\":\"panic\",\"seq\":2,\"message\":\"lock taken twice\",\"backtrace\":[{\"addr\":\"0x12\"}]}\n";
        let ending = Ending::Panicked("[PANIC] CPU=0".to_owned());
        assert_eq!(lost(&ending, serial), Some(("panic", "lock taken twice at 0x12".to_owned())));
        assert_eq!(lost(&ending, b"Kernel panic: x"), Some(("panic", "[PANIC] CPU=0".to_owned())));
        assert_eq!(lost(&Ending::Exited(1), b""), None);
    }
}
