//! What of a dump is compared, kind by kind, and which of it varies from run to run.

use std::collections::BTreeMap;

use kwab_format::record::{Counter, Pte, Vma};

use super::beside::Known;
use crate::analysis::{Context, Triage, text};
use crate::decode::PointerClass;
use crate::report::align::shape;
use crate::report::catalogue::CatalogueEntry;
use crate::report::inspect::{RegisterRow, Report};
use crate::symbols::{Probe, short};
use crate::units::count;

/// How facts of a kind are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// Facts of the same name.
    ByName,
    /// Facts of the same name, of which every dump has the same names as far as it records them.
    Recorded,
    /// As a list.
    AsTheyStand,
    /// As the end of a longer list.
    Tail,
}

/// A kind of facts.
#[derive(Debug)]
pub(super) struct PartKind {
    pub(super) name: &'static str,
    pub(super) order: Order,
    /// Whether a dump without such facts says that there are none; of other kinds it does not record them.
    pub(super) may_be_empty: bool,
    facts: fn(&Seen<'_, '_, '_>, &mut Facts),
}

/// What a dump's facts are taken from.
struct Seen<'s, 'c, 'a> {
    report: &'s Report,
    ctx: &'s Context<'c, 'a>,
    triage: &'s Triage,
}

const fn part(name: &'static str, order: Order, facts: fn(&Seen<'_, '_, '_>, &mut Facts)) -> PartKind {
    PartKind { name, order, may_be_empty: false, facts }
}

/// All kinds, in the order in which they matter.
pub(super) const PARTS: &[PartKind] = &[
    PartKind { may_be_empty: true, ..part("finding", Order::ByName, findings) },
    PartKind { may_be_empty: true, ..part("audit", Order::ByName, audit) },
    part("cause", Order::Recorded, cause),
    part("backtrace", Order::AsTheyStand, backtrace),
    part("register", Order::Recorded, registers),
    part("kernel", Order::Recorded, kernel),
    part("option", Order::ByName, options),
    part("mapping", Order::ByName, mappings),
    part("page table", Order::ByName, page_tables),
    part("task", Order::ByName, tasks),
    part("system call", Order::Tail, calls),
    part("counter", Order::Recorded, counters),
    part("log", Order::Tail, log),
];

/// Facts of a kind that are kept of a dump: what two dumps claim is bounded, whatever they hold.
const MOST: usize = 4096;
/// Bytes of a name or value that are kept.
const QUOTED: usize = 240;

/// The facts of a kind.
#[derive(Debug, Default)]
pub(super) struct Facts {
    pub(super) known: Vec<Known>,
    /// How many there are beyond those.
    pub(super) left_out: usize,
}

impl Facts {
    fn add(&mut self, known: Known) {
        if self.known.len() == MOST {
            self.left_out += 1;
            return;
        }
        let Known { name, value, stable, .. } = known;
        self.known.push(Known { name: cut(name), value: cut(value), stable: cut(stable), ..known });
    }

    fn extend(&mut self, all: impl IntoIterator<Item = Known>) {
        all.into_iter().for_each(|known| self.add(known));
    }
}

fn cut(mut text: String) -> String {
    if text.len() > QUOTED {
        text.truncate(text.floor_char_boundary(QUOTED));
        text.push('…');
        text.shrink_to_fit();
    }
    text
}

/// The facts of one dump, ready to be compared with those of another.
#[derive(Debug)]
pub struct Subject {
    pub(super) entry: CatalogueEntry,
    pub(super) facts: Vec<Facts>,
}

impl Subject {
    /// Takes the facts of a dump from what inspection and triage say of it.
    #[must_use]
    pub fn of(entry: CatalogueEntry, report: &Report, ctx: &Context<'_, '_>, triage: &Triage) -> Self {
        let seen = Seen { report, ctx, triage };
        let facts = PARTS.iter().map(|part| {
            let mut facts = Facts::default();
            (part.facts)(&seen, &mut facts);
            facts
        });
        Self { entry, facts: facts.collect() }
    }
}

