//! Reads which spin locks are held and by which processor, and what each processor spins for
//! (`kernel/src/crash/parts/locks.rs`).

use super::super::registers::Processor;
use super::super::space::Space;
use super::table::Table;

/// Bytes of the path of a source file.
const MOST_PATH: u64 = 256;

/// A spin lock that a processor holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldLock {
    /// Its address, unless it has a name.
    pub addr: Option<u64>,
    /// The name of one of the whole kernel.
    pub name: Option<String>,
    /// Number of the processor that holds it.
    pub cpu: u32,
    /// Where it was taken: `file:line:column`.
    pub taken: Option<String>,
}

/// A spin lock that a processor waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AwaitedLock {
    /// Address of the lock, as in [`HeldLock`].
    pub addr: u64,
    /// Number of the processor that waits.
    pub cpu: u32,
    /// Where it waits: `file:line:column`.
    pub place: Option<String>,
}

/// The locks of the whole kernel that are held, then those that processors spin for, and who does.
pub(super) fn read(space: &Space<'_>, table: &Table, processors: &[Processor]) -> (Vec<HeldLock>, Vec<AwaitedLock>) {
    let (mut held, mut awaited) = (Vec::new(), Vec::new());
    for (name, lock) in table.beginning("held.") {
        let holder = table.get("lock.holder").and_then(|offset| space.half(lock.checked_add(offset)?));
        let taken = table.get("lock.taken").and_then(|offset| lock.checked_add(offset));
        if let Some(cpu) = holder.and_then(|holder| holder.checked_sub(1)) {
            let taken = taken.and_then(|at| place(space, table, at));
            held.push(HeldLock { addr: None, name: Some(name.to_owned()), cpu, taken });
        }
    }
    for cpu in processors.iter().map(|processor| processor.number) {
        let Some((lock, taken, from)) = spins(space, table, cpu) else { continue };
        // The pointer is to the lock's word with the number of its holder.
        if let Some(holder) = space.half(lock).and_then(|holder| holder.checked_sub(1)) {
            held.push(HeldLock { addr: Some(lock), name: None, cpu: holder, taken: place(space, table, taken) });
        }
        awaited.push(AwaitedLock { addr: lock, cpu, place: place(space, table, from) });
    }
    (held, awaited)
}

/// What a processor spins for: the lock, and the addresses of the pointers to where it was taken and is awaited.
fn spins(space: &Space<'_>, table: &Table, cpu: u32) -> Option<(u64, u64, u64)> {
    let count = table.get("cpus.count")?;
    let at = table.get("cpus")?.checked_add(8 * u64::from(cpu)).filter(|_| u64::from(cpu) < count)?;
    let block = space.word(at).filter(|block| *block != 0)?;
    let lock = space.word(block.checked_add(table.get("cpu.awaits")?)?).filter(|lock| *lock != 0)?;
    let taken = space.word(block.checked_add(table.get("cpu.awaits_taken")?)?)?;
    Some((lock, taken, block.checked_add(table.get("cpu.awaits_from")?)?))
}

/// The place in the source that the pointer at an address leads to.
fn place(space: &Space<'_>, table: &Table, at: u64) -> Option<String> {
    let place = space.word(at).filter(|place| *place != 0)?;
    let word = |name: &str| space.word(place.checked_add(table.get(name)?)?);
    let half = |name: &str| space.half(place.checked_add(table.get(name)?)?);
    let length = word("place.file_length").filter(|length| *length <= MOST_PATH)?;
    let file = space.bytes(word("place.file")?, length as usize)?;
    Some(format!("{}:{}:{}", String::from_utf8_lossy(&file), half("place.line")?, half("place.column")?))
}
