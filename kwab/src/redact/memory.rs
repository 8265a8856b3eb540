//! Decides what stays of captured bytes of memory: under `kernel` code of the kernel, and of its stacks and objects the
//! words that are pointers or small numbers.
//!
//! The kernel's memory holds users' bytes: copies of paths and arguments on stacks, page cache, buffers. A word that is
//! neither a pointer nor a small number becomes zero, and the label says so, because a stack with holes cannot be
//! walked. Physical memory without a virtual address of the kernel may be a user's, and is removed.

use kwab_format::record::{Memory, MemoryKind};

use super::Policy;
use super::known::Known;

/// The label of memory of which words were removed.
pub(super) const LABEL: &[u8] = b"words removed";
/// Bytes of a word.
const WORD: usize = 8;

/// What stays of a piece of memory.
#[derive(Debug)]
pub(super) struct KeptMemory {
    /// As many bytes as there were.
    pub(super) bytes: Vec<u8>,
    /// How many of them were removed, and are zero now.
    pub(super) removed: usize,
}

/// What stays of a record's bytes; `None` when they are removed.
pub(super) fn kept(record: &Memory<'_>, policy: Policy, known: &Known) -> Option<KeptMemory> {
    let bytes = record.bytes?;
    let start = record.vaddr.filter(|addr| policy == Policy::Kernel && known.is_kernel(*addr))?;
    match record.kind? {
        MemoryKind::CODE => {
            let last = start.checked_add((bytes.len() as u64).checked_sub(1)?)?;
            let code = known.is_code(start) && known.is_code(last);
            code.then(|| KeptMemory { bytes: bytes.to_vec(), removed: 0 })
        }
        MemoryKind::KERNEL_STACK | MemoryKind::OBJECT | MemoryKind::PAGE_TABLE => {
            let entries = record.kind == Some(MemoryKind::PAGE_TABLE);
            let stays = |word: u64| known.is_word(word) || (entries && word & 1 == 1 && known.is_entry(word));
            Some(filtered(bytes, start, stays))
        }
        _ => None,
    }
}

/// Keeps the words that stay; what does not fill a word of memory is removed.
fn filtered(bytes: &[u8], start: u64, stays: impl Fn(u64) -> bool) -> KeptMemory {
    let mut out = bytes.to_vec();
    let mut removed = 0;
    let head = (start.wrapping_neg() % WORD as u64) as usize;
    let head = head.min(out.len());
    let (before, rest) = out.split_at_mut(head);
    let mut remove = |part: &mut [u8]| {
        if part.iter().any(|byte| *byte != 0) {
            removed += part.len();
            part.fill(0);
        }
    };
    remove(before);
    let mut words = rest.chunks_exact_mut(WORD);
    for part in words.by_ref() {
        let word = part.first_chunk::<WORD>().map_or(0, |word| u64::from_le_bytes(*word));
        if !stays(word) {
            remove(part);
        }
    }
    remove(words.into_remainder());
    KeptMemory { bytes: out, removed }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_text_between_pointers_are_removed_at_any_alignment() {
        let mut stack = Vec::new();
        for word in [0xffff_ffff_8010_1234_u64, 0x10, u64::from_le_bytes(*b"/srv/joe"), 0xffff_c000_0004_f810] {
            stack.extend_from_slice(&word.to_le_bytes());
        }
        for shift in 0..8_u64 {
            let bytes = [vec![b'x'; shift as usize], stack.clone(), b"tail".to_vec()].concat();
            let record = Memory {
                kind: Some(MemoryKind::KERNEL_STACK),
                vaddr: Some(0xffff_c000_0004_f000 - shift),
                bytes: Some(&bytes),
                ..Memory::default()
            };
            let kept = kept(&record, Policy::Kernel, &Known::with_regions(&[0xffff_ffff, 0xffff_c000])).expect("kept");
            let text = String::from_utf8_lossy(&kept.bytes);
            assert!(!text.contains("home") && !text.contains('x') && !text.contains("tail"), "{shift}: {text:?}");
            assert_eq!(kept.bytes.len(), bytes.len());
            assert_eq!(kept.bytes[shift as usize..][..8], stack[..8]);
            assert_eq!(kept.removed, 8 + shift as usize + 4);
        }
    }

    #[test]
    fn only_memory_of_the_kernel_stays_and_only_under_its_policy() {
        let at = |kind, vaddr| Memory { kind: Some(kind), vaddr, bytes: Some(&[0; 16]), ..Memory::default() };
        let known = Known::default();
        assert!(kept(&at(MemoryKind::KERNEL_STACK, Some(0xffff_c000_0000_0000)), Policy::Structure, &known).is_none());
        assert!(kept(&at(MemoryKind::USER_STACK, Some(0xffff_c000_0000_0000)), Policy::Kernel, &known).is_none());
        assert!(kept(&at(MemoryKind::OBJECT, Some(0x7fff_0000_0000)), Policy::Kernel, &known).is_none());
        assert!(kept(&at(MemoryKind::OBJECT, None), Policy::Kernel, &known).is_none());
        assert!(kept(&at(MemoryKind::CODE, Some(0xffff_8000_0000_0000)), Policy::Kernel, &known).is_none());
    }
}
