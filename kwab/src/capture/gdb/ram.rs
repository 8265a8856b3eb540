//! Reads all RAM of QEMU's machine through its stub, as an ELF core without notes.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use super::super::CaptureError;
use super::super::vmcore::Vmcore;
use super::Remote;

impl Remote {
    /// Reads all RAM of QEMU's machine into a file of `folder` without a name, as an ELF core.
    ///
    /// # Errors
    /// [`CaptureError::Refused`] when the stub does not say how much there is, or it does not lie in one piece.
    pub(in crate::capture) fn all_memory(&mut self, folder: &Path) -> Result<Vmcore, CaptureError> {
        /// Up to here RAM of QEMU's machines lies in one piece from address 0 on, but for the window of the display.
        const MOST: u64 = 2 << 30;
        const DISPLAY: std::ops::Range<u64> = 0xa_0000..0xc_0000;
        const STEP: u64 = 1 << 20;
        let refused = |why: &str| CaptureError::Refused { command: "all memory".to_owned(), why: why.to_owned() };
        let told = self.monitor("info memory_size_summary")?;
        let size = told.lines().find_map(|line| line.trim().strip_prefix("base memory:")?.trim().parse::<u64>().ok());
        let Some(size) = size.filter(|size| *size > DISPLAY.end && size % 4096 == 0) else {
            return Err(refused("it does not say how much memory there is (QEMU's monitor does)"));
        };
        if size > MOST {
            return Err(refused("more than 2 GiB lie in several pieces; --qmp takes them"));
        }
        let pieces = [0..DISPLAY.start, DISPLAY.end..size];
        let file = tempfile::tempfile_in(folder)?;
        let mut at = core_header(&file, &pieces)?;
        self.set_physical(true)?;
        let read = pieces.into_iter().try_for_each(|piece| {
            for start in piece.clone().step_by(STEP as usize) {
                let stop = piece.end.min(start + STEP);
                let bytes = self.read(start, stop)?;
                if bytes.len() as u64 != stop - start {
                    return Err(refused(&format!("physical memory ends at {:#x}", start + bytes.len() as u64)));
                }
                // What is not written is a hole of zeros in the file.
                if bytes.iter().any(|byte| *byte != 0) {
                    file.write_all_at(&bytes, at)?;
                }
                at += stop - start;
            }
            Ok(())
        });
        // Virtual memory is what every other question means.
        let back = self.set_physical(false);
        read.and(back)?;
        file.set_len(at)?;
        Vmcore::open(file)
    }
}

/// Writes the headers of an ELF core with these pieces of physical memory; where their bytes begin.
fn core_header(file: &File, pieces: &[std::ops::Range<u64>]) -> std::io::Result<u64> {
    const HEADER: usize = 64;
    const ROW: usize = 56;
    let mut head = vec![0; HEADER];
    head[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
    // ET_CORE, EM_X86_64; e_version, e_phoff, e_ehsize, e_phentsize and e_phnum (System V ABI, "ELF Header").
    for (at, value) in [(16, 4), (18, 62), (20, 1), (32, HEADER as u16), (52, HEADER as u16), (54, ROW as u16)] {
        head[at..at + 2].copy_from_slice(&value.to_le_bytes());
    }
    head[56] = pieces.len() as u8;
    let first = (HEADER + ROW * pieces.len()) as u64;
    let mut at = first;
    for piece in pieces {
        let length = piece.end - piece.start;
        head.extend(1_u32.to_le_bytes());
        head.extend(7_u32.to_le_bytes());
        for word in [at, 0, piece.start, length, length, 0] {
            head.extend(word.to_le_bytes());
        }
        at += length;
    }
    file.write_all_at(&head, 0)?;
    Ok(first)
}
