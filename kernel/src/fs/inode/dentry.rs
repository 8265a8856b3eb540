//! Dentries: a dentry joins a name in a directory to an inode and knows its parent.
//!
//! There is no separate cache to look names up in: a file system keeps its own names (tmpfs keeps dentries in its
//! directories, procfs makes them when asked). A dentry holds its parent, never its children, so a path keeps its name
//! while it is open.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicU32, Ordering::Relaxed, Ordering::SeqCst};

use machine::sync::SpinLock;

use super::Inode;
use crate::sched;

/// A name in a directory, or the root of a file system.
pub struct Dentry {
    /// What the name stands for.
    pub inode: Arc<dyn Inode>,
    link: SpinLock<Link>,
    state: AtomicU32,
}

struct Link {
    name: Name,
    parent: Option<Arc<Dentry>>,
}

enum Name {
    Own(Arc<[u8]>),
    /// What is in no directory shares the name of its kind.
    Kind(&'static str),
}

impl Name {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Own(name) => name,
            Self::Kind(name) => name.as_bytes(),
        }
    }
}

/// Sequence count of renames: odd while one runs.
static MOVES: AtomicU32 = AtomicU32::new(0);

/// Held during a rename, of which one runs at a time.
pub struct Moving(());

impl Moving {
    /// Begins a rename; the caller holds the lock of renames.
    pub fn begin() -> Self {
        MOVES.fetch_add(1, SeqCst);
        Self(())
    }
}

impl Drop for Moving {
    fn drop(&mut self) {
        MOVES.fetch_add(1, SeqCst);
    }
}

/// A value of the sequence count of renames: [`Moment::holds`] tells whether any dentry may have another parent since.
#[derive(Clone, Copy, Debug)]
pub struct Moment(u32);

impl Moment {
    /// None in particular: for walks without restrictions, which are never compared.
    pub const ANY: Self = Self(0);

    /// The count now.
    pub fn now() -> Self {
        Self(MOVES.load(SeqCst))
    }

    /// Whether no rename ran at that moment or since.
    pub fn holds(self) -> bool {
        self.0.is_multiple_of(2) && MOVES.load(SeqCst) == self.0
    }
}

/// Directories that are looked at between two scheduling points.
const STRIDE: usize = 256;
/// Directories that a name is followed through on the crash path.
const MOST_NAMES: u32 = 64;
const REMOVED: u32 = 1;
const MOUNTED_ON: u32 = 2;

impl Drop for Dentry {
    /// Drops the parents that only this dentry holds one after the other: a program makes chains of any length.
    fn drop(&mut self) {
        let mut parent = self.link.get_mut().parent.take();
        let mut dropped = 0_usize;
        while let Some(mut last) = parent.and_then(Arc::into_inner) {
            parent = last.link.get_mut().parent.take();
            dropped += 1;
            if dropped.is_multiple_of(STRIDE) {
                sched::breathe();
            }
        }
    }
}

impl Dentry {
    /// The name `name` in `parent`; no parent for a root and for what is in no directory (pipes, sockets).
    pub fn new(name: &[u8], parent: Option<Arc<Dentry>>, inode: Arc<dyn Inode>) -> Arc<Self> {
        let link = Link { name: Name::Own(name.into()), parent };
        Arc::new(Self { inode, link: SpinLock::new(link), state: AtomicU32::new(0) })
    }

    /// A dentry in no directory, named after its kind: `pipe:`, `socket:`, `anon_inode:[eventfd]`.
    pub fn detached(kind: &'static str, inode: Arc<dyn Inode>) -> Arc<Self> {
        let link = Link { name: Name::Kind(kind), parent: None };
        Arc::new(Self { inode, link: SpinLock::new(link), state: AtomicU32::new(0) })
    }

    /// The directory the name is in.
    pub fn parent(&self) -> Option<Arc<Dentry>> {
        self.link.lock().parent.clone()
    }

    /// The name in its directory.
    pub fn name(&self) -> Arc<[u8]> {
        match &self.link.lock().name {
            Name::Own(name) => name.clone(),
            Name::Kind(name) => name.as_bytes().into(),
        }
    }

    /// Writes `/name` to the end of the free part `into[..end]` and answers the new end and the parent, in one lock.
    pub fn prepend(&self, into: &mut [u8], end: usize) -> (Option<usize>, Option<Arc<Dentry>>) {
        let link = self.link.lock();
        let start = end.checked_sub(link.name.bytes().len() + 1);
        if let Some(start) = start {
            into[start] = b'/';
            into[start + 1..end].copy_from_slice(link.name.bytes());
        }
        (start, link.parent.clone())
    }

    /// Writes the names from below `top` to here before `end`, which moves to their begin, without waiting for a lock;
    /// whether `top` was reached.
    pub fn try_prepend(&self, top: &Self, into: &mut [u8], end: &mut usize) -> bool {
        self.try_prepend_most(top, into, end, MOST_NAMES)
    }

    fn try_prepend_most(&self, top: &Self, into: &mut [u8], end: &mut usize, depth: u32) -> bool {
        if core::ptr::eq(self, top) {
            return true;
        }
        let Some(link) = self.link.try_lock() else { return false };
        let name = link.name.bytes();
        let Some(start) = end.checked_sub(name.len() + 1).filter(|_| !name.is_empty()) else { return false };
        into[start] = b'/';
        into[start + 1..*end].copy_from_slice(name);
        *end = start;
        match &link.parent {
            Some(parent) if depth > 0 => parent.try_prepend_most(top, into, end, depth - 1),
            _ => false,
        }
    }

    /// Gives it another parent and name (rename).
    pub fn relink(&self, name: &[u8], parent: Option<Arc<Dentry>>) {
        let link = Link { name: Name::Own(name.into()), parent };
        let old = core::mem::replace(&mut *self.link.lock(), link);
        drop(old);
    }

    /// Notes that the name is gone from its directory.
    pub fn set_removed(&self) {
        self.state.fetch_or(REMOVED, Relaxed);
    }

    /// Whether the name is gone.
    pub fn is_removed(&self) -> bool {
        self.state.load(Relaxed) & REMOVED != 0
    }

    /// Notes that something is, or is no longer, mounted here in some mount.
    pub fn set_mounted_on(&self, mounted: bool) {
        if mounted {
            self.state.fetch_or(MOUNTED_ON, Relaxed);
        } else {
            self.state.fetch_and(!MOUNTED_ON, Relaxed);
        }
    }

    /// Whether something may be mounted here.
    #[inline]
    pub fn is_mounted_on(&self) -> bool {
        self.state.load(Relaxed) & MOUNTED_ON != 0
    }

    /// Whether `self` is `other` or lies below it in the same file system.
    pub fn is_within(self: &Arc<Self>, other: &Arc<Self>) -> bool {
        let mut at = self.clone();
        for depth in 1_usize.. {
            if Arc::ptr_eq(&at, other) {
                return true;
            }
            let Some(parent) = at.parent() else { break };
            at = parent;
            if depth.is_multiple_of(STRIDE) {
                sched::breathe();
            }
        }
        false
    }
}
