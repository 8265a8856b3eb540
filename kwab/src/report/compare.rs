//! Two crashes side by side: the same fact of each on one row, and whether they agree.
//!
//! Compared is what inspection says: death, kernel, backtrace by depth, registers by name, mappings by address. Rows
//! that differ in a way that address-space randomisation or a process number explains are not told apart; the reader
//! does that.

use std::collections::{HashMap, VecDeque};

use super::inspect::Report;

/// A row of a comparison.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// Which part of the reports: `cause`, `kernel`, `backtrace`, `registers`, `memory map`.
    pub part: &'static str,
    /// Which fact of it.
    pub name: String,
    /// The first crash's, if it has it.
    pub left: Option<String>,
    /// The second one's.
    pub right: Option<String>,
}

impl Row {
    /// Whether both crashes say the same.
    #[must_use]
    pub fn is_equal(&self) -> bool {
        self.left == self.right
    }
}

/// Puts two reports beside each other; facts that neither has are left out.
#[must_use]
pub fn compare(left: &Report, right: &Report) -> Vec<Row> {
    let mut rows = Vec::new();
    join(&mut rows, "cause", cause(left), cause(right));
    let meta = |report: &Report| report.meta.iter().map(|fact| (fact.name.clone(), fact.value.clone())).collect();
    join(&mut rows, "kernel", meta(left), meta(right));
    join(&mut rows, "backtrace", frames(left), frames(right));
    join(&mut rows, "registers", registers(left), registers(right));
    join(&mut rows, "memory map", mappings(left), mappings(right));
    rows
}

type Facts = Vec<(String, String)>;

/// Pairs facts by name, in the order of the first report and then of the second.
fn join(rows: &mut Vec<Row>, part: &'static str, left: Facts, right: Facts) {
    let mut rest: Vec<Option<(String, String)>> = right.into_iter().map(Some).collect();
    let mut named: HashMap<String, VecDeque<usize>> = HashMap::with_capacity(rest.len());
    for (at, fact) in rest.iter().enumerate() {
        named.entry(fact.iter().map(|fact| fact.0.clone()).collect()).or_default().push_back(at);
    }
    for (name, value) in left {
        let same = named.get_mut(&name).and_then(VecDeque::pop_front).and_then(|at| rest.get_mut(at));
        let other = same.and_then(Option::take).map(|fact| fact.1);
        rows.push(Row { part, name, left: Some(value), right: other });
    }
    let only_right = rest.into_iter().flatten();
    rows.extend(only_right.map(|(name, value)| Row { part, name, left: None, right: Some(value) }));
}

fn cause(report: &Report) -> Facts {
    let mut facts =
        vec![("headline".to_string(), report.headline.clone()), ("signature".to_string(), report.signature.clone())];
    let Some(cause) = &report.cause else { return facts };
    let mut fact = |name: &str, value: Option<String>| facts.extend(value.map(|value| (name.to_string(), value)));
    fact("kind", Some(cause.kind.clone()));
    fact("victim", Some(cause.victim.clone()));
    fact("message", cause.message.clone());
    fact("location", cause.place.clone());
    fact("signal", cause.signal.clone());
    fact("exception", cause.exception.clone());
    fact("fault address", cause.fault_addr.clone());
    fact("ip", cause.ip.clone());
    fact("sp", cause.sp.clone());
    fact("cpu", cause.cpu.map(|cpu| cpu.to_string()));
    fact("time", cause.time.clone());
    facts
}

fn frames(report: &Report) -> Facts {
    let frames = report.backtraces.first().into_iter().flat_map(|trace| &trace.frames);
    let named = frames.map(|frame| {
        let label = if frame.symbol.is_empty() { frame.addr.clone().unwrap_or_default() } else { frame.symbol.clone() };
        (format!("#{}", frame.index), label)
    });
    named.collect()
}

fn registers(report: &Report) -> Facts {
    let set = report.registers.first().into_iter().flat_map(|set| &set.registers);
    set.map(|register| (register.name.clone(), register.value.clone())).collect()
}

fn mappings(report: &Report) -> Facts {
    report.vmas.iter().map(|vma| (vma.start.clone(), format!("{} {} {}", vma.end, vma.prot, vma.name))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::inspect::{RegisterRow, RegisterSet};

    fn report(registers: &[(&str, &str)]) -> Report {
        let registers = registers
            .iter()
            .map(|(name, value)| RegisterRow { name: (*name).to_string(), value: (*value).to_string(), note: None })
            .collect();
        Report { registers: vec![RegisterSet { title: String::new(), registers }], ..Report::default() }
    }

    #[test]
    fn registers_are_paired_by_name_and_those_of_one_side_stay() {
        let rows =
            compare(&report(&[("rip", "0"), ("rax", "1")]), &report(&[("rax", "2"), ("rbx", "3"), ("rip", "0")]));
        let registers: Vec<_> = rows.iter().filter(|row| row.part == "registers").collect();
        let told: Vec<_> = registers.iter().map(|row| (row.name.as_str(), row.is_equal())).collect();
        assert_eq!(told, [("rip", true), ("rax", false), ("rbx", false)]);
        assert_eq!(registers[2].left, None);
    }
}