/// A text in which addresses and process ids are alike.
fn without_addresses(said: &str) -> String {
    let is_word = |letter: char| letter.is_ascii_alphanumeric();
    let mut out = String::with_capacity(said.len());
    let mut rest = said;
    while let Some(first) = rest.chars().next() {
        let end = rest.find(|letter| is_word(letter) != is_word(first)).unwrap_or(rest.len());
        let (word, behind) = rest.split_at(end);
        let digits = word.strip_prefix("0x").unwrap_or(word);
        let hexadecimal = digits.len() >= 6 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        let pid = out.ends_with('[') && behind.starts_with(']') || out.ends_with("pid ");
        out.push_str(if hexadecimal || pid && word.bytes().all(|byte| byte.is_ascii_digit()) { "#" } else { word });
        rest = behind;
    }
    out
}

fn findings(seen: &Seen<'_, '_, '_>, facts: &mut Facts) {
    let known = seen.triage.hypotheses.iter().map(|found| {
        let about = found.about.map(|about| format!(" {about}")).unwrap_or_default();
        let function = found.function.as_ref().map(|function| format!(" in {}", function.name)).unwrap_or_default();
        let likely = if found.score >= crate::analysis::LIKELY { "likely" } else { "possible" };
        let value = format!("{:.2} {}", found.score, found.claim);
        Known::varying(format!("{}{about}{function}", found.rule), value, likely)
    });
    facts.extend(known);
}

fn audit(seen: &Seen<'_, '_, '_>, facts: &mut Facts) {
    let known = seen.ctx.audit.iter().map(|found| {
        let places = i64::try_from(found.count).unwrap_or(i64::MAX);
        Known::measured(found.rule, places, format!("{} ({})", found.title, count(found.count, "time", "times")))
    });
    facts.extend(known);
}

fn cause(seen: &Seen<'_, '_, '_>, facts: &mut Facts) {
    let Some(cause) = &seen.report.cause else { return };
    facts.add(Known::new("kind", &cause.kind));
    let mut add = |name: &str, value: &Option<String>| {
        facts.extend(value.as_ref().map(|value| Known::varying(name, value, without_addresses(value))));
    };
    add("victim", &Some(cause.victim.clone()));
    add("process", &cause.comm);
    add("command", &cause.cmdline);
    add("message", &cause.message);
    add("location", &cause.place);
    add("signal", &cause.signal);
    add("exception", &cause.exception);
    if let Some(addr) = seen.ctx.death.fault_addr {
        let (value, what) = valued(seen, addr);
        facts.add(Known::varying("fault address", value, what));
    }
}

/// What an address is, so that it is said alike in each run: the symbol, the mapping with the offset in its file, or
/// the kind of value.
fn described(seen: &Seen<'_, '_, '_>, value: u64) -> String {
    let Seen { ctx, .. } = seen;
    let pid = ctx.death.code_pid();
    if let Some(name) = short(&ctx.symbols.resolve(value, pid, Probe::Exact)) {
        return name;
    }
    match ctx.class_of(value) {
        PointerClass::Null => "0".to_string(),
        PointerClass::NearNull => format!("{value:#x}"),
        PointerClass::BelowNull => format!("{}", value.cast_signed()),
        PointerClass::Poison(name) => format!("{value:#x} ({name})"),
        PointerClass::NonCanonical => format!("{value:#x}, no address"),
        PointerClass::Kernel => match offset_in_kernel(seen, value) {
            Some(offset) => format!("kernel image {offset:#x}"),
            None => "in the kernel's half".to_string(),
        },
        PointerClass::User => match ctx.vma_at(value) {
            Some(vma) => match vma.path.filter(|path| !path.is_empty()) {
                Some(path) => {
                    let into = value.saturating_sub(vma.start.unwrap_or(0));
                    let offset = into.saturating_add(vma.file_offset.unwrap_or(0));
                    format!("{} +{offset:#x}", text(Some(path)))
                }
                None => format!("in {}", text(vma.name.or(Some(b"[anon]")))),
            },
            None => "in the user's half".to_string(),
        },
    }
}

/// A value as it reads, and what of it is said alike in each run.
fn valued(seen: &Seen<'_, '_, '_>, value: u64) -> (String, String) {
    let what = described(seen, value);
    let number = format!("{value:#x}");
    let says_it = what.starts_with(&number) || matches!(seen.ctx.class_of(value), PointerClass::Null);
    (if says_it { what.clone() } else { format!("{number}: {what}") }, what)
}

