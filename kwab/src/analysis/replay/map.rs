//! The address space of a process by its calls, in the kernel's own set of mappings; at the end the dump's map.

use kernel_logic::vma::{Backing, PAGE, Prot, USER_END, Vma, VmaFlags, VmaSet};
use kwab_format::record::Vma as Record;
use linux_abi::Errno;

use super::{Answered, MOST, WrongAnswer};
use crate::analysis::quote::text;
use crate::model::Located;

/// What a call left behind in a range.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Left {
    /// Number of the call.
    by: usize,
    /// Whether the range is mapped since; else it is free.
    mapped: bool,
}

impl Backing for Left {
    fn advanced(&self, _: u64) -> Self {
        self.clone()
    }

    fn continues_as(&self, _: u64, next: &Self) -> bool {
        self == next
    }
}

/// What is known of the address space.
struct KnownRanges {
    ranges: VmaSet<Left>,
    /// The end of the heap.
    end: Option<u64>,
}

/// The answers that contradict earlier ones, then those that contradict the map of the dump.
pub(super) fn wrong_answers(vmas: &[&Located<Record<'_>>], rows: &[Answered<'_>]) -> Vec<WrongAnswer> {
    let mut known = KnownRanges { ranges: VmaSet::new(), end: None };
    let mut found = Vec::new();
    for (number, row) in rows.iter().enumerate() {
        if found.len() >= MOST {
            return found;
        }
        if let Some((why, because)) = known.contradicts(row) {
            let since = rows.get(because).map(Answered::said).unwrap_or_default();
            found.push(row.wrong(format!("{why} {since}")));
        }
        known.learn(row, number);
    }
    found.extend(known.differs(vmas, rows));
    found
}

/// A range of whole pages in the program's half.
fn pages(start: u64, bytes: u64) -> Option<(u64, u64)> {
    let end = start.checked_add(bytes)?.checked_next_multiple_of(PAGE)?;
    (start.is_multiple_of(PAGE) && bytes > 0 && end <= USER_END).then_some((start, end))
}

impl KnownRanges {
    fn put(&mut self, range: Option<(u64, u64)>, prot: Option<Prot>, left: Left) {
        let Some((start, end)) = range else { return };
        self.forget(range);
        let prot = prot.unwrap_or(Prot::NONE);
        // Only as many ranges as calls are put in, which is below the set's limit.
        let _ = self.ranges.insert(Vma { start, end, prot, flags: VmaFlags::default(), backing: left });
    }

    fn forget(&mut self, range: Option<(u64, u64)>) {
        if let Some((start, end)) = range {
            let _ = self.ranges.remove(start, end, |_| ());
        }
    }

    /// Forgets what was free: the kernel may have put something there that no call tells the size of.
    fn forget_free(&mut self) {
        let free = self.ranges.iter().filter(|vma| !vma.backing.mapped).map(|vma| (vma.start, vma.end));
        free.collect::<Vec<_>>().into_iter().for_each(|range| self.forget(Some(range)));
    }

    /// The call that mapped a part of a range.
    fn mapped(&self, (start, end): (u64, u64)) -> Option<usize> {
        let mut inside = self.ranges.overlapping(start, end);
        inside.find(|vma| vma.backing.mapped).map(|vma| vma.backing.by)
    }

    /// Why an answer cannot be right, and the number of the call that says so.
    fn contradicts(&self, row: &Answered<'_>) -> Option<(String, usize)> {
        let (args, answer) = (&row.args, row.result.cast_unsigned());
        match (row.call.name, row.errno()) {
            ("mmap", None) if args[3] & FIXED == 0 => {
                let by = self.mapped(pages(answer, args[1])?)?;
                Some(("the kernel chose a range that is mapped already, by".to_owned(), by))
            }
            ("mremap", None) if answer != args[0] && args[3] & 2 == 0 => {
                let by = self.mapped(pages(answer, args[2])?)?;
                Some(("the kernel chose a range that is mapped already, by".to_owned(), by))
            }
            ("mprotect", Some(Errno::ENOMEM)) => {
                let (start, end) = pages(args[0], args[1])?;
                let mut inside = self.ranges.overlapping(start, end);
                let by = self.mapped((start, end))?;
                (self.ranges.is_covered(start, end) && inside.all(|vma| vma.backing.mapped))
                    .then(|| ("the whole range is mapped, by".to_owned(), by))
            }
            _ => None,
        }
    }

