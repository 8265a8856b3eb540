//! Audits mappings against page tables against frame counts: rules with ids, each with the rows that witness it.
//!
//! Every rule compares things that the dump says of the same page; none guesses. Rights are those of x86_64 entries
//! (SDM volume 3A, chapter 4.5); an entry's rights come from its record, or from the raw entry where the record has
//! none.

use std::collections::BTreeMap;

use kwab_format::SectionKind;
use kwab_format::record::{FrameInfo, ImageKind, Task, Vma};
use schemars::JsonSchema;
use serde::Serialize;

use super::evidence::Evidence;
use super::quote::text;
pub use super::space::is_present;
use super::space::{Mapping, PAGE, Spaces, paging};
use crate::model::{Case, Located};
use crate::units;

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Allowed, but worth knowing.
    Note,
    /// Wrong in most systems.
    Warning,
    /// The rule's violation is a bug.
    Error,
}

/// A rule of the audit.
#[derive(Clone, Copy, Debug)]
pub struct AuditRule {
    /// Name of the rule, as `--rule` takes it.
    pub id: &'static str,
    /// How bad a violation is.
    pub severity: Severity,
    /// What it says, as a sentence about the violation.
    pub title: &'static str,
    /// How strongly a violation supports that this is the cause of a death, 0 to 1.
    pub weight: f64,
    check: fn(&Audit<'_, '_>, &mut Rows),
}

/// A rule that is violated.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Finding {
    /// Name of the violated rule.
    pub rule: &'static str,
    /// How bad it is.
    pub severity: Severity,
    /// What is wrong.
    pub title: &'static str,
    /// How many places violate it.
    pub count: u64,
    /// The first of them.
    pub witnesses: Vec<Evidence>,
    /// The address of the first, when it is about one.
    #[serde(serialize_with = "crate::text::some_word")]
    #[schemars(with = "Option<String>")]
    pub addr: Option<u64>,
    /// The process it is about.
    pub pid: Option<u32>,
    /// What is lost that the finding rests on.
    pub weakened: Vec<String>,
    /// How strongly it supports being the cause of a death.
    #[serde(skip)]
    pub weight: f64,
}

/// The kinds of section that the rules compare.
pub const RESTS_ON: &[SectionKind] =
    &[SectionKind::MEMORY_MAP, SectionKind::PAGE_TABLE, SectionKind::IMAGES, SectionKind::TASKS];

/// Witnesses that are kept of one rule.
pub const MAX_WITNESSES: usize = 8;

/// The rules of the audit, in the order of the report.
pub const RULES: &[AuditRule] = &[
    rule("VM-OVERLAP", Severity::Error, "two mappings of one process overlap", 0.85, overlap),
    rule("VM-SPAN-2", Severity::Error, "a page belongs to two mappings and is mapped", 0.90, span),
    rule(
        "VM-KERNEL-U",
        Severity::Error,
        "a kernel or non-canonical address is mapped for user mode",
        0.90,
        kernel_user,
    ),
    rule("VM-ELF", Severity::Error, "a mapping gives rights that its ELF segment does not", 0.93, elf_rights),
    rule("VM-LEVEL", Severity::Error, "an entry above the leaf forbids what the leaf allows", 0.93, level),
    rule(
        "VM-CACHE-W",
        Severity::Error,
        "a cached file page is writable through a private mapping",
        0.93,
        cache_writable,
    ),
    rule("VM-FREE", Severity::Error, "a mapped frame is marked free", 0.93, mapped_free),
    rule("VM-COUNT-LOW", Severity::Error, "a frame has fewer references than mappings", 0.90, count_low),
    rule("VM-SHARE", Severity::Error, "two processes use one page table", 0.93, shared_root),
    rule("VM-PTE", Severity::Error, "a page is mapped outside every mapping", 0.85, pte_without_vma),
    rule("VM-RIGHTS-W", Severity::Error, "a page is writable and its mapping is not", 0.90, extra_write),
    rule("VM-RIGHTS-X", Severity::Error, "a page is executable and its mapping is not", 0.80, extra_execute),
    rule("VM-RIGHTS-U", Severity::Error, "a page of a mapping without any right is accessible", 0.80, extra_user),
    rule("VM-DENY-X", Severity::Error, "a mapping is executable and its page is not", 0.88, denied_execute),
    rule("VM-DENY-U", Severity::Error, "a page of a mapping is not accessible to user mode", 0.88, denied_user),
    rule("VM-HUGE", Severity::Error, "a huge page reaches beyond its mapping", 0.88, huge_partial),
    rule("VM-HUGE-COUNT", Severity::Error, "the small pages of a huge page have uneven counts", 0.80, huge_uneven),
    rule("VM-LEAK", Severity::Warning, "frames are referenced and mapped nowhere", 0.80, count_high),
    rule("VM-REPORT", Severity::Warning, "the kernel's own audit counted mismatches", 0.60, reported),
    rule("VM-WX", Severity::Warning, "a mapping is writable and executable", 0.30, write_execute),
];

