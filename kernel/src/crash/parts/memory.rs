//! The mappings of the process that was running, and what registers point to.

use kernel_logic::vma::{Prot, VmaFlags};
use kwab_format::record::{MemoryKind, RegId, Vma as Mapping};

use super::cause::general;
use super::stacks::memory;
use super::{Dump, Stop, Subject};
use crate::mm::{Backing, Map, Vma};

/// Looks at the map of the process that was running; nothing when it has none.
pub(super) fn with_map(
    dump: &mut Dump<'_>,
    subject: &Subject<'_>,
    look: impl FnOnce(&mut Dump<'_>, &Map, &crate::mm::AddressSpace) -> Result<(), Stop>,
) -> Result<(), Stop> {
    let Some(thread) = subject.thread.filter(|thread| !thread.kernel_thread) else { return Ok(()) };
    let mut look = Some(look);
    let seen = thread.mm.try_with(|mm| {
        let map = dump.get(|| mm.try_lock())?;
        look.take().map_or(Ok(()), |look| look(dump, &map, mm))
    });
    seen.unwrap_or(Ok(()))
}

pub(super) fn map(dump: &mut Dump<'_>, subject: &Subject<'_>) -> Result<(), Stop> {
    let pid = subject.pid();
    let most = subject.amount.entries;
    with_map(dump, subject, |dump, map, _| {
        for vma in map.vmas.iter().take(most) {
            put(dump, pid, vma)?;
        }
        if map.vmas.len() > most { Err(Stop::Enough) } else { Ok(()) }
    })
}

/// Puts one mapping.
pub(super) fn put(dump: &mut Dump<'_>, pid: Option<u32>, vma: &Vma) -> Result<(), Stop> {
    let mut room = [0; 256];
    let mut mapping = Mapping {
        pid,
        start: Some(vma.start),
        end: Some(vma.end),
        prot: Some(u32::from(vma.prot.0)),
        flags: Some(flags(vma)),
        name: Some(name(vma).as_bytes()),
        ..Mapping::default()
    };
    match &vma.backing {
        Backing::File { file, offset } => {
            mapping.path = Some(file.path.try_name(&mut room));
            mapping.file_offset = Some(*offset);
            mapping.inode = Some(file.inode().attr().ino);
            mapping.device = Some(file.inode().attr().dev);
        }
        Backing::Shared { offset, .. } => mapping.file_offset = Some(*offset),
        _ => {}
    }
    dump.put(&mapping)
}

fn flags(vma: &Vma) -> u32 {
    let bit = |flag, bit: u32| if vma.flags.has(flag) { 1 << bit } else { 0 };
    bit(VmaFlags::SHARED, 0)
        | bit(VmaFlags::GROWS_DOWN, 1)
        | bit(VmaFlags::LOCKED, 2)
        | bit(VmaFlags::HUGE, 3)
        | bit(VmaFlags::NO_HUGE, 4)
}

fn name(vma: &Vma) -> &'static str {
    match &vma.backing {
        Backing::File { .. } => "File",
        Backing::Shared { .. } => "Shared",
        Backing::Vdso { index: 0 } => "[vvar]",
        Backing::Vdso { .. } => "[vdso]",
        Backing::Anonymous if vma.flags.has(VmaFlags::HEAP) => "[heap]",
        Backing::Anonymous if vma.flags.has(VmaFlags::STACK) => "[stack]",
        Backing::Pool { .. } => "/anon_hugepage (deleted)",
        Backing::Anonymous if vma.prot == Prot::NONE => "Reserved",
        Backing::Anonymous => "Anonymous",
    }
}

/// Of [`general`] those that may hold addresses.
const NAMED_BY_INSTRUCTIONS: usize = 16;

/// What the general registers point to.
pub(super) fn pointed(dump: &mut Dump<'_>, subject: &Subject<'_>) -> Result<(), Stop> {
    let amount = subject.amount.pointed as u64;
    let regs = &subject.death.registers;
    // The stacks are captured anyway.
    let is_stack = |id: RegId| id == RegId::RSP || id == RegId::RBP;
    let named = general(regs).map(|(id, value)| if is_stack(id) { (id, 0) } else { (id, value) });
    let named = &named[..NAMED_BY_INSTRUCTIONS];
    let user_end = 1 << 47;
    let near = |a: u64, b: u64| a.abs_diff(b) < amount;
    for (index, (id, value)) in named.iter().enumerate() {
        let start = value & !7;
        let seen = named[..index].iter().any(|(_, other)| near(*other, *value)) || near(regs.rsp, *value);
        if amount == 0 || *value < 4096 || seen {
            continue;
        }
        let whose = if start < user_end { subject.pid() } else { None };
        let label = id.name().unwrap_or("register");
        memory(dump, MemoryKind::OBJECT, start, start.saturating_add(amount), (whose, None), label)?;
    }
    Ok(())
}
