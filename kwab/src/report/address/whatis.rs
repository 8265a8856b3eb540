//! Says what an address is: symbol, mapping, stack, lock, register, page table, frame; and whether it was captured.

use kwab_format::record::{Arch, FrameInfo, MemoryKind, RegisterRole};
use schemars::JsonSchema;
use serde::Serialize;

use super::hex;
use super::translate::{self, translate};
use crate::analysis::threads::ThreadKey;
use crate::analysis::{paging, text};
use crate::decode::{PointerClass, classify_on};
use crate::memory::{Ram, Reader, Reverse, Space, spaces};
use crate::model::{Case, Located, RecordRef};
use crate::symbols::{Probe, Symbols, short};

/// The version of [`WhatIs`]'s JSON form.
pub const SCHEMA: u32 = 1;
/// Facts of each kind.
const MOST: usize = 16;
/// How far above a stack pointer an address still counts as on that stack, where its bounds are not known.
const NEAR_STACK: u64 = 16 << 10;

/// What a fact is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Subject {
    /// The number itself.
    Class,
    /// A function or object of an image.
    Symbol,
    /// A mapping of a process.
    Mapping,
    /// A stack that holds it.
    Stack,
    /// A lock at the address.
    Lock,
    /// A register that holds it.
    Register,
    /// Where page tables lead.
    Translation,
    /// The physical frame.
    Frame,
    /// The frame is a page table.
    PageTable,
    /// Where physical memory is mapped.
    Mapped,
    /// What was captured there.
    Captured,
}

/// One thing that is known about the address.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Fact {
    /// What it is about.
    pub subject: Subject,
    /// The fact in words.
    pub text: String,
    /// The record that says so.
    pub record: Option<RecordRef>,
}

/// What an address is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct WhatIs {
    /// Version of this form.
    pub schema: u32,
    /// Name of the dump as the user gave it.
    pub file: String,
    /// The address, hexadecimal.
    pub address: String,
    /// Whether it is a physical one.
    pub physical: bool,
    /// The address space that it was looked up in.
    pub space: String,
    /// What is known.
    pub facts: Vec<Fact>,
    /// Whether the dump holds the byte there.
    pub captured: bool,
}

/// What is asked, and what answers are made of.
#[derive(Debug, Clone, Copy)]
pub struct Question<'q, 'a> {
    /// The records of the dump.
    pub case: &'q Case<'a>,
    /// Physical memory of the dump.
    pub ram: &'q Ram<'q>,
    /// Images that name addresses.
    pub symbols: &'q Symbols,
    /// The address space.
    pub space: &'q Space,
    /// The address that is asked about.
    pub addr: u64,
}

impl Question<'_, '_> {
    /// What the address is; a physical one when `physical` says so.
    #[must_use]
    pub fn answer(&self, physical: bool, file: &str) -> WhatIs {
        let mut facts = Vec::new();
        let captured = if physical {
            self.frame(&mut facts, self.addr);
            self.ram.read(self.addr, &mut [0]) == 1
        } else {
            self.names(&mut facts);
            self.stacks(&mut facts);
            self.holders(&mut facts);
            self.translated(&mut facts);
            self.captured(&mut facts)
        };
        WhatIs {
            schema: SCHEMA,
            file: file.to_owned(),
            address: hex(self.addr),
            physical,
            space: self.space.name.clone(),
            facts,
            captured,
        }
    }