const fn rule(
    id: &'static str,
    severity: Severity,
    title: &'static str,
    weight: f64,
    check: fn(&Audit<'_, '_>, &mut Rows),
) -> AuditRule {
    AuditRule { id, severity, title, weight, check }
}

/// Checks every rule, worst first in the order of the table.
#[must_use]
pub fn audit(case: &Case<'_>) -> Vec<Finding> {
    let audit = Audit { case, spaces: Spaces::of(case) };
    let checked = RULES.iter().filter_map(|rule| {
        let mut rows = Rows::default();
        (rule.check)(&audit, &mut rows);
        let addr = rows.addr;
        (rows.count > 0).then(|| Finding {
            rule: rule.id,
            severity: rule.severity,
            title: rule.title,
            count: rows.count,
            witnesses: rows.kept,
            addr,
            pid: rows.pid,
            weakened: case.weakness(RESTS_ON),
            weight: rule.weight,
        })
    });
    checked.collect()
}

/// What there is to audit: mappings, entries, frames and tasks with page-table roots.
#[must_use]
pub fn scope(case: &Case<'_>) -> (usize, usize, usize) {
    (case.vmas.len(), case.ptes.len(), case.frame_infos.len())
}

struct Audit<'c, 'a> {
    case: &'c Case<'a>,
    spaces: Spaces<'c, 'a>,
}

#[derive(Default)]
struct Rows {
    count: u64,
    kept: Vec<Evidence>,
    addr: Option<u64>,
    pid: Option<u32>,
}

impl Rows {
    fn add(&mut self, pid: Option<u32>, addr: Option<u64>, row: Evidence) {
        if self.count == 0 {
            (self.addr, self.pid) = (addr, pid);
        }
        self.count += 1;
        if self.kept.len() < MAX_WITNESSES {
            self.kept.push(row);
        }
    }
}

fn row<T>(found: &Located<T>, text: String) -> Evidence {
    Evidence::of(text, Some(found.at), 0.0)
}

fn vma_text(vma: &Vma<'_>) -> String {
    let right = |bit: u32, letter: char| if vma.prot.unwrap_or(0) >> bit & 1 == 1 { letter } else { '-' };
    let name = text(vma.path.or(vma.name));
    let (start, end) = (vma.start.unwrap_or(0), vma.end.unwrap_or(0));
    format!("{start:#x}-{end:#x} {}{}{} {name}", right(0, 'r'), right(1, 'w'), right(2, 'x')).trim_end().to_owned()
}

fn pte_text(mapping: &Mapping<'_, '_>) -> String {
    let rights = mapping.rights;
    let mut words = vec![if rights.write { "writable" } else { "read-only" }];
    words.push(if rights.execute { "executable" } else { "no-execute" });
    words.push(if rights.user { "user" } else { "kernel" });
    if rights.cow {
        words.push("copy-on-write");
    }
    format!("page {:#x} → frame {:#x}, {}", mapping.start, mapping.frame, words.join(" "))
}

