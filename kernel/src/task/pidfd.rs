//! Descriptors that stand for processes (pidfd_open(2)): they poll readable once the process has ended, and keep
//! meaning it after its number went to another.

use alloc::sync::Arc;

use kernel_logic::readiness::{IN, RDNORM};
use linux_abi::Errno;
use linux_abi::flags::file::{O_NONBLOCK, O_RDWR};

use super::{Process, Task};
use crate::fs::file::FileOps;
use crate::fs::{File, FileSlot, anon};
use crate::sync::wait::Waiter;
use crate::task::limits::resource;

struct PidFile(Arc<Process>);

impl FileOps for PidFile {
    fn poll<'q>(&'q self, _file: &'q File, waiter: Option<&mut Waiter<'q>>) -> u32 {
        if let Some(waiter) = waiter {
            waiter.add(self.0.life.ended());
        }
        if self.0.is_zombie() { IN | RDNORM } else { 0 }
    }
}

/// Opens a descriptor of `me` for `process`; it is closed on exec.
pub fn open(me: &Task, process: &Arc<Process>, nonblocking: bool) -> Result<i32, Errno> {
    let flags = (O_RDWR | if nonblocking { O_NONBLOCK } else { 0 }) as u32;
    let file = anon::open_shared("anon_inode:[pidfd]", Arc::new(PidFile(process.clone())), flags, FileSlot::take()?);
    let limit = me.process.limit(resource::NOFILE).min(u64::from(u32::MAX)) as u32;
    me.files().install(file, 0, limit, true)
}

/// The process descriptor `fd` of `me` stands for; `EBADF` when it does not stand for one.
pub fn process_of(me: &Task, fd: i32) -> Result<Arc<Process>, Errno> {
    let file = me.files().get(fd)?;
    file.ops.downcast::<PidFile>().map(|file| file.0.clone()).ok_or(Errno::EBADF)
}