    fn names(&self, facts: &mut Vec<Fact>) {
        let paging = paging(self.case);
        let class = match classify_on(paging, self.addr) {
            PointerClass::Null => "the null pointer".to_owned(),
            PointerClass::NearNull => format!("{:#x} bytes above a null pointer", self.addr),
            PointerClass::BelowNull => {
                format!("{} as a signed number: an error, or below a null pointer", self.addr as i64)
            }
            PointerClass::NonCanonical => match paging.arch {
                None | Some(Arch::X86_64) => {
                    let levels = if paging.five_levels { 5 } else { 4 };
                    format!("not canonical: no {levels}-level page table maps it")
                }
                Some(_) => "not canonical: no page table maps it".to_owned(),
            },
            PointerClass::Poison(name) => format!("the pattern {name}"),
            PointerClass::User => "an address of a program".to_owned(),
            PointerClass::Kernel => "an address of the kernel".to_owned(),
        };
        facts.push(fact(Subject::Class, class, None));
        let mut pids: Vec<Option<u32>> = vec![self.space.pid];
        pids.extend(self.symbols.loaded().iter().map(|image| image.pid));
        pids.dedup();
        let own = pids.into_iter().take(MOST).find_map(|pid| {
            let name = short(&self.symbols.resolve(self.addr, pid, Probe::Exact))?;
            let image = self.symbols.image_at(self.addr, pid).map(|loaded| loaded.image.name()).unwrap_or_default();
            Some(format!("{name} of {image}"))
        });
        facts.extend(own.map(|name| fact(Subject::Symbol, name, None)));
        let holds = |start: Option<u64>, end: Option<u64>| {
            start.is_some_and(|start| start <= self.addr) && end.is_some_and(|end| self.addr < end)
        };
        for vma in self.case.vmas.iter().filter(|vma| holds(vma.start, vma.end)).take(MOST) {
            let prot = vma.prot.unwrap_or(0);
            let right = |bit: u32, letter: char| if prot & bit != 0 { letter } else { '-' };
            let rights: String = [right(1, 'r'), right(2, 'w'), right(4, 'x')].iter().collect();
            let (start, end) = (vma.start.unwrap_or(0), vma.end.unwrap_or(0));
            let of = vma.pid.map(|pid| format!(" of process {pid}")).unwrap_or_default();
            let what = vma.path.or(vma.name).map_or_else(|| "anonymous".to_owned(), |name| text(Some(name)));
            let words = format!("{what}{of}, {start:#x}-{end:#x} {rights}, +{:#x}", self.addr - start);
            facts.push(fact(Subject::Mapping, words, Some(vma.at)));
        }
    }

    fn stacks(&self, facts: &mut Vec<Fact>) {
        for stack in &self.case.stacks {
            let (Some(low), Some(high)) = (stack.low, stack.high) else { continue };
            let guard = low.saturating_sub(stack.guard.unwrap_or(0));
            if !(guard..high).contains(&self.addr) {
                continue;
            }
            let name = text(stack.label);
            let named = |tid| format!(" of thread {tid}{}", self.task(tid, stack.stamp.cpu));
            let of = stack.tid.or(stack.pid).map(named).unwrap_or_default();
            let part = if self.addr < low { "the guard below " } else { "" };
            let words = format!("{part}the {name} stack{of}, {low:#x}-{high:#x}");
            facts.push(fact(Subject::Stack, words, Some(stack.at)));
        }
        for set in &self.case.registers {
            let sp = set
                .regs
                .as_ref()
                .and_then(|regs| regs.iter().find(|reg| reg.id == Some(kwab_format::record::RegId::RSP))?.value);
            let Some(above) = sp.and_then(|sp| self.addr.checked_sub(sp)).filter(|above| *above < NEAR_STACK) else {
                continue;
            };
            let words = format!("{above:#x} bytes above the stack pointer of {}", self.owner(set));
            facts.push(fact(Subject::Stack, words, Some(set.at)));
        }
        facts.truncate(4 * MOST);
    }

    fn holders(&self, facts: &mut Vec<Fact>) {
        for lock in self.case.locks.iter().filter(|lock| lock.addr == Some(self.addr)).take(MOST) {
            let named = |tid| format!(", held by thread {tid}{}", self.task(tid, lock.holder_cpu));
            let holder = lock.holder_tid.or(lock.holder_pid).map(named);
            let words = format!("the lock {}{}", text(lock.name), holder.unwrap_or_default());
            facts.push(fact(Subject::Lock, words, Some(lock.at)));
        }
        let mut left = MOST;
        for set in &self.case.registers {
            for reg in set.regs.iter().flat_map(kwab_format::List::iter) {
                if reg.value == Some(self.addr) && self.addr != 0 && left > 0 {
                    let name = reg.id.and_then(kwab_format::record::RegId::name).unwrap_or("a register");
                    facts.push(fact(Subject::Register, format!("{name} of {}", self.owner(set)), Some(set.at)));
                    left -= 1;
                }
            }
        }
    }

