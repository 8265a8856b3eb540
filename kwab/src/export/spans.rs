//! Reads the function trace of a dump as spans: begin and end paired per processor.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::rc::Rc;

use kwab_format::AnyRecord;
use kwab_format::record::{Htrace, Stamp};

use crate::analysis::text;
use crate::causes::clock;
use crate::model::Dump;

/// Names around a span that are remembered: a trace that lost ends would nest without limit.
const DEEPEST: usize = 64;

/// A span's name and the spans around it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Path {
    outer: Option<Rc<Path>>,
    depth: usize,
    /// Its own name.
    pub(super) name: Rc<str>,
}

impl Path {
    /// A span of this name inside of another, or at the outermost level.
    pub(super) fn inside(outer: Option<&Rc<Self>>, name: Rc<str>) -> Rc<Self> {
        let outer =
            outer.and_then(|path| if path.depth > DEEPEST { path.outer.clone() } else { Some(Rc::clone(path)) });
        let depth = outer.as_ref().map_or(1, |path| path.depth + 1);
        Rc::new(Self { outer, depth, name })
    }

    /// Names of the spans around it, outermost first, and its own.
    pub(super) fn names(&self) -> Vec<String> {
        let mut names: Vec<String> =
            std::iter::successors(Some(self), |path| path.outer.as_deref()).map(|path| path.name.to_string()).collect();
        names.reverse();
        names
    }
}

/// A span that began; its end is absent when the trace ends inside it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Span {
    /// Processor on which the span ran.
    pub(super) cpu: u32,
    /// What it is and what it is inside of.
    pub(super) path: Rc<Path>,
    /// Ticks or nanoseconds at its begin.
    pub(super) begin: u64,
    /// The same at its end.
    pub(super) end: Option<u64>,
    /// Ticks spent in spans inside it.
    pub(super) inside: u64,
    /// What the span was given.
    pub(super) data: Option<u64>,
}

/// The open spans of a processor. A span that ends before one inside of it leaves an empty slot.
#[derive(Default)]
struct Open {
    stack: Vec<Option<Span>>,
    /// Indices in the stack of each name, innermost last.
    depths: HashMap<Rc<str>, Vec<usize>>,
}

impl Open {
    fn begin(&mut self, name: &Rc<str>, event: &Htrace<'_>, cpu: u32, now: u64) {
        let around = self.stack.last().and_then(Option::as_ref).map(|span| &span.path);
        let path = Path::inside(around, Rc::clone(name));
        self.depths.entry(Rc::clone(name)).or_default().push(self.stack.len());
        self.stack.push(Some(Span { cpu, path, begin: now, end: None, inside: 0, data: event.data }));
    }

    /// Takes the innermost span of this name, and adds its time to the one that is then innermost.
    fn end(&mut self, name: &str, now: u64) -> Option<Span> {
        let depth = self.depths.get_mut(name)?.pop()?;
        let mut span = self.stack.get_mut(depth)?.take()?;
        while self.stack.pop_if(|top| top.is_none()).is_some() {}
        span.end = Some(now.max(span.begin));
        if let Some(Some(outer)) = self.stack.last_mut() {
            outer.inside = outer.inside.saturating_add(now.saturating_sub(span.begin));
        }
        Some(span)
    }
}

/// All spans in order of begin, and the ends that had no begin (the ring had overwritten it); in ticks where events
/// have them.
pub(super) fn spans(dump: &Dump) -> (Vec<Span>, u64) {
    spans_by(dump, |stamp| stamp.tsc.or(stamp.ns))
}

