//! Puts the rows of two threads beside each other.
//!
//! Calls decide, since a program makes them in its own order. A signal comes when another thread or the machine sends
//! it, on either side of the call during which it came in the other run: it stands where the calls leave it room.

use std::collections::{HashMap, VecDeque};

use super::trace::{TraceRow, What};
use crate::report::align::align;

/// A row beside the other, or alone.
pub(super) type Beside<'t> = (Option<&'t TraceRow>, Option<&'t TraceRow>);

/// The rows of two threads; `print` says of a call beside which others it may stand.
pub(super) fn besides<'t>(
    good: &[&'t TraceRow],
    bad: &[&'t TraceRow],
    print: &dyn Fn(&TraceRow) -> u64,
) -> Vec<Beside<'t>> {
    let without_signals =
        |rows: &[&'t TraceRow]| -> Vec<usize> { (0..rows.len()).filter(|at| signal(rows[*at]).is_none()).collect() };
    let (of_good, of_bad) = (without_signals(good), without_signals(bad));
    let prints = |rows: &[&TraceRow], at: &[usize]| at.iter().map(|at| print(rows[*at])).collect::<Vec<_>>();
    let aligned = align(&prints(good, &of_good), &prints(bad, &of_bad), &mut || true).unwrap_or_default();
    let mut out = Vec::new();
    let (mut here, mut there) = (0, 0);
    for beside in &aligned {
        let at = |rows: &[usize], at: Option<u32>| at.and_then(|at| rows.get(at as usize).copied());
        let (left, right) = (at(&of_good, beside.left), at(&of_bad, beside.right));
        if let (Some(left), Some(right)) = (left, right) {
            signals(&mut out, good.get(here..left), bad.get(there..right));
            (here, there) = (left + 1, right + 1);
        }
        out.push((left.map(|at| good[at]), right.map(|at| bad[at])));
    }
    signals(&mut out, good.get(here..), bad.get(there..));
    paired(&out)
}

fn signal(row: &TraceRow) -> Option<&str> {
    if let What::Signal { name, .. } = &row.what { Some(name) } else { None }
}

/// Adds the signals between two pairs of calls, those of one name beside each other.
fn signals<'t>(out: &mut Vec<Beside<'t>>, good: Option<&[&'t TraceRow]>, bad: Option<&[&'t TraceRow]>) {
    let mut by_name: HashMap<&str, VecDeque<&TraceRow>> = HashMap::new();
    for row in bad.unwrap_or_default() {
        if let Some(name) = signal(row) {
            by_name.entry(name).or_default().push_back(row);
        }
    }
    for row in good.unwrap_or_default() {
        if let Some(name) = signal(row) {
            out.push((Some(*row), by_name.get_mut(name).and_then(VecDeque::pop_front)));
        }
    }
    let mut alone: Vec<&TraceRow> = by_name.into_values().flatten().collect();
    alone.sort_by_key(|row| row.at);
    out.extend(alone.into_iter().map(|row| (None, Some(row))));
}

/// Puts calls of one name beside each other that the alignment left alone between two pairs.
fn paired<'t>(besides: &[Beside<'t>]) -> Vec<Beside<'t>> {
    let mut out = Vec::with_capacity(besides.len());
    let (mut left, mut right): (Vec<&TraceRow>, Vec<&TraceRow>) = (Vec::new(), Vec::new());
    for beside in besides.iter().copied().map(Some).chain([None]) {
        match beside {
            Some((Some(row), None)) => left.push(row),
            Some((None, Some(row))) => right.push(row),
            whole => {
                gap(&mut out, &left, &right);
                (left, right) = (Vec::new(), Vec::new());
                out.extend(whole);
            }
        }
    }
    out
}

fn gap<'t>(out: &mut Vec<Beside<'t>>, left: &[&'t TraceRow], right: &[&'t TraceRow]) {
    let mut by_name: HashMap<&str, VecDeque<usize>> = HashMap::new();
    for (at, row) in right.iter().enumerate() {
        if let Some(call) = row.call() {
            by_name.entry(&call.name).or_default().push_back(at);
        }
    }
    let mut from = 0;
    for row in left {
        let mut same = row.call().and_then(|call| by_name.get_mut(&*call.name));
        let at = same.as_mut().and_then(|places| {
            while places.front().is_some_and(|at| *at < from) {
                places.pop_front();
            }
            places.pop_front()
        });
        let Some(at) = at else {
            out.push((Some(*row), None));
            continue;
        };
        out.extend(right[from..at].iter().map(|row| (None, Some(*row))));
        out.push((Some(*row), Some(right[at])));
        from = at + 1;
    }
    out.extend(right[from..].iter().map(|row| (None, Some(*row))));
}

/// What each row that stands alone has to know of those around it.
pub(super) struct Around<'t> {
    /// The row before and the row behind, on the side of the row.
    pub beside: Vec<[Option<&'t TraceRow>; 2]>,
    /// When the next row of the bad run happened.
    pub next: Vec<usize>,
}

impl<'t> Around<'t> {
    pub(super) fn of(besides: &[Beside<'t>]) -> Self {
        let mut around = Self { beside: vec![[None; 2]; besides.len()], next: vec![usize::MAX; besides.len()] };
        let mut last: [Option<&TraceRow>; 2] = [None; 2];
        for (at, (left, right)) in besides.iter().enumerate() {
            let side = usize::from(left.is_none());
            around.beside[at][0] = last[side];
            last = [left.or(last[0]), right.or(last[1])];
        }
        last = [None; 2];
        let mut when = usize::MAX;
        for (at, (left, right)) in besides.iter().enumerate().rev() {
            let side = usize::from(left.is_none());
            around.beside[at][1] = last[side];
            last = [left.or(last[0]), right.or(last[1])];
            when = right.map_or(when, |row| row.at);
            around.next[at] = when;
        }
        around
    }
}
