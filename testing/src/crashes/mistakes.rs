//! Tests what triage says of programs that die or hang by mistakes of their own: the class first, and the function.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use kwab::analysis::verify::Backing;
use kwab::analysis::{images, triage};
use kwab::model::Dump;
use kwab::symbols::{Finder, IndexCache};

use super::{dumps_in, fresh_memory, qmp};
use crate::kernel::Which;
use crate::qemu::{self, Ending, Limits, Machine, OnSilence, run::Next};
use crate::setup::Consent;
use crate::{boot, guest, image, paths};

/// A way to die of `testing/guest/deaths.c`.
struct Mistake {
    way: &'static str,
    /// The rule of the first hypothesis.
    rule: &'static str,
    /// The function that it names.
    function: &'static str,
}

const fn mistake(way: &'static str, rule: &'static str, function: &'static str) -> Mistake {
    Mistake { way, rule, function }
}

const MISTAKES: [Mistake; 12] = [
    mistake("divide", "DIVIDE", "divide_shares"),
    mistake("illegal", "ILLEGAL", "run_unknown_instruction"),
    mistake("past-end", "BUS", "read_past_end"),
    mistake("constant", "READ-ONLY", "write_constant"),
    mistake("smash", "SMASHED", "copy_name"),
    mistake("free-twice", "HEAP", "free_twice"),
    mistake("overrun", "HEAP", "overrun_block"),
    mistake("null", "NULL", "read_field"),
    mistake("deep", "STACK", "descend"),
    mistake("hook", "JUMP-ZERO", "call_hook"),
    mistake("abort", "ABORT", "check_state"),
    // Last: it takes the machine's memory.
    mistake("memory", "OOM-KILL", "keep_all"),
];

/// Ways not to go on. Each ends its machine, which is asked for a dump once it is silent.
const HANGS: [Mistake; 2] =
    [mistake("deadlock", "THREADS", "move_backwards and move_forwards"), mistake("turn", "LOOP", "wait_for_turn")];

/// A machine that says nothing for so long hangs; a thread is in a loop when it has run for a second.
const SILENCE: Duration = Duration::from_secs(4);

/// Lets the program die and hang in every way; how many of them the first hypothesis tells.
pub fn check(cpus: u32, consent: Consent) -> Result<usize> {
    let program = guest::program("deaths", consent)?;
    let ways: Vec<&str> = MISTAKES.iter().map(|mistake| mistake.way).collect();
    let script = format!("for way in {}; do /bin/deaths $way; done; true", ways.join(" "));
    let file = fresh_memory("mistakes")?;
    let machine = machine(&script, &program, &file, cpus, consent)?;
    let outcome = qemu::run(&machine, Limits::seconds(120), |_| Next::Go)?;
    ensure!(outcome.ending == Ending::Exited(0), "the script ended with {:?}", outcome.ending);
    let dumps = dumps_in(&file)?;
    ensure!(dumps.len() == MISTAKES.len(), "{} dumps of {} deaths", dumps.len(), MISTAKES.len());
    for (bytes, mistake) in dumps.into_iter().zip(&MISTAKES) {
        judge(bytes, mistake, &program)?;
    }
    for mistake in &HANGS {
        judge(hung(mistake, &program, cpus, consent)?, mistake, &program)?;
    }
    Ok(MISTAKES.len() + HANGS.len())
}

/// A machine that runs a script and keeps its dumps in a file.
fn machine(script: &str, program: &Path, file: &Path, cpus: u32, consent: Consent) -> Result<Machine> {
    let words = ["sh", "-c", script];
    let mut image = image::base(consent)?;
    image.program("/bin/deaths", program)?;
    boot::put_command(&mut image, &words.map(str::to_owned));
    let initramfs = paths::build("images")?.join("mistakes.cpio");
    paths::write(&initramfs, &image.archive())?;
    let once = boot::Options::once(Which::Ours, &words).from_initramfs(initramfs);
    let mut machine = boot::machine(&once, consent)?;
    machine.cpus = cpus;
    machine.keep_dumps_in(file)?;
    Ok(machine)
}

/// The dump of a machine in which the program hangs, asked for by a non-maskable interrupt.
fn hung(mistake: &Mistake, program: &Path, cpus: u32, consent: Consent) -> Result<Vec<u8>> {
    let (file, socket) = (fresh_memory("mistakes")?, paths::build("crashes")?.join("mistakes.qmp"));
    let mut machine = machine(&format!("/bin/deaths {}", mistake.way), program, &file, cpus, consent)?;
    machine.extra.extend(qmp::arguments(&socket));
    let mut ask = || {
        // A guest that ended meanwhile has no socket any more.
        let _ = qmp::Session::open(&socket).and_then(|mut session| session.execute("inject-nmi", ""));
    };
    let limits = Limits { silence: Duration::from_secs(60), ..Limits::seconds(120) };
    let is_last = |line: &str| if line.starts_with("kwab: dump of ") { Next::Stop } else { Next::Go };
    qemu::run_asking(&machine, limits, Some(OnSilence { after: SILENCE, act: &mut ask }), is_last)?;
    dumps_in(&file)?.pop().with_context(|| format!("{}: no dump", mistake.way))
}

/// Whether the first hypothesis tells the mistake by its class and names its function.
fn judge(bytes: Vec<u8>, mistake: &Mistake, program: &Path) -> Result<()> {
    let dump = Dump::from_bytes(bytes)?;
    let case = dump.case();
    let has_path = |path: &[u8]| case.vmas.iter().any(|vma| vma.path == Some(path));
    ensure!(mistake.way != "past-end" || has_path(b"/tmp/short"), "no mapping of /tmp/short: it lies in a mount");
    let mut finder = Finder::new(vec![program.to_owned()], false);
    let images = images::load(&case, &mut finder, &IndexCache::none());
    let told = triage(&case, &images.symbols, &Backing::none(), "mistakes");
    let first = told.hypotheses.first().with_context(|| format!("{}: no hypothesis", mistake.way))?;
    ensure!(first.rule == mistake.rule, "{}: {} [{}]", mistake.way, first.claim, first.rule);
    let said = |text: &String| text.contains(mistake.function);
    let named = said(&first.claim) || first.evidence.iter().any(|fact| said(&fact.text));
    ensure!(named, "{}: {} is not named in {first:#?}", mistake.way, mistake.function);
    Ok(())
}