fn overlap(audit: &Audit<'_, '_>, rows: &mut Rows) {
    for (pid, vmas) in audit.spaces.maps() {
        for pair in vmas.windows(2) {
            let (Some(end), Some(start)) = (pair[0].end, pair[1].start) else { continue };
            if start < end {
                rows.add(pid, Some(start), row(pair[1], format!("{} | {}", vma_text(pair[0]), vma_text(pair[1]))));
            }
        }
    }
}

fn span(audit: &Audit<'_, '_>, rows: &mut Rows) {
    for (pid, vmas) in audit.spaces.maps() {
        for pair in vmas.windows(2) {
            let (Some(end), Some(start)) = (pair[0].end, pair[1].start) else { continue };
            let last = end.saturating_sub(1) / PAGE;
            // The page that holds the end of one and the start of the next.
            if end == 0 || start < end || last != start / PAGE {
                continue;
            }
            let page = start / PAGE * PAGE;
            let names = format!("{} | {}", vma_text(pair[0]), vma_text(pair[1]));
            match audit.spaces.mapping_at(pid, page) {
                Some(mapping) => {
                    let cached = audit.spaces.frame(mapping.frame).filter(|frame| frame.flags.unwrap_or(0) & 2 != 0);
                    let from = if cached.is_some() { "; the frame is in the page cache" } else { "" };
                    rows.add(pid, Some(page), row(pair[1], format!("{names}: {}{from}", pte_text(&mapping))));
                }
                // Without page tables in the dump the shared page is still the thing to look at.
                None if audit.case.ptes.is_empty() => {
                    rows.add(pid, Some(page), row(pair[1], format!("{names}: both in page {page:#x}")));
                }
                None => {}
            }
        }
    }
}

fn kernel_user(audit: &Audit<'_, '_>, rows: &mut Rows) {
    let end = paging(audit.case).user_end();
    for mapping in audit.spaces.mappings().filter(|m| m.rights.user && m.start >= end) {
        rows.add(mapping.pid, Some(mapping.start), row(mapping.source, pte_text(&mapping)));
    }
    for vma in audit.case.vmas.iter().filter(|vma| vma.end.is_some_and(|last| last > end) && vma.pid.is_some()) {
        rows.add(vma.pid, vma.start, row(vma, vma_text(vma)));
    }
}

/// Segments of the images of one process that mappings are compared with.
const MOST_SEGMENTS: usize = 4096;

fn elf_rights(audit: &Audit<'_, '_>, rows: &mut Rows) {
    let mut segments: BTreeMap<Option<u32>, Vec<(u64, u64, u32)>> = BTreeMap::new();
    let kernel = |kind: Option<ImageKind>| matches!(kind, Some(ImageKind::KERNEL | ImageKind::MODULE));
    for image in audit.case.images.iter().filter(|image| !kernel(image.kind)) {
        let all = image.segments.iter().flat_map(kwab_format::List::iter);
        let known = all.filter_map(|segment| Some((segment.start?, segment.length?, segment.prot?)));
        let own = segments.entry(image.pid).or_default();
        own.extend(known.take(MOST_SEGMENTS.saturating_sub(own.len())));
    }
    segments.values_mut().for_each(|own| own.sort_unstable());
    for vma in &audit.case.vmas {
        let (Some(start), Some(end), Some(prot), Some(_)) = (vma.start, vma.end, vma.prot, vma.path) else { continue };
        let own = segments.get(&vma.pid).map(Vec::as_slice).unwrap_or_default();
        for (at, &(low, _, given)) in own.iter().enumerate() {
            let (from, to) = pages_of_its_own(own, at);
            // Rights may be taken away later (RELRO), never added. A mapping may hold several segments.
            let extra = prot & !given & 6;
            if extra != 0 && from.max(start) < to.min(end) {
                let what = if extra & 2 != 0 { "writable" } else { "executable" };
                rows.add(
                    vma.pid,
                    Some(start.max(low / PAGE * PAGE)),
                    row(vma, format!("{}: the segment at {low:#x} is not {what}", vma_text(vma))),
                );
            }
        }
    }
}

