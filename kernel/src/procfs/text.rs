//! Text files: the text is made at the first read of an opening, which keeps it.

use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;

use linux_abi::Errno;
use machine::addr::PAGE_SIZE;
use machine::sync::SpinLock;

use super::{Offset, Target, What, process};
use crate::fs::file::{File, FileOps, Seeking};
use crate::fs::io::{Sink, Source};
use crate::mm::{AddressSpace, frames};

/// Where a text comes from.
#[derive(Clone, Copy)]
pub(super) enum Origin {
    /// A function of the tables.
    Table(What),
    /// The state of one descriptor.
    Descriptor(i32),
}

/// One opening of a text.
pub(super) struct TextFile {
    target: Target,
    origin: Origin,
    text: SpinLock<Option<Arc<Vec<u8>>>>,
    /// What a [`What::Memory`] is about; not kept alive by an opening.
    memory: Weak<AddressSpace>,
    /// Whether the text is that of the opening ([`What::AtOpen`]), never made again.
    fixed: bool,
}

/// The most bytes a control file takes.
const LONGEST_WRITE: usize = 4096;
/// The most bytes of a name that are looked at (`TASK_COMM_LEN`, less the end).
const LONGEST_NAME: usize = 15;

impl TextFile {
    pub(super) fn new(target: Target, origin: Origin) -> Self {
        Self { target, origin, text: SpinLock::new(None), memory: Weak::new(), fixed: false }
    }

    /// An opening that tells of `memory`, whatever the process executes later.
    pub(super) fn about(target: Target, origin: Origin, memory: Option<&Arc<AddressSpace>>) -> Self {
        let memory = memory.map_or_else(Weak::new, Arc::downgrade);
        Self { memory, ..Self::new(target, origin) }
    }

    /// An opening that keeps `text`.
    pub(super) fn holding(target: Target, origin: Origin, text: Vec<u8>) -> Self {
        Self { text: SpinLock::new(Some(Arc::new(text))), fixed: true, ..Self::new(target, origin) }
    }

    fn make(&self) -> Result<Vec<u8>, Errno> {
        frames::spare()?;
        match self.origin {
            Origin::Table(What::File(read) | What::Constant(read) | What::Control(read, ..)) => {
                self.target.check_there()?;
                read(self.target)
            }
            Origin::Table(What::Memory(read)) => self.memory.upgrade().map_or(Ok(Vec::new()), |mm| read(&mm)),
            Origin::Descriptor(fd) => process::descriptor_info(self.target, fd),
            Origin::Table(_) => Err(Errno::EINVAL),
        }
    }
}

impl FileOps for TextFile {
    fn read(&self, _file: &File, position: u64, sink: &mut Sink<'_>) -> Result<(), Errno> {
        let kept = self.text.lock().clone();
        let text = match kept {
            Some(text) if position > 0 || self.fixed => text,
            _ => {
                // Each opening keeps its text: none is made while memory is low.
                frames::spare()?;
                let fresh = Arc::new(self.make()?);
                *self.text.lock() = Some(fresh.clone());
                fresh
            }
        };
        let start = usize::try_from(position).unwrap_or(usize::MAX).min(text.len());
        sink.put(&text[start..]).map(|_| ())
    }

    fn write(&self, _file: &File, position: u64, source: &mut Source<'_>) -> Result<u64, Errno> {
        let Origin::Table(What::Control(read, write, offset)) = self.origin else { return Err(Errno::EIO) };
        if source.left() == 0 && !matches!(offset, Offset::Unseen | Offset::Absent) {
            return Ok(position);
        }
        let longest = if offset == Offset::Absent { LONGEST_NAME } else { LONGEST_WRITE };
        let mut bytes = alloc::vec![0; source.left().min(longest)];
        source.take(&mut bytes)?;
        if offset == Offset::Absent {
            source.skip(source.left());
        }
        let set = |text: &[u8]| self.target.check_there().and_then(|()| write(self.target, text));
        let written = match offset {
            Offset::Ignored if position > 0 => Ok(()),
            Offset::Refused if position > 0 => Err(Errno::EINVAL),
            Offset::Joined => joined(read(self.target)?, position, &bytes).map_or(Ok(()), |text| set(&text)),
            Offset::Absent => set(&bytes),
            _ => set(bytes.trim_ascii_end()),
        };
        if let Err(error) = written {
            source.untake(source.done());
            return Err(error);
        }
        Ok(position)
    }

    fn seeking(&self) -> Seeking {
        match self.origin {
            Origin::Table(What::Control(.., Offset::Absent)) => Seeking::Lines,
            _ => Seeking::Position,
        }
    }

    fn held_pages(&self) -> usize {
        self.text.try_lock().map_or(0, |text| text.as_ref().map_or(0, |text| text.capacity().div_ceil(PAGE_SIZE)))
    }
}

/// The line `text` with its end from byte `at` on replaced by the first line of `new`; `None` if it is shorter.
fn joined(mut text: Vec<u8>, at: u64, new: &[u8]) -> Option<Vec<u8>> {
    let kept = usize::try_from(at).ok().filter(|kept| *kept <= text.trim_ascii_end().len())?;
    text.truncate(kept);
    text.extend(new.iter().take_while(|byte| !matches!(byte, 0 | b'\n')));
    Some(text)
}
