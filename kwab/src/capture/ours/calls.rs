//! Reads the last system calls of each thread (`kernel_logic::recorder::calls`) out of captured memory, with the
//! strings and structures that they pointed at.

use kwab_format::record::{Stamp, SyscallRecord};
use linux_abi::syscalls::{self, ArgKind};

use super::super::space::Space;
use super::clock::Clock;
use super::flight::Counts;
use super::table::Table;

/// Slots of a ring of calls or strings, and bytes of one.
const MOST_SLOTS: u64 = 256;
const MOST_SLOT: u64 = 512;
/// Bytes that are kept of a string at most.
const MOST_KEPT: u64 = 256;
/// No call was made that takes no slot.
const NO_CALL: u32 = u32::MAX;

/// A system call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// Its number in the kernel's table.
    pub nr: u32,
    /// What its slot says; a call without arguments that cannot fail takes none.
    pub slot: Option<CallSlot>,
}

/// What was recorded of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallSlot {
    /// Counted from the thread's first.
    pub index: u32,
    /// The processor that it began on.
    pub cpu: u32,
    /// The cycle counter when it began.
    pub entry: u64,
    /// The counter when it returned, and what it returned.
    pub done: Option<(u64, i64)>,
    /// Its arguments, of which the call may take fewer.
    pub args: [u64; 6],
    /// How the strings begin that its arguments point to, and whether they go on.
    pub texts: [Option<(Vec<u8>, bool)>; 6],
}

/// The last calls of a thread, oldest first.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Calls {
    /// What the ring has seen of this thread.
    pub counts: Counts,
    /// Those that are still in the ring.
    pub calls: Vec<Call>,
}

/// Where the parts of rings lie.
pub(super) struct CallReader<'r> {
    space: &'r Space<'r>,
    table: &'r Table,
    slots: Slots,
    texts: Option<Slots>,
}

/// A ring's slots: where the first lies, how many there are, the bytes of one.
#[derive(Clone, Copy)]
struct Slots {
    first: u64,
    count: u64,
    size: u64,
}

impl Slots {
    fn of(table: &Table, ring: &str) -> Option<Self> {
        let get = |what: &str| table.get(&format!("{ring}.{what}"));
        let count = get("count").filter(|count| count.is_power_of_two() && *count <= MOST_SLOTS)?;
        Some(Self { first: get("slots")?, count, size: get("slot").filter(|size| (1..=MOST_SLOT).contains(size))? })
    }

    /// The address of the slot of an entry.
    fn at(&self, ring: u64, number: u32) -> Option<u64> {
        ring.checked_add(self.first)?.checked_add(u64::from(number) % self.count * self.size)
    }
}

impl<'r> CallReader<'r> {
    /// `None` where the kernel does not say how its rings look.
    pub(super) fn new(space: &'r Space<'r>, table: &'r Table) -> Option<Self> {
        table.get("calls.value").filter(|value| *value != 0)?;
        Some(Self { space, table, slots: Slots::of(table, "calls")?, texts: Slots::of(table, "texts") })
    }

    fn word(&self, at: u64, name: &str) -> Option<u64> {
        self.space.word(at.checked_add(self.table.get(name)?)?)
    }

    fn half(&self, at: u64, name: &str) -> Option<u32> {
        self.space.half(at.checked_add(self.table.get(name)?)?)
    }

    /// The newest calls of the thread at an address, `most` at most.
    pub(super) fn of(&self, thread: u64, most: usize) -> Option<Calls> {
        let ring = self.word(thread, "task.calls")?.checked_add(self.table.get("calls.value")?)?;
        let (next, first) = (self.word(ring, "calls.next")?, self.half(ring, "calls.first")?);
        let (end, kept) = ((next / self.slots.size) as u32, self.slots.count as u32 - 1);
        let total = end.wrapping_sub(first);
        let overwritten = total.saturating_sub(kept);
        let mut counts =
            Counts { total: total.into(), overwritten: overwritten.into(), torn: 0, capacity: kept.into() };
        let held = total.min(kept);
        let wanted = held.min(u32::try_from(most).unwrap_or(kept));
        let mut brief = self.brief(ring, next, first, kept);
        let mut calls = Vec::new();
        for back in (1..=wanted).rev() {
            let number = end.wrapping_sub(back);
            let Some(call) = self.call(ring, number, first) else {
                counts.torn += 1;
                continue;
            };
            let index = number.wrapping_sub(first);
            calls.extend(brief.take_if(|(before, _)| *before == index).map(|(_, nr)| Call { nr, slot: None }));
            calls.push(call);
        }
        calls.extend(brief.filter(|(before, _)| *before == total).map(|(_, nr)| Call { nr, slot: None }));
        counts.torn += u64::from(held - wanted);
        Some(Calls { counts, calls })
    }

    /// The last call without slot: before which other it was made, and its number.
    fn brief(&self, ring: u64, next: u64, first: u32, kept: u32) -> Option<(u32, u32)> {
        let nr = self.half(ring, "calls.brief_nr").filter(|nr| *nr != NO_CALL)?;
        let before = self.half(ring, "calls.brief_before")?;
        let age = (next as u32).wrapping_sub(before) / self.slots.size as u32;
        let before = ((next / self.slots.size) as u32).wrapping_sub(age);
        (age <= kept).then(|| (before.wrapping_sub(first), nr))
    }

