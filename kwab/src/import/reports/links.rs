//! Tells the first cause from its followers: several reports of one boot are often one failure.
//!
//! A report follows an earlier one of the same boot when the first of these rules fits:
//! 1. its taint says that the kernel died before (`D`), and the earlier one is the first fatal report;
//! 2. the earlier one is fatal and the later one begins at most [`NEAR`] lines behind it;
//! 3. both are stalls, and at most [`FAR`] lines lie between them (a soft lockup and the RCU stall it causes);
//! 4. the earlier one is a sanitizer's or a consistency check's, the later one a trap of the same task at most
//!    [`NEAR`] lines behind it (the access that KASAN reported goes on to fault);
//! 5. both are of one class and one task, and at most [`NEAR`] lines lie between them;
//! 6. the later one panics because memory ran out, and the earlier one is an OOM kill at most [`FAR`] lines before.
//!
//! A follower names the first report of the chain, never another follower.

use std::collections::HashMap;

use super::class::Class;
use super::report::Report;

/// Lines between a failure and what directly follows from it.
pub const NEAR: u64 = 250;
/// Lines between a stall and the next one of the same cause.
pub const FAR: u64 = 1500;
/// Earlier reports of a boot that are remembered.
const REMEMBERED: usize = 64;
/// Signatures that are remembered.
const SIGNATURES: usize = 4096;

#[derive(Debug, Clone)]
struct Earlier {
    number: u32,
    class: Class,
    pid: Option<u32>,
    fatal: bool,
    last: u64,
    root: u32,
}

/// What the earlier reports of a log were.
#[derive(Debug, Default)]
pub struct Links {
    earlier: Vec<Earlier>,
    signatures: HashMap<String, u32>,
}

impl Links {
    /// A new boot: nothing follows from what happened before it.
    pub fn new_boot(&mut self) {
        self.earlier.clear();
    }

    /// Fills in what the report follows and what it repeats.
    pub fn link(&mut self, report: &mut Report) {
        let found = self.earlier.iter().find(|earlier| follows(earlier, report));
        report.follows = found.map(|earlier| earlier.root);
        if self.signatures.len() < SIGNATURES || self.signatures.contains_key(&report.signature) {
            let first = *self.signatures.entry(report.signature.clone()).or_insert(report.number);
            report.same_as = Some(first).filter(|first| *first != report.number);
        }
        if self.earlier.len() < REMEMBERED {
            let fatal = report.class.is_fatal() || report.panic.is_some();
            let root = report.follows.unwrap_or(report.number);
            self.earlier.push(Earlier {
                number: report.number,
                class: report.class,
                pid: report.pid,
                fatal,
                last: report.last.line,
                root,
            });
        }
    }
}

fn follows(earlier: &Earlier, report: &Report) -> bool {
    if earlier.number >= report.number {
        return false;
    }
    let gap = report.first.line.saturating_sub(earlier.last);
    let died = report.taint.as_deref().is_some_and(|taint| taint.split('=').next().unwrap_or(taint).contains('D'));
    let check = matches!(
        earlier.class,
        Class::Kasan
            | Class::Kfence
            | Class::Ubsan
            | Class::Kmsan
            | Class::Refcount
            | Class::Warning
            | Class::Odebug
            | Class::SlabCorruption
            | Class::Atomic
            | Class::InvalidContext
    );
    let same_task = earlier.pid.is_some() && earlier.pid == report.pid;
    earlier.fatal && (died || gap <= NEAR)
        || earlier.class.is_stall() && (report.class.is_stall() || report.class == Class::Panic) && gap <= FAR
        || earlier.class == report.class && same_task && gap <= NEAR
        || check && report.class.is_trap() && same_task && gap <= NEAR
        || earlier.class == Class::OomKill && report.class == Class::OomPanic && gap <= FAR
}
