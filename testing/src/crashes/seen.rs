//! What a dump says, taken apart for comparisons.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result};
use kwab_format::record::{AnyRecord, CauseKind, CheckResult, CpuState, Memory, RegId, RegisterRole};
use kwab_format::{Defect, DropReason, Item, Reader, SectionKind};

/// One set of registers.
pub type Registers = BTreeMap<RegId, u64>;

/// See the module.
#[derive(Debug, Default)]
pub struct Seen {
    /// Kinds of the sound sections, in order.
    pub sections: Vec<SectionKind>,
    /// What is wrong with it.
    pub defects: Vec<Defect>,
    /// Kind of death.
    pub kind: Option<CauseKind>,
    /// Message of the death, empty if the dump has none.
    pub message: String,
    /// Signal of a program's death.
    pub signal: Option<u32>,
    /// Source file and line of a panic.
    pub location: Option<(String, u32)>,
    /// The register sets by role and processor.
    pub registers: BTreeMap<(RegisterRole, u32), Registers>,
    /// The processors and what they were doing.
    pub cpus: BTreeMap<u32, CpuState>,
    /// The backtrace of the crash.
    pub frames: Vec<u64>,
    /// The way to its sleep of each thread.
    pub sleepers: BTreeMap<u32, Vec<u64>>,
    /// Captured bytes by virtual address, those of the kernel and of the process that was running.
    pub memory: Vec<(u64, Vec<u8>)>,
    /// Whether it has an end section, and what that says of its completeness.
    pub complete: Option<bool>,
    /// What the end section says was left out.
    pub dropped: BTreeSet<(SectionKind, DropReason)>,
    /// Pages compared with their files, by result.
    pub checks: BTreeMap<CheckResult, usize>,
    /// Counters by group and name.
    pub counters: BTreeMap<(String, String), i64>,
}

impl Seen {
    /// Reads a dump.
    pub fn of(bytes: &[u8]) -> Result<Self> {
        let mut seen = Self::default();
        for item in Reader::new(bytes).context("not a dump")?.sections() {
            match item {
                Item::Defect(defect) => seen.defects.push(defect),
                Item::Section(section) => {
                    seen.sections.push(section.header.kind);
                    section.records().filter_map(|raw| raw.decode().ok()).for_each(|record| seen.take(&record));
                }
            }
        }
        Ok(seen)
    }

    fn take(&mut self, record: &AnyRecord<'_>) {
        match record {
            AnyRecord::Cause(cause) if self.kind.is_none() => {
                self.kind = cause.kind;
                self.message = text(cause.message);
                self.signal = cause.signal;
                self.location = cause.file.map(|file| text(Some(file))).zip(cause.source_line);
            }
            AnyRecord::Registers(set) => {
                let key = (set.role.unwrap_or_default(), set.stamp.cpu.unwrap_or(0));
                let values = set.regs.iter().flat_map(kwab_format::List::iter);
                let values = values.filter_map(|reg| Some((reg.id?, reg.value?))).collect();
                self.registers.entry(key).or_insert(values);
            }
            AnyRecord::Cpu(cpu) => {
                self.cpus.insert(cpu.number.unwrap_or(0), cpu.state.unwrap_or_default());
            }
            AnyRecord::Frame(frame) if frame.trace == Some(0) => self.frames.extend(frame.addr),
            AnyRecord::Frame(frame) => {
                if let (Some(tid), Some(addr)) = (frame.tid, frame.addr) {
                    self.sleepers.entry(tid).or_default().push(addr);
                }
            }
            AnyRecord::Memory(Memory { vaddr: Some(at), bytes: Some(bytes), .. }) => {
                self.memory.push((*at, bytes.to_vec()));
            }
            AnyRecord::PageCheck(check) => *self.checks.entry(check.result.unwrap_or_default()).or_default() += 1,
            AnyRecord::End(end) => self.complete = end.complete,
            AnyRecord::DroppedSection(dropped) => {
                let kind = SectionKind(dropped.kind.unwrap_or(0));
                self.dropped.insert((kind, dropped.reason.unwrap_or_default()));
            }
            AnyRecord::Counter(counter) => {
                let value = counter.value.unwrap_or(0);
                self.counters.insert((text(counter.group), text(counter.name)), value);
            }
            _ => {}
        }
    }

    /// The registers where the death was.
    pub fn fault(&self) -> Option<&Registers> {
        self.registers.iter().find(|((role, _), _)| *role == RegisterRole::FAULT).map(|(_, set)| set)
    }
}

fn text(bytes: Option<&[u8]>) -> String {
    String::from_utf8_lossy(bytes.unwrap_or_default()).into_owned()
}