/// The pages of a segment, without those that it shares with its neighbours: such a page has the rights of both.
fn pages_of_its_own(segments: &[(u64, u64, u32)], at: usize) -> (u64, u64) {
    let pages = |&(low, length, _): &(u64, u64, u32)| {
        (low / PAGE * PAGE, low.saturating_add(length).checked_next_multiple_of(PAGE).unwrap_or(u64::MAX))
    };
    let (from, to) = segments.get(at).map_or((0, 0), pages);
    let before = at.checked_sub(1).and_then(|at| segments.get(at)).map_or(0, |before| pages(before).1);
    let behind = segments.get(at + 1).map_or(u64::MAX, |behind| pages(behind).0);
    (from.max(before), to.min(behind))
}

fn level(audit: &Audit<'_, '_>, rows: &mut Rows) {
    for mapping in audit.spaces.mappings() {
        for (level, raw) in &mapping.levels {
            let mut denies = Vec::new();
            if raw >> 63 == 1 && mapping.leaf.execute {
                denies.push("execution");
            }
            if raw & 2 == 0 && mapping.leaf.write {
                denies.push("writing");
            }
            if raw & 4 == 0 && mapping.leaf.user {
                denies.push("user mode");
            }
            if !denies.is_empty() && raw & 1 == 1 {
                let text = format!("level {level} ({raw:#x}) denies {} to {:#x}", denies.join(" and "), mapping.start);
                rows.add(mapping.pid, Some(mapping.start), row(mapping.source, text));
            }
        }
    }
}

fn cache_writable(audit: &Audit<'_, '_>, rows: &mut Rows) {
    for (mapping, vma) in audit.spaces.mapped_pairs() {
        let shared = vma.flags.unwrap_or(0) & 1 == 1;
        let cached = audit.spaces.frame(mapping.frame).filter(|frame| frame.flags.unwrap_or(0) & 2 != 0);
        if let (true, false, Some(frame)) = (mapping.rights.write, shared, cached) {
            let file = frame.path.map(|path| format!(", cached of {}", text(Some(path)))).unwrap_or_default();
            let text = format!("{} in {}{file}", pte_text(&mapping), vma_text(vma));
            rows.add(mapping.pid, Some(mapping.start), row(mapping.source, text));
        }
    }
}

fn mapped_free(audit: &Audit<'_, '_>, rows: &mut Rows) {
    for mapping in audit.spaces.mappings() {
        if let Some(frame) =
            audit.spaces.frame(mapping.frame).filter(|f| f.flags.unwrap_or(0) & 1 == 1 || f.refcount == Some(0))
        {
            let count = frame.refcount.unwrap_or(0);
            rows.add(
                mapping.pid,
                Some(mapping.start),
                row(mapping.source, format!("{}: free, count {count}", pte_text(&mapping))),
            );
        }
    }
}

fn count_low(audit: &Audit<'_, '_>, rows: &mut Rows) {
    let mapped = audit.spaces.counted_frames();
    for run in &mapped.runs {
        let Some(mapping) = mapped.mapping(run.first) else { continue };
        let info = audit.spaces.frame(run.first.saturating_mul(PAGE));
        let counted = info.and_then(|info| info.refcount).or(mapping.refcount);
        // The page cache holds a reference of its own.
        let cached = info.is_some_and(|info| info.flags.unwrap_or(0) & 2 != 0);
        let least = run.count + u64::from(cached);
        let Some(refs) = counted.filter(|refs| *refs < least && *refs > 0) else { continue };
        let holder = if cached { " and cached" } else { "" };
        let count = run.count;
        for frame in (run.first..).take(MAX_WITNESSES).take(usize::try_from(run.frames).unwrap_or(usize::MAX)) {
            let frame = frame.saturating_mul(PAGE);
            let text = format!(
                "frame {frame:#x}: {}, mapped {}{holder} (at {:#x})",
                references(refs),
                times(count),
                mapping.start
            );
            rows.add(mapping.pid, Some(mapping.start), row(mapping.source, text));
        }
        rows.count = rows.count.saturating_add(run.frames.saturating_sub(MAX_WITNESSES as u64));
    }
    for info in &audit.case.frame_infos {
        let (Some(refs), Some(maps), Some(number)) = (info.refcount, info.mapped, info.frame) else { continue };
        if refs < maps && mapped.mapping(number).is_none() {
            let frame = number.saturating_mul(PAGE);
            rows.add(None, None, row(info, format!("frame {frame:#x}: {}, mapped {}", references(refs), times(maps))));
        }
    }
}

