//! Chooses what a faulting page becomes; `mm::fault` in the kernel applies the choice.
//!
//! Three things are known when a page faults: what range (VMA) it lies in, what the page table holds, and what the
//! program tried. Nothing else decides. A page is never mapped writable unless it belongs to this address space alone
//! (private) or to the file itself (shared): that single rule keeps cached pages clean.

use crate::vma::{Prot, VmaFlags};

/// What the program tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// A load from the page.
    Read,
    /// A store to the page.
    Write,
    /// An instruction fetch.
    Exec,
}

/// What the page table holds for the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pte {
    /// No entry, or one that is not present.
    Absent,
    /// An entry that maps a frame.
    Present {
        /// Stores are allowed.
        writable: bool,
        /// Fetches are allowed.
        executable: bool,
        /// Any user access is allowed.
        readable: bool,
        /// No other owner: the frame's count is one.
        sole: bool,
    },
}

/// Where a range's pages come from, as far as a fault cares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// Anonymous memory: pages begin as zeros.
    Anonymous,
    /// A file: pages come from its page cache.
    File,
}

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// SIGSEGV, `SEGV_MAPERR`: nothing is mapped there.
    NotMapped,
    /// SIGSEGV, `SEGV_ACCERR`: mapped, but not for that.
    Forbidden,
    /// Another CPU or an older TLB entry was in the way: try again.
    Retry,
    /// A private zero page, writable when the range is.
    Zero,
    /// The file's own frame. Writable only for a shared range whose page is being written.
    FileFrame {
        /// Map it for stores.
        writable: bool,
    },
    /// A private copy of the file's page.
    FileCopy,
    /// A private copy of the frame that is mapped now.
    CopyMapped,
    /// The mapped frame is ours alone: allow stores again.
    Reclaim,
    /// Shared file page, mapped read-only so far: allow stores in place.
    MakeWritable,
    /// Present, but with an older protection: set what the range says, leaving stores out when `writable` is not set.
    Reprotect {
        /// The new protection includes stores.
        writable: bool,
    },
}

/// The range's part in the decision.
#[derive(Clone, Copy, Debug)]
pub struct Range {
    /// What the program may do in the range.
    pub prot: Prot,
    /// Sharing and growth flags of the range.
    pub flags: VmaFlags,
    /// Where its absent pages come from.
    pub source: Source,
}

/// What the fault handler must do for an `access` to a page of `range` whose entry is `pte`; `range` is `None`
/// outside all mappings.
pub fn decide(range: Option<Range>, pte: Pte, access: Access) -> Action {
    let Some(range) = range else { return Action::NotMapped };
    let needed = match access {
        Access::Read => Prot::READ,
        Access::Write => Prot::WRITE,
        Access::Exec => Prot::EXEC,
    };
    // x86 and Linux agree that a writable or executable page is readable.
    let granted = if range.prot.0 & 6 != 0 { range.prot.with(Prot::READ) } else { range.prot };
    if !granted.has(needed) {
        return Action::Forbidden;
    }
    let shared = range.flags.has(VmaFlags::SHARED);
    match pte {
        Pte::Absent => match (range.source, shared, access) {
            (Source::Anonymous, _, _) => Action::Zero,
            (Source::File, true, _) => Action::FileFrame { writable: access == Access::Write },
            (Source::File, false, Access::Write) => Action::FileCopy,
            (Source::File, false, _) => Action::FileFrame { writable: false },
        },
        Pte::Present { writable, executable, readable, sole } => {
            if access == Access::Write && !writable {
                return match (shared, sole) {
                    (true, _) => Action::MakeWritable,
                    (false, true) => Action::Reclaim,
                    (false, false) => Action::CopyMapped,
                };
            }
            if !readable || (access == Access::Exec && !executable) {
                return Action::Reprotect { writable: writable && range.prot.has(Prot::WRITE) };
            }
            Action::Retry
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(prot: u8, flags: VmaFlags, source: Source) -> Option<Range> {
        Some(Range { prot: Prot(prot), flags, source })
    }

    const PRIVATE: VmaFlags = VmaFlags(0);

    #[test]
    fn a_cached_file_page_is_never_mapped_writable_into_a_private_range() {
        for access in [Access::Read, Access::Write, Access::Exec] {
            let action = decide(range(7, PRIVATE, Source::File), Pte::Absent, access);
            assert_ne!(action, Action::FileFrame { writable: true });
            let mapped = Pte::Present { writable: false, executable: true, readable: true, sole: false };
            let action = decide(range(7, PRIVATE, Source::File), mapped, access);
            assert!(action != Action::MakeWritable && action != Action::Reclaim, "{access:?} gave {action:?}");
        }
    }

    #[test]
    fn the_last_owner_of_a_copy_on_write_page_keeps_it() {
        let pte = |sole| Pte::Present { writable: false, executable: false, readable: true, sole };
        assert_eq!(decide(range(3, PRIVATE, Source::Anonymous), pte(true), Access::Write), Action::Reclaim);
        assert_eq!(decide(range(3, PRIVATE, Source::Anonymous), pte(false), Access::Write), Action::CopyMapped);
    }

    #[test]
    fn what_the_range_forbids_is_forbidden_whatever_the_page_table_says() {
        let open = Pte::Present { writable: true, executable: true, readable: true, sole: true };
        assert_eq!(decide(range(1, PRIVATE, Source::Anonymous), open, Access::Write), Action::Forbidden);
        assert_eq!(decide(range(3, PRIVATE, Source::Anonymous), open, Access::Exec), Action::Forbidden);
        assert_eq!(decide(range(0, PRIVATE, Source::Anonymous), Pte::Absent, Access::Read), Action::Forbidden);
        assert_eq!(decide(None, open, Access::Read), Action::NotMapped);
        assert_eq!(decide(range(2, PRIVATE, Source::Anonymous), Pte::Absent, Access::Read), Action::Zero);
    }

    #[test]
    fn a_shared_file_page_becomes_writable_in_place() {
        let pte = Pte::Present { writable: false, executable: false, readable: true, sole: false };
        assert_eq!(decide(range(3, VmaFlags::SHARED, Source::File), pte, Access::Write), Action::MakeWritable);
        let absent = decide(range(3, VmaFlags::SHARED, Source::File), Pte::Absent, Access::Read);
        assert_eq!(absent, Action::FileFrame { writable: false });
    }
}