/// The address as the kernel was linked, when its code is at a known offset.
fn offset_in_kernel(seen: &Seen<'_, '_, '_>, value: u64) -> Option<u64> {
    /// The top 2 GiB, where x86-64 kernels are linked.
    const LINKED: u64 = 0xffff_ffff_8000_0000;
    let offset = seen.ctx.case.identities.first()?.kernel_offset?;
    (value >= LINKED).then(|| value.wrapping_sub(offset))
}

fn backtrace(seen: &Seen<'_, '_, '_>, facts: &mut Facts) {
    let frames = seen.report.backtraces.first().into_iter().flat_map(|trace| &trace.frames);
    let known = frames.map(|frame| {
        if frame.symbol.is_empty() {
            let addr = frame.addr.as_deref().unwrap_or_default();
            let number = u64::from_str_radix(addr.trim_start_matches("0x"), 16).unwrap_or(0);
            return Known::varying("", addr, described(seen, number));
        }
        let place = frame.place.as_ref().map(|place| format!(" at {place}")).unwrap_or_default();
        let function = frame.symbol.split("+0x").next().unwrap_or_default();
        Known::varying("", format!("{}{place}", frame.symbol), function)
    });
    facts.extend(known);
}

/// Registers that say where the machine was and differ between two runs; `cr2` is the address that the cause names.
const OF_THE_RUN: &[&str] = &["cr2", "cr3", "gs_base", "kernel_gs_base", "fs_base"];

/// The registers of the death; those that the faulting instruction names come first.
fn registers(seen: &Seen<'_, '_, '_>, facts: &mut Facts) {
    let set = seen.report.registers.first().into_iter().flat_map(|set| &set.registers);
    let marked = seen.report.code.iter().flat_map(|code| &code.lines).find(|line| line.marked);
    let instruction = marked.map(|line| line.text.as_str()).unwrap_or_default();
    let is_named =
        |name: &str| instruction.split(|letter: char| !letter.is_ascii_alphanumeric()).any(|word| word == name);
    let mut known: Vec<(bool, Known)> = set.map(|row| (!is_named(&row.name), register(seen, row))).collect();
    known.sort_by_key(|(late, _)| *late);
    facts.extend(known.into_iter().map(|(_, known)| known));
}

/// Numbers below this in a register may count something: 1 MiB.
const COUNT: i64 = 1 << 20;

/// Whether an instruction died of what the registers hold. The registers of a panic are those of the code that reports
/// it, where small numbers are lengths and counters.
fn is_of_instruction(seen: &Seen<'_, '_, '_>) -> bool {
    let is_named = seen.report.cause.as_ref().is_some_and(|cause| cause.exception.is_some() || cause.signal.is_some());
    is_named || seen.ctx.death.fault_addr.is_some()
}

/// Whether the kernel died, whose registers may still have what a system call left.
fn is_of_kernel(seen: &Seen<'_, '_, '_>) -> bool {
    seen.ctx.death.is_of_kernel()
}

/// The program's flags that `syscall` saves in r11 (SDM volume 2B, SYSCALL), without those that its last comparison
/// set, of addresses perhaps; `None` of what no program's flags can be.
fn saved_flags(value: u64) -> Option<u64> {
    const COMPARED: u64 = 0x8d5;
    const ALWAYS: u64 = 0x202;
    const NEVER: u64 = !0x3f_ffff | 0x8028;
    (value & ALWAYS == ALWAYS && value & NEVER == 0).then_some(value & !COMPARED)
}

fn register(seen: &Seen<'_, '_, '_>, row: &RegisterRow) -> Known {
    let number = u64::from_str_radix(&row.value, 16).unwrap_or(0);
    let note = row.note.as_deref().unwrap_or_default();
    match row.name.as_str() {
        "rflags" => Known::varying("rflags", note, note),
        name if OF_THE_RUN.contains(&name) => Known::varying(name, &row.value, ""),
        name if name.starts_with("cr") || matches!(name, "efer" | "cs" | "ss" | "ds" | "es" | "fs" | "gs") => {
            Known::new(name, &row.value)
        }
        "r11" if is_of_kernel(seen) && saved_flags(number).is_some() => {
            let kept = saved_flags(number).unwrap_or_default();
            Known::varying("r11", format!("{number:#x}"), format!("flags {kept:#x}"))
        }
        name => {
            let (value, what) = valued(seen, number);
            let known = match i64::try_from(number) {
                Ok(count @ 1..COUNT) if !is_of_instruction(seen) => Known::measured(name, count, value),
                _ => Known::varying(name, value, what),
            };
            Known { described: Some(number), ..known }
        }
    }
}

