//! Spans: stretches of kernel code with a name, timed (`debug=trace`) and told one by one with their nesting
//! (`debug=htrace`).
//!
//! `let _span = span(Id::ExecParse);` is all a site needs: the stretch ends where the value is dropped. With both
//! categories off that costs one relaxed load and one comparison.

use kernel_logic::meter::{Meter, Reading};
use machine::time::cycles;

use super::spans::{IDS, NAMES};
use super::{Category, htrace, is_on, profile};

pub use super::spans::Id;

static METERS: [Meter; NAMES.len()] = [const { Meter::new() }; NAMES.len()];

/// A stretch of code under way.
#[must_use = "the span ends where this is dropped"]
pub struct Span {
    id: Id,
    /// Cycle count at its beginning; 0 when spans are not traced.
    start: u64,
    data: u64,
}

/// A span begins.
#[inline(always)]
pub fn span(id: Id) -> Span {
    span_with(id, 0)
}

/// A span begins that has something to say.
#[inline(always)]
pub fn span_with(id: Id, data: u64) -> Span {
    let start = if super::watches_spans() { begin(id, data) } else { 0 };
    Span { id, start, data }
}

#[cold]
#[inline(never)]
fn begin(id: Id, data: u64) -> u64 {
    if is_on(Category::Htrace) {
        htrace::enter(id, data);
    }
    cycles().max(1)
}

impl Drop for Span {
    #[inline(always)]
    fn drop(&mut self) {
        if self.start != 0 {
            end(self);
        }
    }
}

#[cold]
#[inline(never)]
fn end(span: &Span) {
    let took = cycles().saturating_sub(span.start);
    if is_on(Category::Trace) {
        METERS[span.id as usize].add(took);
    }
    if is_on(Category::Profile) && span.id == Id::PageFault {
        profile::page_fault(took);
    }
    if is_on(Category::Htrace) {
        htrace::exit(span.id, span.data);
    }
}

/// Kinds of spans.
pub const KINDS: usize = NAMES.len();

/// Each kind that was timed since the last report: its number, its name and what its meter shows.
pub fn readings() -> impl Iterator<Item = (u64, &'static str, Reading)> {
    let meters = NAMES.iter().zip(&METERS).zip(0..);
    meters.filter_map(|((name, meter), id)| Some((id, *name, profile::read(meter)?)))
}

/// Writes the `span_profile` event.
pub fn report() {
    let entries = IDS.iter().filter_map(|id| Some((*id, profile::take(&METERS[*id as usize])?)));
    profile::list("span_profile", entries, |event, id, reading| {
        event.number("id", id as u64).string("name", NAMES[id as usize].as_bytes());
        profile::put(event, reading);
    });
}
