//! Futex keys: what identifies a futex word across address spaces.

use alloc::sync::Arc;

use kernel_logic::vma::VmaFlags;
use linux_abi::Errno;
use machine::addr::UserPage;
use machine::trap::Access;

use crate::mm::{TAG_ANON, Vma, page_down};
use crate::sched::{Sleep, breathe_or_stop};
use crate::task::{current, memory};

/// What two users of one futex have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    /// An address of one address space.
    Private {
        /// Identity of the address space.
        space: usize,
        /// User address of the word.
        addr: u64,
    },
    /// A word of a file or of shared memory, whichever frame holds it now: frames go to other memory while a thread
    /// waits.
    Shared {
        /// Which one ([`crate::mm::Mapped::identity`]).
        object: (u64, u64),
        /// Offset in it.
        offset: u64,
    },
}

impl Key {
    /// The first of all.
    pub const FIRST: Self = Self::Private { space: 0, addr: 0 };
}

/// What an operation does with the word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// It is looked at.
    Read,
    /// It is changed.
    Write,
}

/// The key of the word at `addr`: EINVAL for an address that is not aligned. `private` asks nothing of the memory;
/// without it the word's page must be there, as `need` says, and a private page that cannot be written is EFAULT.
pub fn key(addr: u64, private: bool, need: Need) -> Result<Key, Errno> {
    if !addr.is_multiple_of(4) {
        return Err(Errno::EINVAL);
    }
    if addr >> 47 != 0 {
        return Err(Errno::EFAULT);
    }
    let me = current();
    let mm = me.mm().ok_or(Errno::EFAULT)?;
    let in_space = Key::Private { space: Arc::as_ptr(&mm).addr(), addr };
    if private {
        return Ok(in_space);
    }
    let page = UserPage::new(page_down(addr)).ok_or(Errno::EFAULT)?;
    let mut read_only = false;
    loop {
        let seen = |vma: &Vma| {
            let object = vma.backing.identity().map(|(object, offset)| (object, offset + (addr - vma.start)));
            (vma.flags.has(VmaFlags::SHARED), object)
        };
        let found = mm.lock().vmas.find(addr).map(seen);
        if let (Some((shared, object)), Some(leaf)) = (found, mm.space.lookup(page)) {
            let in_object = object.map_or(in_space, |(object, offset)| Key::Shared { object, offset });
            match (shared, leaf.prot.write) {
                (false, true) => return Ok(in_space),
                (true, true) => return Ok(in_object),
                // A private page that is never written never changes: nothing to wait for (futex(2), EFAULT).
                (false, false) if read_only && leaf.prot.tag == TAG_ANON => return Err(Errno::EFAULT),
                (_, false) if read_only && leaf.prot.read => return Ok(in_object),
                _ => {}
            }
        }
        // As Linux does: for writing, and if that cannot be, for reading.
        if read_only || memory::resolve(&me, addr, Access::Write).is_err() {
            read_only = true;
            if need == Need::Write || memory::resolve(&me, addr, Access::Read).is_err() {
                return Err(Errno::EFAULT);
            }
        }
        breathe_or_stop(Sleep::Killable)?;
    }
}