/// Facts of the head of a report that differ between boots, or that are compared word by word.
const NOT_COMPARED: &[&str] =
    &["load offset", "clock", "boot", "made from", "written by", "reason", "command line", "debug"];

fn kernel(seen: &Seen<'_, '_, '_>, facts: &mut Facts) {
    let meta = &seen.report.meta;
    let recorded = meta.iter().filter(|fact| !NOT_COMPARED.contains(&fact.name.as_str()));
    facts.extend(recorded.map(|fact| Known::new(&*fact.name, &*fact.value)));
}

/// The words of the kernel's command line, and what was recorded.
fn options(seen: &Seen<'_, '_, '_>, facts: &mut Facts) {
    for (name, word_of, end) in [("command line", "", ' '), ("debug", "debug ", ',')] {
        let line =
            seen.report.meta.iter().find(|fact| fact.name == name).map(|fact| fact.value.as_str()).unwrap_or_default();
        for word in line.split(end).map(str::trim).filter(|word| !word.is_empty()) {
            let option = word.split('=').next().unwrap_or(word);
            facts.add(Known::new(format!("{word_of}{option}"), word));
        }
    }
}

/// The mappings of the process that died or ran.
fn mapped<'s>(seen: &'s Seen<'_, '_, '_>) -> impl Iterator<Item = &'s Vma<'s>> {
    let pid = seen.ctx.death.pid;
    let all = seen.ctx.case.vmas.iter().map(|vma| &vma.record);
    all.filter(move |vma| vma.pid.is_none() || pid.is_none() || vma.pid == pid)
}

fn label(vma: &Vma<'_>) -> String {
    match vma.path.filter(|path| !path.is_empty()) {
        Some(path) => format!("{} +{:#x}", text(Some(path)), vma.file_offset.unwrap_or(0)),
        None => text(vma.name.or(Some(b"[anon]"))),
    }
}

fn mappings(seen: &Seen<'_, '_, '_>, facts: &mut Facts) {
    let known = mapped(seen).map(|vma| {
        let rights =
            vma.prot.map_or_else(|| "???".to_string(), |prot| letters(prot.into(), &[(1, 'r'), (2, 'w'), (4, 'x')]));
        let bytes = vma.end.unwrap_or(0).saturating_sub(vma.start.unwrap_or(0));
        let value = format!("{rights} {} KiB", bytes >> 10);
        let pages = i64::try_from(bytes >> 12).unwrap_or(i64::MAX);
        Known { stable: rights, ..Known::measured(label(vma), pages, value) }
    });
    facts.extend(known);
}

fn letters(bits: u64, names: &[(u64, char)]) -> String {
    names.iter().map(|(bit, letter)| if bits & bit != 0 { *letter } else { '-' }).collect()
}

/// What the page tables allow in each mapping: the rights that occur, with how many pages have them.
fn page_tables(seen: &Seen<'_, '_, '_>, facts: &mut Facts) {
    let pid = seen.ctx.death.pid;
    let mut allowed: BTreeMap<String, BTreeMap<String, u64>> = BTreeMap::new();
    let all = seen.ctx.case.ptes.iter().map(|pte| &pte.record);
    for pte in all.filter(|pte| pte.pid.is_some() && (pid.is_none() || pte.pid == pid)) {
        let place =
            pte.vaddr.and_then(|addr| seen.ctx.vma_at(addr)).map_or_else(|| "no mapping".to_string(), |vma| label(vma));
        let pages = pte.size.unwrap_or(4096).saturating_mul(pte.count.unwrap_or(1)) >> 12;
        let of_place = allowed.entry(place).or_default().entry(rights(pte)).or_default();
        *of_place = of_place.saturating_add(pages);
    }
    let known = allowed.into_iter().map(|(place, rights)| {
        let value: Vec<_> = rights.iter().map(|(rights, pages)| format!("{rights} × {pages}")).collect();
        let stable: Vec<_> = rights.into_keys().collect();
        Known::varying(place, value.join(", "), stable.join(" "))
    });
    facts.extend(known);
}

