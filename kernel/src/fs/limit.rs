//! The largest file a process may write (RLIMIT_FSIZE, setrlimit(2)).

use linux_abi::Errno;
use linux_abi::signals;

use crate::task::limits::resource;
use crate::task::try_current;

/// How many of `count` bytes may be written at `position`: EFBIG, and SIGXFSZ to the process, if none.
#[inline]
pub fn room(position: u64, count: usize) -> Result<usize, Errno> {
    let largest = super::tmpfs::LARGEST;
    let Some(task) = try_current() else { return Ok(count) };
    let limit = task.process.limit(resource::FSIZE);
    if position >= limit {
        crate::signal::send_thread(&task.to_arc(), crate::signal::Info::kernel(signals::SIGXFSZ));
        return Err(Errno::EFBIG);
    }
    let most = limit.min(largest).saturating_sub(position);
    if most == 0 { Err(Errno::EFBIG) } else { Ok(count.min(usize::try_from(most).unwrap_or(usize::MAX))) }
}
