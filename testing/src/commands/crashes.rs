//! `cargo xtask crashes [NAME...] [--smp LIST] [--kills N] [--seed N]`: provokes every kind of death, checks the dump.
//!
//! Lets our kernel die in every way of a list (`testing/src/crashes/deaths.rs`), with each number of processors, and
//! checks that the dump has message and registers, that its end section says exactly what is missing, and that the
//! console told the same. Then the parts (`PARTS`), from the same deaths over the serial line to what a dump costs.
//! Names choose deaths and parts.

use std::process::ExitCode;

use anyhow::{Context as _, Result, bail, ensure};
use clap::Args;

use crate::crashes::deaths::{self, DEATHS};
use crate::crashes::{
    Seen, channels, dumps_in, fresh_memory, kills, levels, machine, memory, mistakes, noise, programs, state, story,
};
use crate::qemu::{self, Clock, Limits, Model, run::Next};
use crate::results;
use crate::setup::{self, Consent, Tool};

/// CrashesArguments of `crashes`.
#[derive(Debug, Args)]
pub struct CrashesArguments {
    /// Deaths and parts; without any, all.
    names: Vec<String>,
    /// Numbers of CPUs.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 2, 4])]
    smp: Vec<u32>,
    /// Machines killed in the middle of a dump.
    #[arg(long, default_value_t = 20)]
    kills: u32,
    /// What their moments start from.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

impl CrashesArguments {
    /// A quick choice: a few deaths on two processors.
    pub fn quick() -> Self {
        let names = [
            "fault",
            "overflow",
            "lockup",
            "block",
            "dump",
            "verify",
            "serial",
            "noise",
            "story",
            "signals",
            "mistakes",
            "init-faults",
            "sleepers",
            "sleepers-calls",
            "idle-hour",
            "levels",
            "kills",
            "kills-full",
        ]
        .map(String::from)
        .to_vec();
        Self { names, smp: vec![2], kills: 3, seed: 1 }
    }

