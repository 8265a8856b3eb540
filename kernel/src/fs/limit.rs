//! The largest file a process may write (RLIMIT_FSIZE, setrlimit(2)).

use linux_abi::Errno;

use super::{Above, Actor as _};
use crate::upper::{Kwab, try_current};

/// The largest size any file may have (`MAX_LFS_FILESIZE`).
pub const LARGEST: u64 = i64::MAX as u64;

/// How many of `count` bytes may be written at `position`: EFBIG, and SIGXFSZ to the caller, if none.
#[inline(always)]
pub fn room(position: u64, count: usize) -> Result<usize, Errno> {
    let Some(task) = try_current() else { return Ok(count) };
    let limit = task.file_size_limit();
    if position >= limit {
        return Err(too_large());
    }
    let most = limit.min(LARGEST).saturating_sub(position);
    if most == 0 { Err(Errno::EFBIG) } else { Ok(count.min(usize::try_from(most).unwrap_or(usize::MAX))) }
}

#[cold]
fn too_large() -> Errno {
    <Kwab as Above>::file_too_large();
    Errno::EFBIG
}