/// The same with times that `time` makes of the stamps.
pub(super) fn spans_by(dump: &Dump, time: impl Fn(&Stamp<'_>) -> Option<u64>) -> (Vec<Span>, u64) {
    let mut done: Vec<Span> = Vec::new();
    let mut open: BTreeMap<u32, Open> = BTreeMap::new();
    let mut names: HashSet<Rc<str>> = HashSet::new();
    let mut lost = 0;
    for found in dump.located_records() {
        let AnyRecord::Htrace(event) = found.record else { continue };
        let Some(now) = time(&event.stamp) else { continue };
        let cpu = event.stamp.cpu.unwrap_or(0);
        let name = text(event.name);
        match event.dir {
            Some(b"enter") => {
                let known = names.get(name.as_str()).cloned();
                let name = known.unwrap_or_else(|| {
                    let name: Rc<str> = name.into();
                    names.insert(Rc::clone(&name));
                    name
                });
                open.entry(cpu).or_default().begin(&name, &event, cpu, now);
            }
            Some(b"exit") => match open.get_mut(&cpu).and_then(|open| open.end(&name, now)) {
                Some(span) => done.push(span),
                None => lost += 1,
            },
            _ => {}
        }
    }
    done.extend(open.into_values().flat_map(|open| open.stack.into_iter().flatten()));
    done.sort_by_key(|span| (span.begin, span.path.depth));
    (done, lost)
}

/// What all spans of one node of the tree cost together.
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

/// The spans of a dump as a tree, laid out so that every node follows the one it is inside of; spans that the trace
/// does not see the end of are left out.
#[must_use]
pub fn span_tree(dump: &Dump) -> Vec<SpanNode> {
    let mut nodes: BTreeMap<Vec<String>, (u64, u64, u64)> = BTreeMap::new();
    for span in spans(dump).0 {
        let Some(end) = span.end else { continue };
        let took = end.saturating_sub(span.begin);
        let node = nodes.entry(span.path.names()).or_default();
        node.0 += 1;
        node.1 = node.1.saturating_add(took);
        node.2 = node.2.saturating_add(took.saturating_sub(span.inside));
    }
    nodes.into_iter().map(|(path, (times, total, own))| SpanNode { path, times, total, own }).collect()
}

/// Ticks of the time-stamp counter per microsecond, when the dump says so.
pub fn ticks_per_us(dump: &Dump) -> Option<f64> {
    clock::hertz(dump).map(|hertz| hertz as f64 / 1e6)
}

#[cfg(test)]
mod tests {
    use kwab_format::record::Stamp;
    use kwab_format::{BootId, DumpId, FileHeader, SectionKind};

    use super::*;
    use crate::model::emit::DumpWriter;

    #[test]
    fn spans_are_paired_by_name_and_processor_and_nest_no_deeper_than_is_shown() {
        let mut writer = DumpWriter::new(Vec::new(), FileHeader::new(DumpId(7), BootId([1; 16])));
        let mut put = |dir: &[u8], name: &[u8], cpu: u32, tsc: u64| {
            let stamp = Stamp { cpu: Some(cpu), tsc: Some(tsc), ..Stamp::default() };
            writer.put(SectionKind::EVENTS, &Htrace { dir: Some(dir), name: Some(name), stamp, ..Htrace::default() });
        };
        put(b"enter", b"a", 0, 10);
        put(b"enter", b"b", 0, 20);
        put(b"enter", b"a", 1, 25);
        put(b"exit", b"a", 0, 30);
        put(b"exit", b"b", 0, 40);
        put(b"exit", b"c", 0, 50);
        (0..100).for_each(|number| put(b"enter", b"deep", 2, 100 + number));
        let dump = Dump::from_bytes(writer.finish().unwrap()).unwrap();
        let (spans, lost) = spans(&dump);
        assert_eq!((spans.len(), lost), (103, 1));
        let told: Vec<_> =
            spans.iter().take(3).map(|span| (span.path.names().join(";"), span.begin, span.end)).collect();
        assert_eq!(
            told,
            [("a".to_owned(), 10, Some(30)), ("a;b".to_owned(), 20, Some(40)), ("a".to_owned(), 25, None)]
        );
        assert_eq!(spans[1].inside, 20, "what ends inside of b, though it began outside");
        assert!(spans.iter().all(|span| span.path.names().len() <= DEEPEST + 1));
        assert_eq!(spans.last().unwrap().path.depth, DEEPEST + 1);
    }
}
