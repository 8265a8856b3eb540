//! Declares what a writer may ask of its sink, the destination of its bytes.

use crate::wire::copy;

/// Where a dump goes: a region of memory, a disk, a console.
pub trait Sink {
    /// Appends all of `bytes`.
    ///
    /// # Errors
    /// [`SinkError`] with the number of bytes that did get out; the writer goes on with the next section behind them.
    fn write(&mut self, bytes: &[u8]) -> Result<(), SinkError>;

    /// Bytes that still fit, when the sink knows; the writer then keeps room for the end section.
    fn room(&self) -> Option<u64> {
        None
    }

    /// Pushes out what the sink holds back, at the end of the dump.
    ///
    /// # Errors
    /// [`SinkError`] when that fails.
    fn flush(&mut self) -> Result<(), SinkError> {
        Ok(())
    }
}

/// A write that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SinkError {
    /// Bytes of the failed write that were appended nevertheless.
    pub written: u64,
}

impl core::fmt::Display for SinkError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "the sink failed after {} bytes", self.written)
    }
}

impl core::error::Error for SinkError {}

impl<S: Sink + ?Sized> Sink for &mut S {
    fn write(&mut self, bytes: &[u8]) -> Result<(), SinkError> {
        (**self).write(bytes)
    }

    fn room(&self) -> Option<u64> {
        (**self).room()
    }

    fn flush(&mut self) -> Result<(), SinkError> {
        (**self).flush()
    }
}

/// A sink into a slice; a write that does not fit appends nothing.
#[derive(Debug)]
pub struct SliceSink<'b> {
    buf: &'b mut [u8],
    len: usize,
}

impl<'b> SliceSink<'b> {
    /// Starts at the front of `buf`.
    pub const fn new(buf: &'b mut [u8]) -> Self {
        Self { buf, len: 0 }
    }

    /// What has been written.
    #[must_use]
    pub fn written(&self) -> &[u8] {
        self.buf.get(..self.len).unwrap_or_default()
    }
}

impl Sink for SliceSink<'_> {
    fn write(&mut self, bytes: &[u8]) -> Result<(), SinkError> {
        let end = self.len.saturating_add(bytes.len());
        let to = self.buf.get_mut(self.len..end).ok_or(SinkError { written: 0 })?;
        copy(to, bytes);
        self.len = end;
        Ok(())
    }

    fn room(&self) -> Option<u64> {
        u64::try_from(self.buf.len().saturating_sub(self.len)).ok()
    }
}
