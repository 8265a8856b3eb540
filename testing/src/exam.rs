//! The exam of the toolchain: bugs planted in our kernel, and whether the first hypothesis names them.
//!
//! A [`Question`] plants one bug, runs the guest programs that make it hurt, and says what the truth is. [`sit`] boots
//! a fresh guest for it, collects the dump that the dying kernel left in its memory region, and lets the library judge
//! it as `kwab triage` does. Nothing but the dump reaches the judge; the kernel writes nowhere what was planted.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result};
use kwab::analysis::verify::Backing;
use kwab::analysis::{Triage, images, triage};
use kwab::model::Dump;
use kwab::symbols::{Finder, IndexCache};
use kwab_format::record::CauseKind;
use kwab_format::stream::Dumps;

use crate::qemu::{self, Limits, Machine, OnSilence, run::Next};

pub mod row;

/// A bug to be found.
#[derive(Clone, Copy, Debug)]
pub struct Question {
    /// Its name on the kernel's command line; empty for the kernel as it is.
    pub fault: &'static str,
    /// The name of the files that it is confined to; empty for all.
    pub files: &'static str,
    /// What the kernel measures meanwhile (`debug=`); empty for nothing.
    pub debug: &'static str,
    /// The guest programs that make it hurt.
    pub programs: &'static [&'static str],
    /// Processors it takes.
    pub cpus: u32,
    /// The rules that tell the truth as the first hypothesis, each with what it is about.
    pub truth: &'static [(&'static str, Option<&'static str>)],
    /// Whether nothing dies by itself, so that the host has to ask for the dump by an NMI.
    pub hangs: bool,
}

const fn question(
    fault: &'static str,
    programs: &'static [&'static str],
    truth: &'static [(&'static str, Option<&'static str>)],
) -> Question {
    Question { fault, files: "", debug: "", programs, cpus: 1, truth, hangs: false }
}

/// Every program of the guest, as the clean run has them.
const ALL: &[&str] = &[
    "boundary",
    "children",
    "constants",
    "huge",
    "jit",
    "names",
    "once",
    "pieces",
    "pipes",
    "reload",
    "renew",
    "runs",
    "spawn",
    "statistics",
    "threads",
    "wild-argument",
];

/// The exam; the first question has no bug to find.
pub const QUESTIONS: &[Question] = &[
    Question { cpus: 2, debug: "trace,profile", ..question("", ALL, &[]) },
    // Once is enough: a frame freed twice may soon have another owner, and then its counts are right again.
    question("cache-freed", &["once"], &[("AUDIT", Some("VM-FREE")), ("AUDIT", Some("VM-COUNT-LOW"))]),
    Question { hangs: true, ..question("cache-writable", &["reload"], &[("AUDIT", Some("VM-CACHE-W"))]) },
    question("elf-protection", &["constants"], &[("AUDIT", Some("VM-ELF"))]),
    question("fork-shares", &["children"], &[("AUDIT", Some("VM-SHARE"))]),
    question("huge-executable", &["huge"], &[("AUDIT", Some("VM-RIGHTS-X"))]),
    question("huge-uncounted", &["huge"], &[("AUDIT", Some("VM-FREE")), ("AUDIT", Some("VM-COUNT-LOW"))]),
    Question { files: "exam", ..question("image-boundary", &["boundary"], &[("PAGE", None)]) },
    question("leak", &["pipes"], &[("OOM", None)]),
    Question { cpus: 2, hangs: true, ..question("lock-order", &["names"], &[("DEADLOCK", None)]) },
    Question { hangs: true, ..question("lost-wakeup", &["spawn"], &[("LOST-WAKE", None)]) },
    question("no-coalescing", &["pieces"], &[("PIECES", None)]),
    question("null-dereference", &["statistics"], &[("NULL", None)]),
    Question { hangs: true, ..question("nx-tables", &["jit"], &[("AUDIT", Some("VM-LEVEL"))]) },
    Question { files: "exam", ..question("prefault-boundary", &["boundary"], &[("PAGE", None)]) },
    Question { debug: "trace,profile", ..question("prefault-eager", &["runs"], &[("EAGER", None)]) },
    Question { hangs: true, ..question("prefault-writable", &["reload"], &[("AUDIT", Some("VM-CACHE-W"))]) },
    question("references-kept", &["children"], &[("LEAK", None), ("AUDIT", Some("VM-LEAK"))]),
    question("stack-overflow", &["statistics"], &[("STACK", None)]),
    question("template-stale", &["renew"], &[("PAGE", None)]),
    Question { cpus: 2, ..question("tlb-shootdown", &["threads"], &[("TLB", None)]) },
    question("uncounted-frames", &["constants"], &[("AUDIT", Some("VM-COUNT-LOW"))]),
    question("use-after-free", &["statistics"], &[("POISON", None)]),
    question("user-pointer", &["wild-argument"], &[("USER-PTR", None)]),
];

impl Question {
    /// What it is called in tables.
    #[must_use]
    pub fn name(&self) -> &'static str {
        if self.fault.is_empty() { "clean" } else { self.fault }
    }

    /// Whether a triage tells the truth.
    #[must_use]
    pub fn is_answered(&self, triage: &Triage) -> bool {
        match (self.truth, triage.hypotheses.first()) {
            ([], _) => !triage.has_findings(),
            (truth, Some(first)) => truth.contains(&(first.rule, first.about)),
            (_, None) => false,
        }
    }
}