    fn call(&self, ring: u64, number: u32, first: u32) -> Option<Call> {
        let at = self.slots.at(ring, number)?;
        let (entry, exit) = (self.word(at, "calls.entry")?, self.word(at, "calls.exit")?);
        let args_at = at.checked_add(self.table.get("calls.args")?)?;
        let mut args = [0; 6];
        for (to, place) in args.iter_mut().zip((args_at..).step_by(8)) {
            *to = self.space.word(place)?;
        }
        let result = self.word(at, "calls.result")?.cast_signed();
        let nr = self.half(at, "calls.nr")?;
        let slot = CallSlot {
            index: number.wrapping_sub(first),
            cpu: self.half(at, "calls.cpu")?,
            entry,
            // Before the entry it is of the call that had the slot before: this one is in progress.
            done: (exit >= entry).then_some((exit, result)),
            args,
            texts: self.texts(ring, number, nr, &args),
        };
        Some(Call { nr, slot: Some(slot) })
    }

    /// What the arguments of a call point to that may point to something: the later read of two counts.
    fn texts(&self, ring: u64, call: u32, nr: u32, args: &[u64; 6]) -> [Option<(Vec<u8>, bool)>; 6] {
        let mut found = [const { None }; 6];
        let known = syscalls::by_number(u64::from(nr)).map_or(&[][..], |known| known.args);
        let points = |at: usize| {
            known.get(at).is_some_and(|arg| matches!(arg.kind, ArgKind::Path | ArgKind::Str | ArgKind::Ptr))
        };
        let ring = self.word(ring, "calls.texts").filter(|ring| *ring != 0);
        let Some(((ring, slots), next)) =
            ring.zip(self.texts).and_then(|of| Some((of, self.half(of.0, "texts.next")?)))
        else {
            return found;
        };
        if !(0..6).any(points) {
            return found;
        }
        let entries: Vec<(u64, u64, u32)> = (1..slots.count as u32)
            .map_while(|back| slots.at(ring, next.wrapping_sub(back)))
            .filter_map(|at| Some((at, self.word(at, "texts.addr")?, self.word(at, "texts.call")?)))
            .filter(|(_, addr, of)| (of >> 32) as u32 == call && *addr != 0)
            .map(|(at, addr, of)| (at, addr, of as u32))
            .collect();
        let entry = |wanted: u64| entries.iter().find(|(_, addr, _)| *addr == wanted);
        for (number, found) in found.iter_mut().enumerate().filter(|(number, _)| points(*number)) {
            let Some((at, addr, length)) = entry(args[number]) else { continue };
            *found = self.text(*at, *length);
            // A structure of more bytes goes on in a second entry.
            let Some((bytes, cut @ true)) = found else { continue };
            let rest = length.saturating_sub(bytes.len() as u32);
            let second = addr.checked_add(bytes.len() as u64).and_then(entry).filter(|(.., length)| *length == rest);
            if let Some((more, goes_on)) = second.and_then(|(at, _, length)| self.text(*at, *length)) {
                bytes.extend(more);
                *cut = goes_on;
            }
        }
        found
    }

    fn text(&self, at: u64, length: u32) -> Option<(Vec<u8>, bool)> {
        let most = self.table.get("texts.kept").filter(|kept| *kept <= MOST_KEPT)?;
        let kept = u64::from(length).min(most);
        let bytes = self.space.bytes(at.checked_add(self.table.get("texts.words")?)?, kept as usize)?;
        Some((bytes, u64::from(length) > most))
    }
}

impl Call {
    /// As the kernel's own dump has it (`kernel/src/trace/ring.rs`).
    pub(super) fn record(&self, (pid, tid): (u32, u32), clock: Option<&Clock>) -> SyscallRecord<'_> {
        let known = syscalls::by_number(u64::from(self.nr));
        let record = SyscallRecord {
            pid: Some(pid),
            tid: Some(tid),
            nr: Some(i64::from(self.nr)),
            name: known.map(|known| known.name.as_bytes()),
            ..SyscallRecord::default()
        };
        let Some(slot) = &self.slot else { return SyscallRecord { in_progress: Some(false), ..record } };
        let count = known.map_or(6, |known| known.args.len());
        let arg = |number: usize| (number < count).then(|| slot.args[number]);
        let ticks = slot.done.map(|(exit, _)| exit.saturating_sub(slot.entry));
        let text = |number: usize| slot.texts[number].as_ref().map(|(bytes, _)| bytes.as_slice());
        let is_cut = |text: &Option<(Vec<u8>, bool)>| text.as_ref().is_some_and(|(_, cut)| *cut);
        let cut: u32 = slot.texts.iter().enumerate().map(|(at, text)| u32::from(is_cut(text)) << at).sum();
        SyscallRecord {
            arg0: arg(0),
            arg1: arg(1),
            arg2: arg(2),
            arg3: arg(3),
            arg4: arg(4),
            arg5: arg(5),
            text0: text(0),
            text1: text(1),
            text2: text(2),
            text3: text(3),
            text4: text(4),
            text5: text(5),
            texts_cut: Some(cut).filter(|cut| *cut != 0),
            result: slot.done.map(|(_, result)| result),
            duration_ns: ticks.and_then(|ticks| clock?.lasts(ticks)),
            duration_ticks: ticks,
            in_progress: slot.done.is_none().then_some(true),
            index: Some(u64::from(slot.index)),
            stamp: Stamp {
                cpu: Some(slot.cpu),
                ns: clock.and_then(|clock| clock.at(slot.entry)),
                tsc: Some(slot.entry),
                ..Stamp::default()
            },
            ..record
        }
    }
}
