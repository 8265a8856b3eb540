//! Tests dumps without a kernel's death: of programs that a signal ends, and of a live system.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result, bail, ensure};
use kwab_format::SectionKind;
use kwab_format::record::{CauseKind, RegId};

use super::{Seen, dumps_in, fresh_memory, guest};
use crate::qemu::{self, Ending, Limits, run::Next};
use crate::setup::Consent;

/// Every signal whose default action ends a program (signal(7)), and one real-time signal.
const FATAL: [u32; 24] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 24, 25, 26, 27, 29, 30, 31, 40];

/// Sections that a program's dump is not worth much without.
const WANTED: [SectionKind; 8] = [
    SectionKind::IDENTITY,
    SectionKind::CAUSE,
    SectionKind::REGISTERS,
    SectionKind::STACKS,
    SectionKind::SYSCALLS,
    SectionKind::MEMORY_MAP,
    SectionKind::PAGE_TABLE,
    SectionKind::IMAGES,
];

/// Lets a program die of each fatal signal: how many dumps there are, all of them sound.
pub fn signals(cpus: u32, consent: Consent) -> Result<usize> {
    let list: Vec<String> = FATAL.iter().map(u32::to_string).collect();
    // The shell does not die of SIGQUIT.
    let die = "case $n in 3) timeout -s 3 1 sleep 9;; *) sh -c \"kill -$n \\$\\$\";; esac";
    let script = format!("for n in {}; do {die}; done; true", list.join(" "));
    let file = fresh_memory("signals")?;
    let mut machine = guest(&script, cpus, consent)?;
    machine.keep_dumps_in(&file)?;
    let outcome = qemu::run(&machine, Limits::seconds(120), |_| Next::Go)?;
    ensure!(outcome.ending == Ending::Exited(0), "the script ended with {:?}", outcome.ending);
    let mut died = BTreeSet::new();
    for bytes in dumps_in(&file)? {
        let seen = Seen::of(&bytes)?;
        let signal = seen.signal.context("a dump without a signal")?;
        let about = || format!("the dump of signal {signal}");
        sound(&seen, CauseKind::FATAL_SIGNAL).with_context(about)?;
        let missing: Vec<_> = WANTED.iter().filter(|kind| !seen.sections.contains(kind)).collect();
        ensure!(missing.is_empty(), "signal {signal}: no sections {missing:?}");
        let registers = seen.fault().with_context(about)?;
        ensure!(
            registers.get(&RegId::CS).is_some_and(|cs| cs & 3 == 3),
            "signal {signal}: not the program's registers"
        );
        ensure!(died.insert(signal), "two dumps of signal {signal}");
    }
    ensure!(died == BTreeSet::from(FATAL), "dumps of the signals {died:?}");
    Ok(died.len())
}

/// Lets init overflow its stack: the kernel must end it and then die of that, not run it into its fault for ever.
pub fn init_faults(cpus: u32, consent: Consent) -> Result<usize> {
    let file = fresh_memory("init-faults")?;
    let mut machine = guest("true", cpus, consent)?;
    machine.append = format!("{} rdinit=/bin/sh -c \"deeper() {{ deeper; }}; deeper\"", machine.append);
    machine.keep_dumps_in(&file)?;
    qemu::run(&machine, Limits::seconds(30), |_| Next::Go)?;
    let dumps: Vec<Seen> = dumps_in(&file)?.iter().map(|bytes| Seen::of(bytes)).collect::<Result<_>>()?;
    // The kernel's own comes first, whenever it was written.
    let [kernel, program] = &dumps[..] else { bail!("{} dumps instead of init's and the kernel's", dumps.len()) };
    sound(program, CauseKind::FATAL_SIGNAL)?;
    ensure!(program.signal == Some(11), "init died of signal {:?}", program.signal);
    sound(kernel, CauseKind::PANIC)?;
    ensure!(kernel.message.contains("Attempted to kill init!"), "message `{}`", kernel.message);
    Ok(dumps.len())
}

/// How many live dumps are taken.
const LIVE: usize = 3;

/// Takes dumps of a system under load, as `cat /proc/kwab` gives them: bytes of all, each sound.
pub fn live(cpus: u32, consent: Consent) -> Result<usize> {
    let script = "for i in 1 2 3 4 5 6; do (while :; do echo $i | cat >/dev/null; done) & done; sleep 1; \
                  for i in 1 2 3; do cat /proc/kwab >/tmp/$i; done; \
                  for i in 1 2 3; do echo LIVE-BEGIN; xxd -p /tmp/$i; echo LIVE-END; done";
    let machine = guest(script, cpus, consent)?;
    let mut dumps: Vec<Vec<u8>> = Vec::new();
    let mut inside = false;
    let mut broken = None;
    qemu::run(&machine, Limits::seconds(240), |line| {
        match line {
            "LIVE-BEGIN" => {
                inside = true;
                dumps.push(Vec::new());
            }
            "LIVE-END" => inside = false,
            _ if inside => match (dumps.last_mut(), from_hex(line)) {
                (Some(dump), Some(bytes)) => dump.extend(bytes),
                _ => broken = Some(line.to_owned()),
            },
            _ => {}
        }
        if dumps.len() == LIVE && !inside { Next::Stop } else { Next::Go }
    })?;
    ensure!(broken.is_none(), "not hexadecimal: {broken:?}");
    ensure!(dumps.len() == LIVE && !inside, "{} live dumps on the console", dumps.len());
    for (number, bytes) in dumps.iter().enumerate() {
        let seen = Seen::of(bytes).with_context(|| format!("live dump {number}"))?;
        sound(&seen, CauseKind::LIVE).with_context(|| format!("live dump {number}"))?;
        ensure!(seen.cpus.len() == cpus as usize, "live dump {number} describes {} processors", seen.cpus.len());
    }
    Ok(dumps.iter().map(Vec::len).sum())
}

/// No defect, an end, and of the right kind.
fn sound(seen: &Seen, kind: CauseKind) -> Result<()> {
    ensure!(seen.defects.is_empty(), "defects: {:?}", seen.defects);
    ensure!(seen.kind == Some(kind), "kind {:?}", seen.kind);
    let complete = seen.complete.context("it has no end section")?;
    ensure!(complete == seen.dropped.is_empty(), "said to be complete: {complete}, left out: {:?}", seen.dropped);
    Ok(())
}

fn from_hex(line: &str) -> Option<Vec<u8>> {
    let digits: Vec<u32> = line.chars().map(|digit| digit.to_digit(16)).collect::<Option<_>>()?;
    let pair = |pair: &[u32]| u8::try_from(pair.first()? << 4 | pair.get(1)?).ok();
    digits.chunks(2).map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_torn_line_of_a_live_dump_is_not_taken_for_bytes() {
        assert_eq!(from_hex("4b57"), Some(vec![0x4b, 0x57]));
        assert_eq!(from_hex("4b5"), None);
        assert_eq!(from_hex("4b[2]57"), None);
    }
}