    fn learn(&mut self, row: &Answered<'_>, by: usize) {
        let (args, answer) = (&row.args, row.result.cast_unsigned());
        let (mapped, free) = (Left { by, mapped: true }, Left { by, mapped: false });
        let done = row.errno().is_none();
        match row.call.name {
            "mmap" if done && args[3] & (HUGE | GROWS_DOWN) == 0 => {
                self.put(pages(answer, args[1]), Some(Prot(args[2] as u8 & 7)), mapped);
            }
            "mmap" if done => self.forget(args[1].checked_next_multiple_of(LARGEST).and_then(|all| pages(answer, all))),
            "munmap" if done => self.put(pages(args[0], args[1]), None, free),
            "mprotect" | "pkey_mprotect" if done => {
                self.put(pages(args[0], args[1]), Some(Prot(args[2] as u8 & 7)), mapped);
            }
            "mprotect" | "pkey_mprotect" | "munmap" => self.forget(pages(args[0], args[1])),
            "mremap" if done => {
                self.forget(pages(args[0], args[1]));
                self.forget(pages(answer, args[2]));
            }
            "brk" if done => self.heap(answer, by),
            "io_setup" | "remap_file_pages" => self.forget_free(),
            "execve" | "execveat" | "shmat" | "shmdt" => *self = Self { ranges: VmaSet::new(), end: None },
            _ => {}
        }
    }

    /// brk(2) answers the end of the heap, moved or not.
    fn heap(&mut self, end: u64, by: usize) {
        let Some(old) = self.end.replace(end) else { return };
        let whole = |addr: u64| addr.checked_next_multiple_of(PAGE).unwrap_or(addr);
        let (old, new) = (whole(old), whole(end));
        let rights = Prot::READ.with(Prot::WRITE);
        if new > old {
            self.put(pages(old, new - old), Some(rights), Left { by, mapped: true });
        } else if new < old {
            self.put(pages(new, old - new), None, Left { by, mapped: false });
        }
    }

    /// The first answer that the map of the dump contradicts.
    fn differs(&self, vmas: &[&Located<Record<'_>>], rows: &[Answered<'_>]) -> Option<WrongAnswer> {
        // A map that did not fit is cut at its end.
        let last = vmas.iter().filter_map(|vma| vma.end).max()?;
        let mut pieces = self.ranges.iter().filter(|piece| piece.end <= last);
        pieces.find_map(|piece| {
            let why = differs_in(piece, vmas)?;
            let row = rows.get(piece.backing.by)?;
            Some(row.wrong(format!("{why}, and no later call changed it")))
        })
    }
}

/// How mappings by rising address differ from what is known of a range.
fn differs_in(piece: &Vma<Left>, vmas: &[&Located<Record<'_>>]) -> Option<String> {
    let first = vmas.partition_point(|vma| vma.end.unwrap_or(0) <= piece.start);
    let mut at = piece.start;
    for vma in vmas.get(first..).unwrap_or_default() {
        let (start, end) = (vma.start.unwrap_or(0), vma.end.unwrap_or(0));
        if start >= piece.end {
            break;
        }
        let grows = vma.flags.unwrap_or(0) & 2 != 0 || text(vma.name) == "[stack]";
        if !piece.backing.mapped {
            return (!grows).then(|| format!("{:#x} is mapped in the dump", start.max(piece.start)));
        }
        if start > at {
            break;
        }
        if vma.prot.is_some_and(|prot| prot & 7 != u32::from(piece.prot.0)) {
            return Some(format!("{at:#x} has other rights in the dump"));
        }
        at = at.max(end);
    }
    (piece.backing.mapped && at < piece.end).then(|| format!("{at:#x} is not mapped in the dump"))
}

/// `MAP_FIXED`, and `MAP_FIXED_NOREPLACE`, which fails over a mapping.
const FIXED: u64 = 0x10;
/// `MAP_HUGETLB`, whose length is rounded to huge pages.
const HUGE: u64 = 0x4_0000;
/// `MAP_GROWSDOWN`.
const GROWS_DOWN: u64 = 0x100;
/// The largest page, to which such a length may be rounded.
const LARGEST: u64 = 1 << 30;