    fn wants(&self, name: &str) -> bool {
        self.names.is_empty() || self.names.iter().any(|wanted| wanted == name)
    }
}

/// What was tried, and what came of it.
type Tried = Vec<(String, Result<String>)>;
type Part = fn(&CrashesArguments, Consent) -> Tried;

/// Everything but the deaths, by name.
const PARTS: &[(&str, Part)] = &[
    ("serial", |_, consent| {
        let deaths = DEATHS.iter().filter(|death| ["fault", "panic"].contains(&death.name));
        let tried = |death| deaths::check_serial(death, 2, consent).map(|bytes| format!("{bytes} bytes"));
        deaths.map(|death| (death.name.to_owned(), tried(death))).collect()
    }),
    ("noise", |_, consent| {
        let text = |n: noise::Noise| {
            let ((lines, parity), (without, with), (damaged, all)) = (n.lines, n.instructions, n.damaged);
            format!(
                "{} bytes; {lines} bytes of lines and {parity} of parity; {without} thousand instructions, with parity \
                 {with}; {damaged} of {all} lines damaged, nothing lost",
                n.dump
            )
        };
        vec![("1 % of bytes".into(), noise::check(consent).map(text))]
    }),
    ("story", |_, consent| {
        let text = |c: story::StoryComparison| format!("{} facts and {} system calls agree", c.facts, c.calls);
        vec![("the log and the dumps of one run".into(), story::compare(2, consent).map(text))]
    }),
    ("signals", |_, consent| {
        vec![("on 2".into(), programs::signals(2, consent).map(|count| format!("{count} sound dumps")))]
    }),
    ("mistakes", |_, consent| {
        vec![("on 2".into(), mistakes::check(2, consent).map(|count| format!("{count} deaths of programs told")))]
    }),
    ("init-faults", |_, consent| {
        let text = |count| format!("{count} dumps, of init and of the kernel");
        vec![("on 2".into(), programs::init_faults(2, consent).map(text))]
    }),
    ("live", |_, consent| {
        vec![("on 4 under load".into(), programs::live(4, consent).map(|bytes| format!("{bytes} bytes, sound")))]
    }),
    ("sleepers", |_, consent| {
        let text = |threads| format!("{threads} threads with saved registers");
        vec![("on 2".into(), state::sleepers(2, consent).map(text))]
    }),
    ("sleepers-calls", |_, consent| {
        let text = |processes| format!("calls of {processes} processes");
        vec![("on 1".into(), state::calls_of_sleepers(consent).map(text))]
    }),
    ("idle-hour", |_, consent| {
        let text = |events| format!("{events} events from before");
        vec![("on 1".into(), state::idle_hour(consent).map(text))]
    }),
    ("disk", |_, consent| {
        let tried = |model| channels::disk(model, consent).map(|bytes| format!("{bytes} bytes, sound"));
        [Model::Pc, Model::Q35].map(|model| (format!("on {model}"), tried(model))).into()
    }),
    ("levels", |_, consent| {
        let text = |costs: Vec<levels::LevelCost>| {
            let line = |cost: &levels::LevelCost| format!("{} {} bytes", cost.level, cost.bytes);
            costs.iter().map(line).collect::<Vec<_>>().join(", ")
        };
        vec![("64 MiB".into(), levels::check(consent).map(text))]
    }),
    ("levels-cost", |_, consent| {
        let text = |lines: Vec<String>| format!("\n          {}", lines.join("\n          "));
        vec![("64 MiB".into(), levels::measure(consent).map(text))]
    }),
    ("levels-table", |_, consent| {
        let sizes = levels::MACHINES.into_iter();
        sizes.map(|memory| (format!("{memory} MiB"), levels::table(memory, consent))).collect()
    }),
    ("pvpanic", |_, consent| vec![("the host".into(), channels::pvpanic(consent))]),
    ("memory", |_, consent| {
        let text = |c: memory::MemoryComparison| {
            format!("{} bytes in {} pieces and {} registers agree", c.bytes, c.pieces, c.registers)
        };
        vec![("beside QEMU's dump".into(), memory::compare(2, consent).map(text))]
    }),
    ("kills", |arguments, consent| kill(kills::What::Usual, arguments, consent)),
    ("kills-full", |arguments, consent| kill(kills::What::Full, arguments, consent)),
    ("cost", |_, consent| vec![("one dump".into(), cost(consent))]),
];

fn kill(what: kills::What, arguments: &CrashesArguments, consent: Consent) -> Tried {
    let text = |t: kills::Tally| {
        let (empty, cut, whole, sections) = (t.empty, t.cut, t.whole, t.sections);
        let cuts = t.cuts.iter().map(u32::to_string).collect::<Vec<_>>().join(" ");
        format!(
            "{empty} before the first section, {cut} cut, {whole} whole; {sections} sound sections\n          \
             cut after 0, 1, 2 … whole sections: {cuts}"
        )
    };
    let outcome = kills::run(what, arguments.kills, arguments.seed, consent).map(text);
    vec![(format!("{} machines", arguments.kills), outcome)]
}

/// Runs the command.
pub fn run(arguments: &CrashesArguments, consent: Consent) -> Result<ExitCode> {
    setup::require(&[Tool::Qemu], consent)?;
    for name in &arguments.names {
        let part = PARTS.iter().any(|(part, _)| part == name);
        let known = part || DEATHS.iter().any(|death| death.name == name);
        ensure!(known, "no crash or part is named {name}");
    }
    let mut failures = Vec::new();
    let mut report = |name: String, outcome: Result<String>| match outcome {
        Ok(text) => println!("ok      {name}: {text}"),
        Err(error) => {
            println!("FAILED  {name}: {error:#}");
            failures.push(format!("{name}: {error:#}"));
        }
    };
    for death in DEATHS.iter().filter(|death| arguments.wants(death.name)) {
        for &cpus in arguments.smp.iter().filter(|&&cpus| cpus > 1 || !death.several) {
            let outcome = deaths::check(death, cpus, consent).map(|(bytes, us)| format!("{bytes} bytes in {us} us"));
            report(format!("{} on {cpus}", death.name), outcome);
        }
    }
    for (name, part) in PARTS.iter().filter(|(name, _)| arguments.wants(name)) {
        for (what, outcome) in part(arguments, consent) {
            report(format!("{name}: {what}"), outcome);
        }
    }
    results::verdict(&failures)
}

/// Instructions and bytes of each part of a typical dump.
fn cost(consent: Consent) -> Result<String> {
    let file = fresh_memory("cost")?;
    let mut machine = machine("c panic", 1, consent)?;
    machine.clock = Clock::Instructions;
    machine.keep_dumps_in(&file)?;
    qemu::run(&machine, Limits::seconds(120), |_| Next::Go)?;
    let bytes = dumps_in(&file)?.pop().context("no dump")?;
    let seen = Seen::of(&bytes)?;
    let mut text = format!("{} bytes", bytes.len());
    let mut all = 0;
    for ((group, name), instructions) in &seen.counters {
        if group == "dump time" {
            let size = seen.counters.get(&("dump size".to_owned(), name.clone())).copied().unwrap_or(0);
            all += instructions;
            text.push_str(&format!("\n          {name:<14} {instructions:>9} instructions {size:>7} bytes"));
        }
    }
    ensure!(all > 0, "the dump does not record its cost");
    text.push_str(&format!("\n          {}", pace(consent)?));
    text.push_str(&format!("\n          {:<14} {all:>9} instructions", "together"));
    text.push_str(&format!("\n          {}", wall(consent)?));
    Ok(text)
}

/// The most that a typical dump may take of the host's time, in microseconds, and how many are timed.
const LONGEST: u64 = 50_000;
const TIMED: usize = 7;

/// How long a typical dump takes by the host's clock. The half that a busy host disturbs most does not count.
fn wall(consent: Consent) -> Result<String> {
    let death = DEATHS.iter().find(|death| death.name == "panic").context("no crash is named panic")?;
    let mut times = (0..TIMED).map(|_| Ok(deaths::check(death, 2, consent)?.1)).collect::<Result<Vec<u64>>>()?;
    times.sort_unstable();
    let (fastest, median) = (times[0], times[TIMED / 2]);
    ensure!(median < LONGEST, "a dump takes {median} us: {times:?}");
    Ok(format!("by the host's clock: fastest {fastest} us, median of {TIMED} {median} us"))
}

/// The memory channel beside a plain copy, in instructions.
fn pace(consent: Consent) -> Result<String> {
    let mut machine = machine("p", 1, consent)?;
    machine.clock = Clock::Instructions;
    machine.append = machine.append.replace("quiet loglevel=1", "loglevel=7");
    machine.keep_dumps_in(&fresh_memory("pace")?)?;
    let mut found = None;
    qemu::run(&machine, Limits::seconds(120), |line| match line.split_once("sysrq: ") {
        Some((_, words)) => {
            found = Some(words.to_owned());
            Next::Stop
        }
        None => Next::Go,
    })?;
    let words = found.context("the kernel did not measure its channel")?;
    let numbers: Vec<u64> = words.split(|c: char| !c.is_ascii_digit()).filter_map(|word| word.parse().ok()).collect();
    let [bytes, copy, channel, dump] = numbers[..] else { bail!("not understood: {words}") };
    let more = (channel as f64 / copy as f64 - 1.0) * 100.0;
    ensure!(more <= 20.0, "the channel takes {more:.0} % more instructions than a plain copy: {words}");
    Ok(format!("{bytes} bytes: plain copy {copy}, channel {channel} ({more:+.1} %), with records and checksums {dump}"))
}