fn references(count: u64) -> String {
    units::count(count, "reference", "references")
}

fn times(count: u64) -> String {
    if count == 1 { "once".to_owned() } else { format!("{count} times") }
}

fn count_high(audit: &Audit<'_, '_>, rows: &mut Rows) {
    // Only the kernel itself can count the mappings of all processes.
    let ordinary = |frame: &Located<FrameInfo<'_>>| frame.flags.unwrap_or(0) & 0b1_1110 == 0;
    for frame in audit.case.frame_infos.iter().filter(|frame| ordinary(frame)) {
        let (Some(refs), Some(0), Some(number)) = (frame.refcount, frame.mapped, frame.frame) else { continue };
        let count = frame.count.unwrap_or(1);
        if refs > 0 && frame.owner.is_none_or(<[u8]>::is_empty) {
            rows.add(
                None,
                None,
                row(
                    frame,
                    format!(
                        "{} from {:#x}: {}, mapped nowhere",
                        units::count(count, "frame", "frames"),
                        number.saturating_mul(PAGE),
                        references(refs)
                    ),
                ),
            );
        }
    }
}

fn shared_root(audit: &Audit<'_, '_>, rows: &mut Rows) {
    let mut owners: BTreeMap<u64, &Located<Task<'_>>> = BTreeMap::new();
    for task in audit.case.tasks.iter().filter(|task| task.page_table_root.is_some_and(|root| root != 0)) {
        let (Some(root), Some(pid)) = (task.page_table_root, task.pid) else { continue };
        let first = *owners.entry(root).or_insert(task);
        // Kernel threads borrow; a child of vfork shares until it executes, and its parent sleeps meanwhile.
        let vfork = [first, task].iter().any(|task| super::quote::waits_in_vfork(task));
        let dead = [first, task].iter().any(|t| t.state == Some(kwab_format::record::TaskState::ZOMBIE));
        if first.pid != Some(pid) && first.pid != Some(0) && pid != 0 && !vfork && !dead {
            let names = format!("{}[{}] and {}[{pid}]", text(first.comm), first.pid.unwrap_or(0), text(task.comm));
            rows.add(Some(pid), None, row(task, format!("{names} both use the page table at {root:#x}")));
        }
    }
}

fn pte_without_vma(audit: &Audit<'_, '_>, rows: &mut Rows) {
    let end = paging(audit.case).user_end();
    for mapping in audit.spaces.mappings().filter(|m| m.rights.user && m.start < end) {
        if audit.spaces.has_map(mapping.pid)
            && let Some(addr) = audit.spaces.first_outside(&mapping)
        {
            rows.add(
                mapping.pid,
                Some(addr),
                row(mapping.source, format!("{}: no mapping at {addr:#x}", pte_text(&mapping))),
            );
        }
    }
}

