//! Tests dumps over a serial line that damages one byte of a hundred: with parity lines nothing of them is lost.

use anyhow::{Context as _, Result, ensure};
use kwab::analysis::verify::Backing;
use kwab::analysis::{Triage, images, triage};
use kwab::model::Dump;
use kwab::symbols::{Finder, IndexCache};

use super::{Seen, deaths, machine};
use crate::kernel;
use crate::qemu::{self, Clock, Limits, run::Next};
use crate::setup::Consent;

/// What parity lines cost and what they mend.
#[derive(Clone, Debug, Default)]
pub struct Noise {
    /// Bytes of the dump.
    pub dump: usize,
    /// Bytes of its lines, and of its parity lines.
    pub lines: (usize, usize),
    /// Thousands of instructions without and with parity.
    pub instructions: (u64, u64),
    /// Lines that the noise damaged, of how many.
    pub damaged: (usize, usize),
}

/// Bytes that the line damages, of a million.
const RATE: u64 = 10_000;

/// A kernel dies with nothing but a serial line, without parity lines and with them; noise is put on the second log.
pub fn check(consent: Consent) -> Result<Noise> {
    let mut noise = Noise::default();
    let (_, without) = die("", consent)?;
    let (log, with) = die("dumpparity", consent)?;
    noise.instructions = (without, with);
    let length = |mark: &[u8]| lines(&log).filter(|line| line.starts_with(mark)).map(<[u8]>::len).sum();
    noise.lines = (length(b"KW1:"), length(b"KP1:"));
    ensure!(noise.lines.1 > 0, "the console has no parity lines");
    let clean = deaths::imported(&log)?;
    noise.dump = clean.len();
    let expected = judged(&clean)?;
    for seed in 1..=3 {
        let noisy = damaged(&log, seed);
        let of_dump = lines(&log).zip(lines(&noisy)).filter(|(line, _)| line.starts_with(b"K"));
        let damaged = of_dump.clone().filter(|(line, noisy)| line != noisy).count();
        noise.damaged = (damaged, of_dump.count());
        let bytes = deaths::imported(&noisy)?;
        same(&Seen::of(&clean)?, &Seen::of(&bytes)?).with_context(|| format!("with the noise of seed {seed}"))?;
        let told = judged(&bytes)?;
        ensure!(told == expected, "with the noise of seed {seed} triage says {told:?}, without it {expected:?}");
    }
    Ok(noise)
}

/// The console of a death, and the thousands of instructions that its dump took.
fn die(options: &str, consent: Consent) -> Result<(Vec<u8>, u64)> {
    let mut machine = machine("c fault", 1, consent)?;
    machine.clock = Clock::Instructions;
    machine.append = format!("{} {options}", machine.append);
    let outcome = qemu::run(&machine, Limits::seconds(120), |_| Next::Go)?;
    let took = deaths::microseconds(&outcome);
    Ok((outcome.serial, took))
}

fn lines(log: &[u8]) -> impl Iterator<Item = &[u8]> + Clone {
    log.split_inclusive(|byte| *byte == b'\n')
}

/// The log with one byte of a hundred replaced; line ends stay, so that lines can be counted.
fn damaged(log: &[u8], seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let begins = log.windows(4).position(|mark| mark == b"KW1:").unwrap_or(0);
    let noisy = |(at, byte): (usize, &u8)| {
        let hit = random() % 1_000_000 < RATE && at >= begins && *byte != b'\n';
        if hit { (random() >> 20) as u8 | 0x20 } else { *byte }
    };
    log.iter().enumerate().map(noisy).collect()
}

/// Everything that the dump itself says.
fn same(clean: &Seen, noisy: &Seen) -> Result<()> {
    ensure!(noisy.defects.is_empty(), "defects: {:?}", noisy.defects);
    ensure!(noisy.message == clean.message, "the message is `{}`, not `{}`", noisy.message, clean.message);
    ensure!(noisy.registers == clean.registers && noisy.cpus == clean.cpus, "the registers are others");
    ensure!(noisy.frames == clean.frames && noisy.sleepers == clean.sleepers, "the stacks are others");
    ensure!(noisy.memory == clean.memory, "the memory is another");
    Ok(())
}

/// What triage says: score, rule and words of each hypothesis.
fn judged(bytes: &[u8]) -> Result<Vec<String>> {
    let dump = Dump::from_bytes(bytes.to_vec()).context("not a dump")?;
    let case = dump.case();
    let mut finder = Finder::new(vec![kernel::build()?], false);
    let images = images::load(&case, &mut finder, &IndexCache::none());
    let Triage { hypotheses, .. } = triage(&case, &images.symbols, &Backing::none(), "DUMP");
    let told = hypotheses.iter().map(|it| format!("{} {:.2} {}", it.rule, it.score, it.claim));
    let hypotheses: Vec<String> = told.collect();
    ensure!(!hypotheses.is_empty(), "triage says nothing");
    Ok(hypotheses)
}
