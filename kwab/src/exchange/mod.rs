//! Makes dumps of what other tools have recorded.
//!
//! | format | reader | becomes |
//! |---|---|---|
//! | ELF core of a process | `elf_core` | its death (`process`) |
//! | minidump | `minidump` | the same |
//! | ELF core of a machine, kdump-compressed file, both also flattened | [`crate::capture`] | all its memory |
//! | `qemu -d int,cpu_reset` | `qemu` | each triple fault |
//! | text of strace(1) | `strace` | each death by a signal, with the calls before it |
//!
//! [`Format::of_head`] knows them by their first bytes. Each reader believes nothing beyond the bytes that the file
//! has; what it makes grows with the file and not with what the file claims.

mod elf_core;
mod file_memory;
mod minidump;
pub mod open;
mod process;
mod qemu;
mod strace;
mod text_lines;

#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_strace;

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

use crate::capture::{self, CaptureError};
use crate::import::made::{Maker, Told};
use crate::import::{ImportError, ImportReport, Options, PendingDump};
use crate::magic::MAKEDUMPFILE;
use crate::oracle::is_strace;

/// What a file is that becomes dumps and is not a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// An ELF core, of a process or of a machine.
    ElfCore,
    /// A minidump of a process.
    Minidump,
    /// What makedumpfile writes of a machine: kdump-compressed, or flattened.
    Kdump,
}

/// Bytes that decide which format a file has.
pub const HEAD: usize = 64;

impl Format {
    /// The format of a file that begins like this.
    #[must_use]
    pub fn of_head(head: &[u8]) -> Option<Self> {
        let core = head.starts_with(b"\x7fELF") && head.get(5) == Some(&1) && head.get(16..18) == Some(&[4, 0]);
        let minidump = head.starts_with(b"MDMP").then_some(Self::Minidump);
        let kdump = MAKEDUMPFILE.iter().any(|magic| head.starts_with(magic)).then_some(Self::Kdump);
        core.then_some(Self::ElfCore).or(minidump).or(kdump)
    }
}

/// What a text is that another tool has printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextFormat {
    /// QEMU's log of exceptions and resets.
    QemuTrace,
    /// The text of strace(1).
    Strace,
}

impl TextFormat {
    /// The format of a text that begins like this; `None` for what is read as a log.
    #[must_use]
    pub fn of_head(head: &[u8]) -> Option<Self> {
        let strace = || is_strace(head).then_some(Self::Strace);
        qemu::is_trace(head).then_some(Self::QemuTrace).or_else(strace)
    }
}

/// Makes dumps of a text of this format, which begins with `head`. `progress` hears the offset now and then.
///
/// # Errors
/// [`ImportError`]; nothing is left behind then.
pub fn import_text(
    input: impl io::Read,
    head: &[u8],
    format: TextFormat,
    options: &Options,
    progress: &mut dyn FnMut(u64),
) -> Result<(ImportReport, Vec<PendingDump>), ImportError> {
    match format {
        TextFormat::QemuTrace => qemu::import(input, head, options, progress),
        TextFormat::Strace => strace::import(input, head, options, progress),
    }
}

/// Why a file cannot be imported.
#[derive(Debug, thiserror::Error)]
pub enum ExchangeError {
    /// It cannot be read.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// It is of another kind or machine, or damaged where nothing can be read without it.
    #[error("{0}")]
    Refused(String),
    /// The dump cannot be written.
    #[error(transparent)]
    Import(#[from] ImportError),
}

impl From<CaptureError> for ExchangeError {
    fn from(error: CaptureError) -> Self {
        match error {
            CaptureError::Io(error) => Self::Io(error),
            // The words of `kwab capture` name a machine, which need not be what this is.
            CaptureError::Core(why) => Self::Refused(format!("is not an ELF core of x86-64: {why}")),
            other => Self::Refused(other.to_string()),
        }
    }
}

/// What names the dumps of a file: its beginning, where the notes with the registers are, and pieces of the rest.
fn sample(file: &File, length: u64) -> io::Result<Vec<u8>> {
    const BEGINNING: u64 = 1 << 20;
    const PIECES: u64 = 64;
    const PIECE: u64 = 4096;
    let mut bytes = vec![0; usize::try_from(length.min(BEGINNING)).unwrap_or(0)];
    file.read_exact_at(&mut bytes, 0)?;
    let mut piece = [0; PIECE as usize];
    for number in (1..=PIECES).filter(|_| length > BEGINNING) {
        let at = BEGINNING + (length - BEGINNING) / PIECES * (number - 1);
        let found = file.read_at(&mut piece, at)?;
        bytes.extend_from_slice(&piece[..found]);
    }
    Ok(bytes)
}

/// Makes dumps of a file of this format.
///
/// # Errors
/// [`ExchangeError`]; nothing is left behind then.
pub fn import_file(
    file: File,
    format: Format,
    options: &Options,
) -> Result<(ImportReport, Vec<PendingDump>), ExchangeError> {
    let length = file.metadata()?.len();
    let mut maker = Maker::new(options, &sample(&file, length)?, length);
    let missing = match format {
        Format::ElfCore if elf_core::is_process(&file)? => {
            let (process, memory) = elf_core::read(&file)?;
            maker.add(|out| process::write(&process, &memory, &options.source, out))?;
            process.missing
        }
        Format::Minidump => {
            let (process, memory) = minidump::read(&file)?;
            maker.add(|out| process::write(&process, &memory, &options.source, out))?;
            process.missing
        }
        Format::ElfCore | Format::Kdump => {
            let mut snapshot = capture::of_core(file)?;
            let mut lost = Vec::new();
            maker.add(|out| {
                lost = snapshot.put(None, out)?.lost;
                let missing = snapshot.missing.iter().chain(&lost).cloned().collect();
                Ok(Told { missing, ..Told::default() })
            })?;
            snapshot.missing.append(&mut lost);
            snapshot.missing
        }
    };
    let cut = (!missing.is_empty()).then(|| format!("the file does not have {}", missing.join("; ")));
    Ok(maker.finish(0, cut))
}
