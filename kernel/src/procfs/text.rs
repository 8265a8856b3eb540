//! Files whose text is made when read: each opening keeps the text it began to read.

use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;

use linux_abi::Errno;
use machine::addr::PAGE_SIZE;
use machine::sync::SpinLock;

use super::What;
use super::node::{Body, ProcNode};
use super::process;
use crate::fs::file::{File, FileOps, Seeking};
use crate::fs::io::{Sink, Source};
use crate::mm::{AddressSpace, frames};

/// One opening of a text.
pub(super) struct TextFile {
    node: Arc<ProcNode>,
    text: SpinLock<Option<Arc<[u8]>>>,
    /// What a [`What::Memory`] is about; not kept alive by an opening.
    memory: Weak<AddressSpace>,
    /// Whether the text is that of the opening ([`What::AtOpen`]), never made again.
    fixed: bool,
}

/// The most bytes a control file takes.
const LONGEST_WRITE: usize = 4096;

impl TextFile {
    pub(super) fn new(node: Arc<ProcNode>) -> Self {
        Self { node, text: SpinLock::new(None), memory: Weak::new(), fixed: false }
    }

    /// An opening that tells of `memory`, whatever the process executes later.
    pub(super) fn about(node: Arc<ProcNode>, memory: Option<&Arc<AddressSpace>>) -> Self {
        let memory = memory.map_or_else(Weak::new, Arc::downgrade);
        Self { memory, ..Self::new(node) }
    }

    /// An opening that keeps `text`.
    pub(super) fn holding(node: Arc<ProcNode>, text: Vec<u8>) -> Self {
        Self { text: SpinLock::new(Some(text.into())), fixed: true, ..Self::new(node) }
    }

    fn make(&self) -> Result<Vec<u8>, Errno> {
        frames::spare()?;
        match self.node.body {
            Body::Text(What::File(read) | What::Constant(read) | What::Control(read, _)) => read(self.node.target),
            Body::Text(What::Memory(read)) => self.memory.upgrade().map_or(Ok(Vec::new()), |mm| read(&mm)),
            Body::OneInfo(fd) => process::descriptor_info(self.node.target, fd),
            _ => Err(Errno::EINVAL),
        }
    }
}

impl FileOps for TextFile {
    fn read(&self, _file: &File, position: u64, sink: &mut Sink<'_>) -> Result<(), Errno> {
        let kept = self.text.lock().clone();
        let text = match kept {
            Some(text) if position > 0 || self.fixed => text,
            _ => {
                let fresh: Arc<[u8]> = self.make()?.into();
                *self.text.lock() = Some(fresh.clone());
                fresh
            }
        };
        let start = usize::try_from(position).unwrap_or(usize::MAX).min(text.len());
        sink.put(&text[start..]).map(|_| ())
    }

    fn write(&self, _file: &File, position: u64, source: &mut Source<'_>) -> Result<u64, Errno> {
        let Body::Text(What::Control(_, write)) = self.node.body else { return Err(Errno::EIO) };
        let mut bytes = alloc::vec![0; source.left().min(LONGEST_WRITE)];
        source.take(&mut bytes)?;
        if let Err(error) = write(self.node.target, bytes.trim_ascii_end()) {
            source.untake(bytes.len());
            return Err(error);
        }
        Ok(position)
    }

    fn held_pages(&self) -> usize {
        self.text.try_lock().map_or(0, |text| text.as_ref().map_or(0, |text| text.len() / PAGE_SIZE))
    }

    fn seeking(&self) -> Seeking {
        Seeking::Position
    }
}
