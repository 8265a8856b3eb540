//! Whether a page-table leaf agrees with the mapping it lies in: rules with the ids that `kwab audit-vm` uses.
//!
//! Rights may be fewer than the mapping's where the next fault gives them (a page not written yet, a page shared until
//! it is written): only the reverse, and what no fault would ever put right, is a violation.

use crate::vma::{Prot, VmaFlags};

/// A rule that a leaf violates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rule {
    /// A page is mapped where no mapping is.
    Stray,
    /// A page of a mapping without any right is accessible.
    Open,
    /// A cached file page is writable through a private mapping.
    CacheWritable,
    /// A page is writable and its mapping is not.
    Writable,
    /// A page is executable and its mapping is not.
    Executable,
    /// A mapping's page is closed to the program.
    Closed,
    /// A mapping is executable and its page is not.
    NotExecutable,
}

/// All rules, in the order of [`Rule`].
pub const RULES: [Rule; 7] =
    [Rule::Stray, Rule::Open, Rule::CacheWritable, Rule::Writable, Rule::Executable, Rule::Closed, Rule::NotExecutable];

impl Rule {
    /// The rule's stable identifier, as audit events and triage print it.
    #[must_use]
    pub const fn id(self) -> &'static str {
        match self {
            Self::Stray => "VM-PTE",
            Self::Open => "VM-RIGHTS-U",
            Self::CacheWritable => "VM-CACHE-W",
            Self::Writable => "VM-RIGHTS-W",
            Self::Executable => "VM-RIGHTS-X",
            Self::Closed => "VM-DENY-U",
            Self::NotExecutable => "VM-DENY-X",
        }
    }
}

/// A leaf as far as the rules care.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leaf {
    /// The program may touch it at all.
    pub read: bool,
    /// It may write.
    pub write: bool,
    /// It may execute.
    pub exec: bool,
    /// The frame is a file's own.
    pub cached: bool,
}

/// The worst rule a leaf violates in the mapping with these rights, or in none.
#[must_use]
pub fn check(mapping: Option<(Prot, VmaFlags)>, leaf: Leaf) -> Option<Rule> {
    let Some((prot, flags)) = mapping else { return Some(Rule::Stray) };
    let accessible = leaf.read || leaf.write || leaf.exec;
    let violated = |rule: &Rule| match rule {
        Rule::Stray => false,
        Rule::Open => prot == Prot::NONE && accessible,
        Rule::CacheWritable => leaf.write && leaf.cached && !flags.has(VmaFlags::SHARED),
        Rule::Writable => leaf.write && !prot.has(Prot::WRITE),
        Rule::Executable => leaf.exec && !prot.has(Prot::EXEC),
        Rule::Closed => prot != Prot::NONE && !accessible,
        Rule::NotExecutable => prot.has(Prot::EXEC) && accessible && !leaf.exec,
    };
    RULES.into_iter().find(violated)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CODE: Leaf = Leaf { read: true, write: false, exec: true, cached: true };
    const DATA: Leaf = Leaf { read: true, write: true, exec: false, cached: false };

    fn rights(bits: &str) -> Prot {
        let mut prot = Prot::NONE;
        for (letter, right) in [('r', Prot::READ), ('w', Prot::WRITE), ('x', Prot::EXEC)] {
            if bits.contains(letter) {
                prot = prot.with(right);
            }
        }
        prot
    }

    fn in_private(bits: &str, leaf: Leaf) -> Option<&'static str> {
        check(Some((rights(bits), VmaFlags::default())), leaf).map(Rule::id)
    }

    #[test]
    fn a_sound_program_violates_nothing() {
        assert_eq!(in_private("rx", CODE), None);
        assert_eq!(in_private("rw", DATA), None);
        // Not written yet: the next write makes it a copy.
        assert_eq!(in_private("rw", Leaf { write: false, cached: true, ..DATA }), None);
        let shared = Some((rights("rw"), VmaFlags::SHARED));
        assert_eq!(check(shared, Leaf { cached: true, ..DATA }), None);
    }

    #[test]
    fn a_mapping_that_ignored_its_segments_rights_is_named() {
        assert_eq!(in_private("r", CODE), Some("VM-RIGHTS-X"));
        assert_eq!(in_private("rx", Leaf { write: true, cached: false, ..CODE }), Some("VM-RIGHTS-W"));
    }

    #[test]
    fn a_writable_mapping_that_poisons_the_page_cache_is_named() {
        assert_eq!(in_private("rw", Leaf { cached: true, ..DATA }), Some("VM-CACHE-W"));
    }

    #[test]
    fn rights_that_no_fault_would_restore_are_missed() {
        assert_eq!(in_private("rx", Leaf { exec: false, ..CODE }), Some("VM-DENY-X"));
        let held = Leaf { read: false, write: false, exec: false, cached: false };
        assert_eq!(in_private("rw", held), Some("VM-DENY-U"));
        assert_eq!(in_private("", held), None, "held without rights is what PROT_NONE means");
        assert_eq!(in_private("", DATA), Some("VM-RIGHTS-U"));
    }

    #[test]
    fn a_page_without_a_mapping_is_a_stray() {
        assert_eq!(check(None, CODE).map(Rule::id), Some("VM-PTE"));
    }
}
