//! Reads the kernel's log: a ring of bytes.

use super::super::space::Space;
use super::table::Table;

/// Bytes of a ring.
const MOST: u64 = 1 << 20;

/// What the ring holds, oldest first, and how many bytes were logged before.
pub(super) fn read(space: &Space<'_>, table: &Table) -> Option<(u64, Vec<u8>)> {
    let at = |name: &str| table.get("log")?.checked_add(table.get(name)?);
    let size = table.get("log.size").filter(|size| (1..=MOST).contains(size))?;
    let (ring, written) = (at("log.bytes")?, space.word(at("log.written")?)?);
    let kept = written.min(size);
    let mut bytes = space.bytes(ring, kept as usize)?;
    if written > size {
        bytes.rotate_left((written % size) as usize);
    }
    Some((written - kept, bytes))
}
