//! Tests what triage says of programs that die by mistakes of their own: the class first, and the function.

use anyhow::{Context as _, Result, ensure};
use kwab::analysis::verify::Backing;
use kwab::analysis::{images, triage};
use kwab::model::Dump;
use kwab::symbols::{Finder, IndexCache};

use super::{dumps_in, fresh_memory};
use crate::kernel::Which;
use crate::qemu::{self, Ending, Limits, run::Next};
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

/// Lets the program die in every way; how many of them the first hypothesis tells.
pub fn check(cpus: u32, consent: Consent) -> Result<usize> {
    let program = guest::program("deaths", consent)?;
    let ways: Vec<&str> = MISTAKES.iter().map(|mistake| mistake.way).collect();
    let script = format!("for way in {}; do /bin/deaths $way; done; true", ways.join(" "));
    let words = ["sh", "-c", &script];
    let mut image = image::base(consent)?;
    image.program("/bin/deaths", &program)?;
    boot::put_command(&mut image, &words.map(str::to_owned));
    let initramfs = paths::build("images")?.join("mistakes.cpio");
    paths::write(&initramfs, &image.archive())?;
    let file = fresh_memory("mistakes")?;
    let once = boot::Options::once(Which::Ours, &words).from_initramfs(initramfs);
    let mut machine = boot::machine(&once, consent)?;
    machine.cpus = cpus;
    machine.keep_dumps_in(&file)?;
    let outcome = qemu::run(&machine, Limits::seconds(120), |_| Next::Go)?;
    ensure!(outcome.ending == Ending::Exited(0), "the script ended with {:?}", outcome.ending);
    let dumps = dumps_in(&file)?;
    ensure!(dumps.len() == MISTAKES.len(), "{} dumps of {} deaths", dumps.len(), MISTAKES.len());
    for (bytes, mistake) in dumps.into_iter().zip(&MISTAKES) {
        let dump = Dump::from_bytes(bytes)?;
        let case = dump.case();
        let has_path = |path: &[u8]| case.vmas.iter().any(|vma| vma.path == Some(path));
        ensure!(mistake.way != "past-end" || has_path(b"/tmp/short"), "no mapping of /tmp/short: it lies in a mount");
        let mut finder = Finder::new(vec![program.clone()], false);
        let images = images::load(&case, &mut finder, &IndexCache::none());
        let told = triage(&case, &images.symbols, &Backing::none(), "mistakes");
        let first = told.hypotheses.first().with_context(|| format!("{}: no hypothesis", mistake.way))?;
        ensure!(first.rule == mistake.rule, "{}: {} [{}]", mistake.way, first.claim, first.rule);
        let said = |text: &String| text.contains(mistake.function);
        let named = said(&first.claim) || first.evidence.iter().any(|fact| said(&fact.text));
        ensure!(named, "{}: {} is not named in {first:#?}", mistake.way, mistake.function);
    }
    Ok(MISTAKES.len())
}