fn for_pairs(
    audit: &Audit<'_, '_>,
    rows: &mut Rows,
    wrong: impl Fn(&Mapping<'_, '_>, &Vma<'_>, u32) -> Option<String>,
) {
    for (mapping, vma) in audit.spaces.mapped_pairs() {
        let Some(prot) = vma.prot else { continue };
        if let Some(why) = wrong(&mapping, vma, prot) {
            if rows.kept.len() == MAX_WITNESSES {
                rows.count += 1;
                continue;
            }
            let text = format!("{} in {}{why}", pte_text(&mapping), vma_text(vma));
            rows.add(mapping.pid, Some(mapping.start), row(mapping.source, text));
        }
    }
}

fn extra_write(audit: &Audit<'_, '_>, rows: &mut Rows) {
    for_pairs(audit, rows, |m, _, prot| (m.rights.write && prot & 2 == 0).then(String::new));
}

fn extra_execute(audit: &Audit<'_, '_>, rows: &mut Rows) {
    for_pairs(audit, rows, |m, _, prot| (m.rights.execute && prot & 4 == 0).then(String::new));
}

fn extra_user(audit: &Audit<'_, '_>, rows: &mut Rows) {
    for_pairs(audit, rows, |m, _, prot| (m.rights.user && prot & 7 == 0).then(String::new));
}

fn denied_execute(audit: &Audit<'_, '_>, rows: &mut Rows) {
    for_pairs(audit, rows, |m, _, prot| (!m.rights.execute && prot & 4 != 0).then(|| m.denied_at(1 << 63, true)));
}

fn denied_user(audit: &Audit<'_, '_>, rows: &mut Rows) {
    for_pairs(audit, rows, |m, _, prot| (!m.rights.user && prot & 7 != 0).then(|| m.denied_at(4, false)));
}

fn huge_partial(audit: &Audit<'_, '_>, rows: &mut Rows) {
    for mapping in audit.spaces.mappings().filter(|mapping| mapping.size > PAGE) {
        for vma in audit.spaces.vmas_over(&mapping) {
            let (Some(start), Some(end)) = (vma.start, vma.end) else { continue };
            let first = mapping.start.max(start / mapping.size * mapping.size);
            if first < start
                || first.saturating_add(mapping.size) > end.checked_next_multiple_of(PAGE).unwrap_or(u64::MAX)
            {
                rows.add(
                    mapping.pid,
                    Some(first),
                    row(mapping.source, format!("{} in {}", pte_text(&mapping), vma_text(vma))),
                );
                break;
            }
        }
    }
}

fn huge_uneven(audit: &Audit<'_, '_>, rows: &mut Rows) {
    let mut heads: BTreeMap<u64, (u64, &Located<FrameInfo<'_>>)> = BTreeMap::new();
    for frame in audit.case.frame_infos.iter().filter(|frame| frame.flags.unwrap_or(0) & 0x30 != 0) {
        let (Some(number), Some(refs)) = (frame.frame, frame.refcount) else { continue };
        let (first, other) = *heads.entry(number / 512).or_insert((refs, frame));
        if first != refs {
            let text = format!(
                "frame {:#x} has {}, {:#x} of the same huge page {first}",
                number.saturating_mul(PAGE),
                references(refs),
                other.frame.unwrap_or(0).saturating_mul(PAGE)
            );
            rows.add(None, None, row(frame, text));
        }
    }
}

fn reported(audit: &Audit<'_, '_>, rows: &mut Rows) {
    for event in &audit.case.audits {
        for vma in event.vmas.iter().flat_map(kwab_format::List::iter) {
            if let Some(wrong) = vma.perm_mismatch.filter(|wrong| *wrong > 0) {
                let (start, end) = (vma.start.unwrap_or(0), vma.end.unwrap_or(0));
                rows.add(
                    event.pid,
                    vma.start,
                    row(
                        event,
                        format!("{start:#x}-{end:#x}: {} with other rights", units::count(wrong, "page", "pages")),
                    ),
                );
            }
        }
    }
}

fn write_execute(audit: &Audit<'_, '_>, rows: &mut Rows) {
    for vma in audit.case.vmas.iter().filter(|vma| vma.prot.unwrap_or(0) & 6 == 6) {
        rows.add(vma.pid, vma.start, row(vma, vma_text(vma)));
    }
}
