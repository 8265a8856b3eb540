//! Reads the function trace of a dump as spans: begin and end paired per processor.

use std::collections::BTreeMap;

use kwab_format::AnyRecord;
use kwab_format::record::Htrace;

use crate::analysis::{Dump, text};

/// A span that began; its end is absent when the trace ends inside it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Span {
    /// Processor.
    pub(super) cpu: u32,
    /// Names of the spans around it, outermost first, and its own.
    pub(super) path: Vec<String>,
    /// Ticks or nanoseconds at its begin.
    pub(super) begin: u64,
    /// The same at its end.
    pub(super) end: Option<u64>,
    /// Ticks spent in spans inside it.
    pub(super) inside: u64,
    /// What the span was given.
    pub(super) data: Option<u64>,
}

/// All spans in order of begin, and the ends that had no begin (the ring had overwritten it).
pub(super) fn spans(dump: &Dump) -> (Vec<Span>, u64) {
    let mut done: Vec<Span> = Vec::new();
    let mut open: Vec<Span> = Vec::new();
    let mut lost = 0;
    for found in dump.records() {
        let AnyRecord::Htrace(event) = found.record else { continue };
        let Some(now) = event.stamp.tsc.or(event.stamp.ns) else { continue };
        let cpu = event.stamp.cpu.unwrap_or(0);
        match event.dir {
            Some(b"enter") => open.push(begin(&open, &event, cpu, now)),
            Some(b"exit") => {
                let name = text(event.name);
                let Some(at) = open.iter().rposition(|span| span.cpu == cpu && span.path.last() == Some(&name)) else {
                    lost += 1;
                    continue;
                };
                let mut span = open.remove(at);
                span.end = Some(now.max(span.begin));
                let outer = open.iter_mut().rev().find(|other| other.cpu == cpu);
                if let Some(outer) = outer {
                    outer.inside = outer.inside.saturating_add(now.saturating_sub(span.begin));
                }
                done.push(span);
            }
            _ => {}
        }
    }
    done.extend(open);
    done.sort_by_key(|span| (span.begin, span.path.len()));
    (done, lost)
}

fn begin(open: &[Span], event: &Htrace<'_>, cpu: u32, now: u64) -> Span {
    let around = open.iter().rev().find(|span| span.cpu == cpu);
    let mut path = around.map(|span| span.path.clone()).unwrap_or_default();
    // A trace that lost ends would nest without limit.
    path.truncate(64);
    path.push(text(event.name));
    Span { cpu, path, begin: now, end: None, inside: 0, data: event.data }
}

/// What all spans of one place in the tree cost together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpanNode {
    /// Names of the spans around it, outermost first, and its own.
    pub path: Vec<String>,
    /// How many ended.
    pub times: u64,
    /// Ticks or nanoseconds in all.
    pub total: u64,
    /// The same without what ran inside.
    pub own: u64,
}

/// The spans of a dump as a tree, laid out so that every node follows the one it is inside of; spans that the trace does
/// not see the end of are left out.
#[must_use]
pub fn span_tree(dump: &Dump) -> Vec<SpanNode> {
    let mut nodes: BTreeMap<Vec<String>, (u64, u64, u64)> = BTreeMap::new();
    for span in spans(dump).0 {
        let Some(end) = span.end else { continue };
        let took = end.saturating_sub(span.begin);
        let node = nodes.entry(span.path).or_default();
        node.0 += 1;
        node.1 = node.1.saturating_add(took);
        node.2 = node.2.saturating_add(took.saturating_sub(span.inside));
    }
    nodes.into_iter().map(|(path, (times, total, own))| SpanNode { path, times, total, own }).collect()
}

/// Ticks of the time-stamp counter per microsecond, when the dump says so.
pub fn ticks_per_us(dump: &Dump) -> Option<f64> {
    let hertz = dump.records().find_map(|found| match found.record {
        AnyRecord::Identity(identity) => identity.tsc_hz,
        AnyRecord::SpanProfile(profile) => profile.tsc_freq_hz,
        AnyRecord::SyscallProfile(profile) => profile.tsc_freq_hz,
        _ => None,
    })?;
    (hertz > 0).then_some(hertz as f64 / 1e6)
}
