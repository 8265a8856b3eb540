//! The largest file a process may write (RLIMIT_FSIZE, setrlimit(2)).

use kernel_logic::signal::{Cause, SigInfo, sig};
use linux_abi::Errno;

use crate::task::limits::resource;
use crate::task::try_current;

/// How many of `count` bytes may be written at `position`: EFBIG, and SIGXFSZ to the caller, if none.
#[inline]
pub fn room(position: u64, count: usize) -> Result<usize, Errno> {
    let Some(task) = try_current() else { return Ok(count) };
    let limit = task.process.limit(resource::FSIZE);
    if position >= limit {
        let info = SigInfo { signal: sig::XFSZ, code: 0x80, errno: 0, cause: Cause::None };
        // A full queue loses only the detail: the signal itself stays pending.
        let _ = crate::task::signal::send_thread(&task.to_arc(), info);
        return Err(Errno::EFBIG);
    }
    let most = limit.min(super::tmpfs::LARGEST).saturating_sub(position);
    if most == 0 { Err(Errno::EFBIG) } else { Ok(count.min(usize::try_from(most).unwrap_or(usize::MAX))) }
}
