//! Compares pages with the files behind them, and says what wrong content *is*.
//!
//! Pages come from three places: checks that the kernel made (`PageCheck`, `page_verify_fail`), and captured pages of
//! file mappings that a program cannot write, which are compared here when the files are at hand ([`Backing`]).

use std::collections::HashMap;

use kwab_format::SectionKind;
use kwab_format::record::{CheckResult, Memory, PageCheck};
use schemars::JsonSchema;
use serde::Serialize;

pub use super::backing::{Backing, BackingError};
pub use super::origin::Content;
use super::origin::Search;
use super::quote::text;
use super::space::PAGE;
use crate::model::{Case, Located, RecordRef};
use crate::symbols::BuildId;

/// A page that is not what its file says.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct WrongPage {
    /// The rule, by what the content is.
    pub rule: &'static str,
    /// Process whose page it is.
    pub pid: Option<u32>,
    /// Address of the page.
    #[serde(serialize_with = "crate::text::word")]
    #[schemars(with = "String")]
    pub vaddr: u64,
    /// Path of the file behind the page.
    pub path: String,
    /// Offset of the page in it.
    #[serde(serialize_with = "crate::text::some_word")]
    #[schemars(with = "Option<String>")]
    pub file_offset: Option<u64>,
    /// The first byte that differs, from the start of the page.
    #[serde(serialize_with = "crate::text::some_word")]
    #[schemars(with = "Option<String>")]
    pub first_diff: Option<u64>,
    /// What should be there, from the first difference on, in hexadecimal.
    pub expected: String,
    /// What is there.
    pub actual: String,
    /// What the wrong content is.
    pub content: Content,
    /// The record it comes from.
    pub at: RecordRef,
    /// What is lost that the finding rests on.
    pub weakened: Vec<String>,
}

/// How many pages were compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Verified {
    /// By the kernel.
    pub by_kernel: u64,
    /// Here, from captured bytes.
    pub here: u64,
    /// That could not be compared for want of the file or of bytes.
    pub not_comparable: u64,
}

/// Bytes of a difference that are shown.
const SHOWN: usize = 16;

/// Every page that differs, in order of address.
#[must_use]
pub fn verify(case: &Case<'_>, backing: &Backing) -> Vec<WrongPage> {
    let search = Search::new(backing);
    let mut wrong = kernel_checks(case, &search);
    wrong.extend(events(case));
    wrong.extend(captured(case, &search));
    wrong.sort_by_key(|page| (page.pid, page.vaddr, page.at));
    wrong.dedup_by_key(|page| (page.pid, page.vaddr, page.file_offset));
    let weakened = case.weakness(&[SectionKind::PAGE_CHECKS]);
    for page in &mut wrong {
        page.weakened.extend(weakened.iter().cloned());
    }
    wrong
}

/// How much there was to compare.
#[must_use]
pub fn verified(case: &Case<'_>, backing: &Backing) -> Verified {
    // A console may print any number.
    let reported = case.verify_oks.iter().filter_map(|event| event.verified).fold(0, u64::saturating_add);
    let compared = |result: Option<CheckResult>| result != Some(CheckResult::UNREADABLE);
    let checked = case.checks.iter().filter(|check| compared(check.result)).count() as u64;
    let failed = case.checks.len() as u64 - checked;
    let pages: Vec<_> = file_pages(case).collect();
    let foreign = foreign(case, backing);
    let fits = |path: &str| backing.file(path).is_some() && foreign.iter().all(|other| other.path != path);
    let here = pages.iter().filter(|page| fits(&page.path)).count() as u64;
    let by_kernel = reported.saturating_add(checked);
    Verified { by_kernel, here, not_comparable: pages.len() as u64 - here + failed }
}

