//! The memory devices: null, zero, full, random (null(4), full(4), random(4)).

use linux_abi::Errno;

use crate::fs::file::{File, FileOps, Seeking};
use crate::fs::io::{Sink, Source};
use crate::random;

/// Which one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Memory {
    Null,
    Zero,
    Full,
    Random,
}

impl FileOps for Memory {
    #[inline]
    fn read(&self, _file: &File, _position: u64, sink: &mut Sink<'_>) -> Result<(), Errno> {
        match self {
            Self::Null => Ok(()),
            Self::Zero | Self::Full => sink.put_zeros(sink.left()).map(|_| ()),
            Self::Random => random::fill_sink(sink),
        }
    }

    #[inline]
    fn write(&self, _file: &File, position: u64, source: &mut Source<'_>) -> Result<u64, Errno> {
        match self {
            Self::Full if source.left() > 0 => return Err(Errno::ENOSPC),
            Self::Random => random::stir_from(source)?,
            _ => source.skip(source.left()),
        }
        Ok(position)
    }

    fn seeking(&self) -> Seeking {
        Seeking::Ignored
    }

    fn ioctl(&self, _file: &File, request: u32, argument: u64) -> Result<usize, Errno> {
        match self {
            Self::Random => random::ioctl(request, argument),
            _ => Err(Errno::ENOTTY),
        }
    }
}
