//! Writes folded stacks, one `outer;inner weight` per line, as flame-graph tools read them.
//!
//! The function trace gives time: each stack weighs the nanoseconds (or ticks) spent in its innermost span itself.
//! Without a trace, the backtraces of the dump are the stacks, and each counts once.

use std::collections::BTreeMap;
use std::io::{self, Write};

use kwab_format::SectionKind;
use kwab_format::record::Frame;

use super::spans::{spans, ticks_per_us};
use crate::analysis::threads::printed_frames;
use crate::analysis::verify::Backing;
use crate::analysis::{Context, text};
use crate::model::{Dump, Located};
use crate::symbols::Symbols;

/// Writes the stacks; how many lines there are.
///
/// # Errors
/// Those of the output.
pub fn folded(dump: &Dump, symbols: &Symbols, out: &mut dyn Write) -> io::Result<usize> {
    let mut stacks = of_spans(dump);
    if stacks.is_empty() {
        stacks = of_backtraces(dump, symbols);
    }
    for (stack, weight) in &stacks {
        writeln!(out, "{stack} {weight}")?;
    }
    Ok(stacks.len())
}

fn of_spans(dump: &Dump) -> BTreeMap<String, u64> {
    let per_ns = ticks_per_us(dump).map_or(1.0, |per_us| per_us / 1e3);
    let mut stacks = BTreeMap::new();
    for span in spans(dump).0 {
        let Some(end) = span.end else { continue };
        let own = (end - span.begin).saturating_sub(span.inside);
        let names: Vec<String> = span.path.names().iter().map(|name| frame(name)).collect();
        let weight = (own as f64 / per_ns).round() as u64;
        if weight > 0 {
            *stacks.entry(format!("CPU{};{}", span.cpu, names.join(";"))).or_default() += weight;
        }
    }
    stacks
}

fn of_backtraces(dump: &Dump, symbols: &Symbols) -> BTreeMap<String, u64> {
    let case = dump.case();
    let mut stacks = BTreeMap::new();
    let mut add = |head: String, names: Vec<String>| {
        if !names.is_empty() {
            let inner: Vec<String> = names.iter().rev().map(|name| frame(name)).collect();
            *stacks.entry(format!("{};{}", frame(&head), inner.join(";"))).or_default() += 1;
        }
    };
    let dead = Context::new(&case, symbols, &Backing::none());
    let function = |label: &str| label.split("+0x").next().unwrap_or(label).to_owned();
    let who = if dead.death.program.is_empty() { "kernel".to_owned() } else { dead.death.program.clone() };
    add(who, dead.trace.iter().map(|frame| function(&frame.label())).collect());
    let mut traces: BTreeMap<u32, Vec<_>> = BTreeMap::new();
    for frame in case.frames.iter().filter(|frame| frame.at.kind != SectionKind::TASKS) {
        traces.entry(frame.trace.unwrap_or(0)).or_default().push(frame);
    }
    let of_tasks = printed_frames(&case);
    let of_tasks = case.tasks.iter().filter_map(|task| Some((Some(task), of_tasks.get(&task.at)?)));
    // The first task of each process: the last that is inserted.
    let processes: BTreeMap<u32, _> = case.tasks.iter().rev().filter_map(|task| Some((task.pid?, task))).collect();
    let named = |frames: &[&Located<Frame<'_>>]| processes.get(&frames.iter().find_map(|frame| frame.pid)?).copied();
    // The first trace is the death's own, which is there already.
    let others = traces.values().skip(1).map(|frames| (named(frames), frames));
    for (task, frames) in others.chain(of_tasks) {
        let pid = frames.iter().find_map(|frame| frame.pid).unwrap_or(0);
        let task = task.map(|task| text(task.comm));
        let name = |frame: &&Located<Frame<'_>>| match frame.symbol {
            Some(symbol) => text(Some(symbol)).trim().to_owned(),
            None => format!("{:#x}", frame.addr.unwrap_or(0)),
        };
        add(task.unwrap_or_else(|| format!("pid {pid}")), frames.iter().map(name).collect());
    }
    stacks
}

/// A name without the characters that separate frames and weights.
fn frame(name: &str) -> String {
    let clean: String =
        name.chars().map(|c| if c == ';' || c.is_whitespace() || c.is_control() { '_' } else { c }).collect();
    if clean.is_empty() { "?".to_owned() } else { clean }
}