    fn translated(&self, facts: &mut Vec<Fact>) {
        let translation = translate(self.case, self.ram, self.space, self.addr, "");
        if translation.source == translate::Source::Nothing {
            return;
        }
        let rights = translation.rights.map(|rights| format!(", {rights}")).unwrap_or_default();
        let at = translate::recorded(self.case, self.space.pid, self.addr).map(|pte| pte.at);
        let record = at.filter(|_| translation.source == translate::Source::Records);
        facts.push(fact(Subject::Translation, format!("{}{rights}", translation.conclusion), record));
        let paddr = translation.physical.and_then(|text| u64::from_str_radix(text.trim_start_matches("0x"), 16).ok());
        if let Some(paddr) = paddr {
            self.frame(facts, paddr);
        }
    }

    /// What is known of physical memory.
    fn frame(&self, facts: &mut Vec<Fact>, paddr: u64) {
        let number = paddr / 4096;
        let holds = |info: &&Located<FrameInfo<'_>>| {
            info.frame.is_some_and(|first| number >= first && number - first < info.count.unwrap_or(1))
        };
        if let Some(info) = self.case.frame_infos.iter().find(holds) {
            const NAMES: [&str; 6] = ["free", "page cache", "page table", "kernel", "huge head", "huge tail"];
            let bits = info.flags.unwrap_or(0);
            let mut words: Vec<String> =
                (0..).zip(NAMES).filter(|(bit, _)| bits >> bit & 1 == 1).map(|(_, n)| n.into()).collect();
            words.extend(info.refcount.map(|count| format!("{count} references")));
            words.extend(info.owner.map(|owner| format!("owned by {}", text(Some(owner)))));
            words.extend(info.path.map(|path| format!("of {}", text(Some(path)))));
            facts.push(fact(Subject::Frame, format!("frame {number:#x}: {}", words.join(", ")), Some(info.at)));
        }
        if self.ram.is_empty() {
            return;
        }
        let spaces = spaces(self.case);
        let reverse = Reverse::of(self.ram, &spaces);
        let name = |space: usize| spaces.get(space).map(|space| space.name.clone()).unwrap_or_default();
        if let Some((level, space)) = reverse.table_at(paddr) {
            let words = format!("a page table of level {level}, used by {}", name(space));
            facts.push(fact(Subject::PageTable, words, None));
        }
        for (addr, run) in reverse.mapped(paddr).filter(|(addr, _)| *addr != self.addr).take(MOST) {
            let symbol = short(&self.symbols.resolve(addr, None, Probe::Exact)).filter(|_| addr >> 63 == 1);
            let symbol = symbol.map(|name| format!(", {name}")).unwrap_or_default();
            let words = format!("at {} too ({}, {}){symbol}", hex(addr), name(run.space), run.rights);
            facts.push(fact(Subject::Mapped, words, None));
        }
    }

    fn captured(&self, facts: &mut Vec<Fact>) -> bool {
        let reader = Reader::new(self.case, self.ram);
        if let Some((memory, skip)) = reader.captured(self.space, self.addr) {
            let kind = memory.kind.and_then(MemoryKind::name).unwrap_or("memory");
            let label = memory.label.map(|label| format!(", {}", text(Some(label)))).unwrap_or_default();
            let words = format!("byte {skip} of {} captured ({kind}{label})", memory.bytes.unwrap_or_default().len());
            facts.push(fact(Subject::Captured, words, Some(memory.at)));
            return true;
        }
        let held = reader.read(self.space, self.addr, &mut [0]) == 1;
        let words = if held { "captured with the machine's memory" } else { "not captured" };
        facts.push(fact(Subject::Captured, words.to_owned(), None));
        held
    }

    /// ` (sh)` of a thread that the dump lists.
    fn task(&self, tid: u32, cpu: Option<u32>) -> String {
        let wanted = Some(ThreadKey::on(tid, cpu));
        let task = self.case.tasks.iter().find(|task| ThreadKey::of(task) == wanted);
        task.map(|task| format!(" ({})", text(task.comm))).unwrap_or_default()
    }

    fn owner(&self, set: &kwab_format::record::Registers<'_>) -> String {
        let role = set.role.and_then(RegisterRole::name).map(|role| format!(" ({role})")).unwrap_or_default();
        match (set.tid.or(set.pid), set.stamp.cpu) {
            (Some(tid), cpu) => format!("thread {tid}{}{role}", self.task(tid, cpu)),
            (None, Some(cpu)) => format!("CPU {cpu}{role}"),
            (None, None) => format!("a register set{role}"),
        }
    }
}

fn fact(subject: Subject, text: String, record: Option<RecordRef>) -> Fact {
    Fact { subject, text, record }
}