fn kernel_checks(case: &Case<'_>, search: &Search<'_>) -> Vec<WrongPage> {
    let mut newest: HashMap<(String, u64), u64> = HashMap::new();
    for check in &case.checks {
        if let (Some(path), Some(offset), Some(generation)) = (check.path, check.file_offset, check.generation) {
            let known = newest.entry((text(Some(path)), offset)).or_insert(generation);
            *known = generation.max(*known);
        }
    }
    let differing = case.checks.iter().filter(|check| {
        let sums = check.expected_crc.is_some() && check.actual_crc.is_some() && check.expected_crc != check.actual_crc;
        check.result == Some(CheckResult::DIFFERENT) || (check.result.is_none() && sums)
    });
    let page = |check: &Located<PageCheck<'_>>| {
        let path = text(check.path);
        let (offset, first) = (check.file_offset, check.first_diff.unwrap_or(0));
        let actual = check.actual.unwrap_or_default();
        let latest = newest.get(&(path.clone(), offset.unwrap_or(0))).copied();
        let stale = check.generation.zip(latest).filter(|(generation, latest)| generation < latest);
        let (content, weakened) = match stale {
            Some((generation, newest)) => (Content::Stale { generation, newest }, Vec::new()),
            None if is_boundary(case, check) => (Content::Boundary, Vec::new()),
            None => search.identify(actual, &path, offset.and_then(|offset| offset.checked_add(first))),
        };
        WrongPage {
            rule: content.rule(),
            pid: check.pid,
            vaddr: check.vaddr.unwrap_or(0),
            path,
            file_offset: offset,
            first_diff: check.first_diff,
            expected: hex(check.expected.unwrap_or_default()),
            actual: hex(actual),
            content,
            at: check.at,
            weakened,
        }
    };
    differing.map(page).collect()
}

/// Whether a page that should be zeros from some byte on is the last one of a file's mapping, and anonymous memory goes
/// on behind it: a segment ends there, and what is not in the file is the program's own.
fn is_boundary(case: &Case<'_>, check: &PageCheck<'_>) -> bool {
    let zeros = |bytes: &[u8]| bytes.iter().all(|byte| *byte == 0);
    let (Some(expected), Some(actual), Some(page)) = (check.expected, check.actual, check.vaddr) else { return false };
    let Some(end) = page.checked_add(PAGE) else { return false };
    let last = case.vma_owned(check.pid, page).is_some_and(|vma| vma.end == Some(end) && vma.path.is_some());
    let goes_on = || case.vma_owned(check.pid, end).is_some_and(|vma| vma.path.is_none_or(<[u8]>::is_empty));
    !expected.is_empty() && zeros(expected) && !zeros(actual) && last && goes_on()
}

fn events(case: &Case<'_>) -> Vec<WrongPage> {
    let path_at = |pid: Option<u32>, addr: Option<u64>| case.vma_owned(pid, addr?).map(|vma| text(vma.path));
    let content = |actual: Option<u64>| match actual {
        Some(0) => Content::Zeros,
        _ => Content::Unknown,
    };
    let bytes = |value: Option<u64>| value.map(|value| format!("{value:02x}")).unwrap_or_default();
    let small = case.verify_fails.iter().map(|event| WrongPage {
        rule: content(event.actual).rule(),
        pid: event.pid,
        vaddr: event.vaddr.unwrap_or(0),
        path: path_at(event.pid, event.vma_start).unwrap_or_default(),
        file_offset: event.file_offset,
        first_diff: event.first_diff,
        expected: bytes(event.expected),
        actual: bytes(event.actual),
        content: content(event.actual),
        at: event.at,
        weakened: Vec::new(),
    });
    let huge = case.huge_fails.iter().map(|event| WrongPage {
        rule: content(event.actual).rule(),
        pid: event.pid,
        vaddr: event.huge_base.unwrap_or(0).wrapping_add(event.sub_page.unwrap_or(0).wrapping_mul(PAGE)),
        path: path_at(event.pid, event.vma_start).unwrap_or_else(|| text(event.vma_type)),
        file_offset: None,
        first_diff: event.first_diff,
        expected: bytes(event.expected),
        actual: bytes(event.actual),
        content: content(event.actual),
        at: event.at,
        weakened: Vec::new(),
    });
    small.chain(huge).collect()
}