/// What came out of a question.
#[derive(Debug)]
pub struct Answer {
    /// The dump the kernel wrote, as bytes.
    pub dump: Vec<u8>,
    /// What the library says about it.
    pub triage: Triage,
}

/// Where the guest runs: kernel, initramfs, and a folder for its memory.
#[derive(Debug)]
pub struct Room {
    /// The kernel image that QEMU loads.
    pub kernel: PathBuf,
    /// The file system, with the exam's programs.
    pub initrd: PathBuf,
    /// Options of every boot.
    pub options: String,
    /// A folder of its own.
    pub folder: PathBuf,
}

/// Guest memory, MiB; a leak has to fill it.
const MEMORY: u32 = 192;
/// The longest run.
const LIMITS: Limits = Limits { total: Duration::from_secs(240), silence: Duration::from_secs(120) };
/// A guest that said nothing for so long hangs.
pub const SILENCE: Duration = Duration::from_secs(20);

/// Boots a guest with the bug, and judges what it leaves behind. `None` when it leaves nothing.
///
/// # Errors
/// When the guest cannot be run at all.
pub fn sit(question: &Question, room: &Room) -> Result<(Option<Answer>, Vec<u8>)> {
    let memory = room.folder.join(format!("{}.ram", question.name()));
    let socket = room.folder.join(format!("{}.qmp", question.name()));
    let mut machine = Machine::new(room.kernel.clone(), room.initrd.clone(), options(question, room));
    machine.cpus = question.cpus;
    machine.memory_mib = MEMORY;
    std::fs::remove_file(&memory).ok();
    machine.keep_dumps_in(&memory)?;
    machine.extra = vec!["-qmp".to_owned(), format!("unix:{},server=on,wait=off", socket.display())];
    let mut ask = || ask_for_dump(&socket);
    let on_silence = question.hangs.then_some(OnSilence { after: SILENCE, act: &mut ask });
    let outcome = qemu::run_asking(&machine, LIMITS, on_silence, |line| {
        if line.contains("kwab: dump of ") { Next::Stop } else { Next::Go }
    })?;
    let region = std::fs::read(&memory).context("the guest's memory for dumps")?;
    std::fs::remove_file(&memory).ok();
    std::fs::remove_file(&socket).ok();
    let answer = match best(&region) {
        Some(dump) => Some(Answer { triage: judge(&dump, room)?, dump }),
        None => None,
    };
    Ok((answer, outcome.serial))
}

/// The kernel's command line. The watchdog is patient: on a busy host a processor of the guest may not run for seconds.
pub fn options(question: &Question, room: &Room) -> String {
    let inject = match (question.fault, question.files) {
        ("", _) => String::new(),
        (fault, "") => format!(" inject={fault}"),
        (fault, files) => format!(" inject={fault}:{files}"),
    };
    let debug = if question.debug.is_empty() { String::new() } else { format!(" debug={}", question.debug) };
    format!("{} quiet loglevel=4 watchdog=15 hung_task=10 rdinit=/sbin/oneshot{inject}{debug}", room.options)
}

/// Asks a guest that hangs for a dump, by an NMI through QEMU's monitor at `socket`.
pub fn ask_for_dump(socket: &Path) {
    // A guest that is gone meanwhile needs no dump.
    nmi(socket).ok();
}

/// QEMU's machine protocol: a greeting, then one line of JSON for each command.
fn nmi(socket: &Path) -> Result<()> {
    let mut stream = UnixStream::connect(socket)?;
    let mut lines = BufReader::new(stream.try_clone()?).lines();
    lines.next().context("QEMU sent no greeting")??;
    for command in ["qmp_capabilities", "inject-nmi"] {
        writeln!(stream, "{{\"execute\": \"{command}\"}}")?;
        lines.next().context("QEMU does not answer")??;
    }
    Ok(())
}

/// The dump of the kernel's own death, else that of the first program that died, else the one that was asked for.
#[must_use]
pub fn best(region: &[u8]) -> Option<Vec<u8>> {
    let rank = |bytes: &Vec<u8>| {
        let kind = Dump::from_bytes(bytes.clone())
            .ok()
            .and_then(|dump| dump.case().causes.first().and_then(|cause| cause.kind));
        match kind {
            Some(CauseKind::FATAL_SIGNAL) => 1,
            Some(CauseKind::SYSRQ | CauseKind::NMI) => 2,
            Some(_) => 0,
            None => 3,
        }
    };
    let dumps = Dumps::new(region).map(|found| found.bytes.to_vec());
    // Of several programs the one that died first lies first.
    dumps.min_by_key(rank)
}

/// What the library says, with the kernel's own symbols.
///
/// # Errors
/// When the bytes are no dump.
pub fn judge(bytes: &[u8], room: &Room) -> Result<Triage> {
    let dump = Dump::from_bytes(bytes.to_vec())?;
    let case = dump.case();
    let mut finder = Finder::new(vec![room.kernel.clone()], false);
    let images = images::load(&case, &mut finder, &IndexCache::of_user());
    Ok(triage(&case, &images.symbols, &Backing::none(), "DUMP"))
}