/// Rights of a leaf without what the processor sets in it.
fn rights(pte: &Pte<'_>) -> String {
    let bits = u64::from(pte.rights.unwrap_or(0));
    let size = if pte.size.unwrap_or(4096) > 4096 { " huge" } else { "" };
    format!("{}{size}", letters(bits, &[(1, 'p'), (2, 'w'), (4, 'x'), (8, 'u'), (128, 'c')]))
}

fn tasks(seen: &Seen<'_, '_, '_>, facts: &mut Facts) {
    let known = seen.report.tasks.iter().map(|task| {
        let place = if task.place.is_empty() { String::new() } else { format!(" in {}", task.place) };
        let value = format!("{}{place}", task.state);
        let stable = shape(&value);
        Known::varying(&*task.comm, value, stable)
    });
    facts.extend(known);
}

fn calls(seen: &Seen<'_, '_, '_>, facts: &mut Facts) {
    let rows = seen.report.syscalls.iter();
    facts.extend(rows.map(|row| Known::varying("", &*row.text, shape(&row.text))));
}

/// Whether a counter tells how the dump was written, or how memory happened to be cut up.
fn is_of_the_run(counter: &Counter<'_>) -> bool {
    counter.group.is_some_and(|group| group.starts_with(b"dump") || group == b"import")
        || counter.name.is_some_and(|name| name.starts_with(b"free blocks of order"))
}

fn counters(seen: &Seen<'_, '_, '_>, facts: &mut Facts) {
    let all = seen.ctx.case.counters.iter().filter(|counter| counter.pid.is_none() && !is_of_the_run(counter));
    let known = all.filter_map(|counter| {
        let value = counter.value?;
        let group = counter.group.map(|group| format!("{} ", text(Some(group)))).unwrap_or_default();
        let unit = counter
            .unit
            .filter(|unit| !unit.is_empty())
            .map(|unit| format!(" {}", text(Some(unit))))
            .unwrap_or_default();
        Some(Known::measured(format!("{group}{}", text(counter.name)), value, format!("{value}{unit}")))
    });
    facts.extend(known);
}

/// A console line without the time and the caller that kernels print in brackets before it.
fn unstamped(line: &str) -> &str {
    /// `[12345.678901]` with room for wider clocks.
    const LONGEST: usize = 24;
    let mut rest = line.trim_start();
    while let Some((stamp, behind)) = rest.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        let is_stamp = stamp.len() <= LONGEST
            && stamp.trim_start_matches([' ', 'T', 'C']).starts_with(|first: char| first.is_ascii_digit());
        if !is_stamp {
            break;
        }
        rest = behind.trim_start();
    }
    rest
}

fn log(seen: &Seen<'_, '_, '_>, facts: &mut Facts) {
    let rows = seen.report.log.iter();
    facts.extend(rows.map(|row| Known::varying("", &*row.text, shape(unstamped(&row.text)))));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_process_ids_are_alike_and_other_numbers_are_not() {
        let same = |one: &str, two: &str| without_addresses(one) == without_addresses(two);
        assert!(same("null pointer at 0xffffffff81234567 by sh[12]", "null pointer at 0xffffffff9abcdef0 by sh[7]"));
        assert!(same("running cat, pid 7", "running cat, pid 812"));
        assert_eq!(unstamped("[   12.5][ T7] [drm] x [1]"), "[drm] x [1]");
        assert!(!same("the len is 3 but the index is 7", "the len is 3 but the index is 8"));
    }

    #[test]
    fn the_flags_of_a_system_call_are_those_without_the_last_comparison() {
        assert_eq!((saved_flags(0x206), saved_flags(0x8d7 | 0x200)), (Some(0x202), Some(0x202)));
        assert_ne!(saved_flags(0x202), saved_flags(0x602));
        for value in [0, 0x2, 0x20a, 0xffff_ffff_8100_0202, 0x6b6b_6b6b] {
            assert_eq!(saved_flags(value), None, "{value:#x}");
        }
    }
}