/// A captured piece of a file mapping that a program cannot have written.
struct FilePage<'c, 'a> {
    memory: &'c Located<Memory<'a>>,
    bytes: &'a [u8],
    vaddr: u64,
    path: String,
    offset: u64,
}

fn file_pages<'c, 'a>(case: &'c Case<'a>) -> impl Iterator<Item = FilePage<'c, 'a>> {
    case.memory.iter().filter_map(|memory| {
        let (vaddr, bytes) = (memory.vaddr?, memory.bytes?);
        let vma = case.file_holding(memory.pid, vaddr)?;
        let skip = vaddr - vma.start?;
        let room = usize::try_from(vma.end? - vaddr).unwrap_or(usize::MAX);
        let bytes = &bytes[..bytes.len().min(room)];
        Some(FilePage {
            memory,
            bytes,
            vaddr,
            path: text(vma.path),
            offset: vma.file_offset.unwrap_or(0).checked_add(skip)?,
        })
    })
}

/// A file at hand that was built from something else than the image in the dump: its pages say nothing about those of
/// the dump.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Foreign {
    /// The path of both.
    pub path: String,
    /// The build-id in the dump.
    pub wanted: BuildId,
    /// The build-id of the file at hand.
    pub found: BuildId,
}

/// The files at hand that belong to another build than the dump.
#[must_use]
pub fn foreign(case: &Case<'_>, backing: &Backing) -> Vec<Foreign> {
    let mut all: Vec<Foreign> = Vec::new();
    for image in &case.images {
        let (Some(path), Some(wanted)) = (image.path, image.build_id.filter(|id| !id.is_empty())) else { continue };
        let path = text(Some(path));
        if all.iter().any(|known| known.path == path) {
            continue;
        }
        if let Some(found) = backing.build_id(&path).filter(|found| found != wanted) {
            all.push(Foreign { path, wanted: BuildId(wanted.to_vec()), found: BuildId(found) });
        }
    }
    all
}

fn captured(case: &Case<'_>, search: &Search<'_>) -> Vec<WrongPage> {
    let mut wrong = Vec::new();
    let foreign = foreign(case, search.files());
    for page in file_pages(case).filter(|page| foreign.iter().all(|other| other.path != page.path)) {
        let Some(file) = search.files().file(&page.path) else { continue };
        let start = usize::try_from(page.offset).unwrap_or(usize::MAX).min(file.len());
        // What a mapping has beyond the end of its file is zeros, unless the segment is larger in memory; then unknown.
        let expected = &file[start..file.len().min(start.saturating_add(page.bytes.len()))];
        let Some(diff) = expected.iter().zip(page.bytes).position(|(want, have)| want != have) else { continue };
        let end = page.vaddr.saturating_add(diff as u64);
        let (at_page, in_page) = (end / PAGE * PAGE, end % PAGE);
        let end = (diff + (PAGE - in_page) as usize).min(page.bytes.len());
        let offset = page.offset.checked_add(diff as u64);
        let (content, weakened) = search.identify(&page.bytes[diff..end], &page.path, offset);
        wrong.push(WrongPage {
            rule: content.rule(),
            pid: page.memory.pid,
            vaddr: at_page,
            path: page.path,
            file_offset: Some((page.offset + diff as u64).saturating_sub(in_page)),
            first_diff: Some(in_page),
            expected: hex(&expected[diff..]),
            actual: hex(&page.bytes[diff..]),
            content,
            at: page.memory.at,
            weakened,
        });
    }
    wrong
}

fn hex(bytes: &[u8]) -> String {
    let shown = bytes.iter().take(SHOWN).map(|byte| format!("{byte:02x}"));
    shown.collect::<Vec<_>>().join(" ")
}
