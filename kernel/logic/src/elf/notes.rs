//! Decides what a mapped ELF image is from its first page: how far it moved, and its build-id.
//!
//! For dumps: the reader may have no bytes at an address, every number is checked before use, and nothing is allocated.

/// Longest build-id that is kept: SHA-1 and SHA-256 fit.
pub const MAX_ID: usize = 32;
/// Program headers looked at.
const MAX_HEADERS: u16 = 32;
/// Notes looked at in one segment.
const MAX_NOTES: usize = 16;

const PT_LOAD: u32 = 1;
const PT_NOTE: u32 = 4;
const NT_GNU_BUILD_ID: u32 = 3;

/// What was found out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Run-time minus link-time address.
    pub bias: u64,
    /// Entry point at run time.
    pub entry: u64,
    /// The GNU build-id, in its first `build_id_len` bytes.
    pub build_id: [u8; MAX_ID],
    /// How long it is; 0 when there is none.
    pub build_id_len: usize,
}

/// Looks at the image whose file offset 0 is mapped at `start`. `read` copies what it can from an address and says how
/// much. `None` if it is not a 64-bit ELF image.
pub fn find(start: u64, mut read: impl FnMut(u64, &mut [u8]) -> usize) -> Option<Found> {
    let mut header = [0; 64];
    whole(start, &mut header, &mut read)?;
    // Magic, 64 bits, little-endian (elf(5)).
    if header[..6] != *b"\x7fELF\x02\x01" {
        return None;
    }
    let (table, size) = (word(&header, 32)?, half(&header, 54)?);
    let count = half(&header, 56)?.min(MAX_HEADERS);
    let mut found = Found::default();
    let mut loaded = false;
    for number in 0..count {
        let mut entry = [0; 56];
        let at = start.checked_add(table)?.checked_add(u64::from(number) * u64::from(size))?;
        whole(at, &mut entry, &mut read)?;
        let (offset, address, length) = (word(&entry, 8)?, word(&entry, 16)?, word(&entry, 32)?);
        match long(&entry, 0)? {
            PT_LOAD if !loaded => {
                loaded = true;
                found.bias = start.wrapping_sub(address.wrapping_sub(offset));
            }
            // Notes behind a first segment that has not come yet would be placed wrongly.
            PT_NOTE if loaded && found.build_id_len == 0 => notes(&mut found, address, length, &mut read),
            PT_NOTE if found.build_id_len == 0 => {
                found.bias = start.wrapping_sub(address.wrapping_sub(offset));
                notes(&mut found, address, length, &mut read);
            }
            _ => {}
        }
    }
    found.entry = word(&header, 24)?.wrapping_add(found.bias);
    Some(found)
}

/// A loadable segment as the image's own header has it, at run time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Loadable {
    /// Run-time address of the first byte.
    pub start: u64,
    /// Bytes in memory.
    pub length: u64,
    /// How many of them the file has; the rest is zeros.
    pub in_file: u64,
    /// Offset in the file.
    pub offset: u64,
    /// Bit 0 read, bit 1 write, bit 2 execute.
    pub prot: u32,
}

/// Visits the loadable segments of the image whose file offset 0 is mapped at `start`, moved by `bias`.
pub fn segments(
    start: u64,
    bias: u64,
    mut read: impl FnMut(u64, &mut [u8]) -> usize,
    mut visit: impl FnMut(Loadable),
) -> Option<()> {
    let mut header = [0; 64];
    whole(start, &mut header, &mut read)?;
    let (table, size) = (word(&header, 32)?, half(&header, 54)?);
    for number in 0..half(&header, 56)?.min(MAX_HEADERS) {
        let mut entry = [0; 56];
        let at = start.checked_add(table)?.checked_add(u64::from(number) * u64::from(size))?;
        whole(at, &mut entry, &mut read)?;
        if long(&entry, 0)? != PT_LOAD {
            continue;
        }
        // ELF counts execution as bit 0 and reading as bit 2 (elf(5), p_flags).
        let flags = long(&entry, 4)?;
        visit(Loadable {
            start: word(&entry, 16)?.wrapping_add(bias),
            length: word(&entry, 40)?,
            in_file: word(&entry, 32)?,
            offset: word(&entry, 8)?,
            prot: flags >> 2 & 1 | flags & 2 | (flags & 1) << 2,
        });
    }
    Some(())
}

/// Looks through the notes of a segment.
fn notes(found: &mut Found, address: u64, length: u64, read: &mut impl FnMut(u64, &mut [u8]) -> usize) {
    let mut at = found.bias.wrapping_add(address);
    let end = at.wrapping_add(length);
    for _ in 0..MAX_NOTES {
        let mut head = [0; 16];
        if at >= end || whole(at, &mut head, read).is_none() {
            return;
        }
        let sizes = (long(&head, 0), long(&head, 4), long(&head, 8));
        let (Some(name), Some(description), Some(kind)) = sizes else { return };
        let body = at.wrapping_add(12 + ((u64::from(name) + 3) & !3));
        if kind == NT_GNU_BUILD_ID && name == 4 && head[12..16] == *b"GNU\0" {
            let len = (description as usize).min(MAX_ID);
            let mut id = [0; MAX_ID];
            if read(body, &mut id[..len]) == len {
                (found.build_id, found.build_id_len) = (id, len);
            }
            return;
        }
        at = body.wrapping_add((u64::from(description) + 3) & !3);
    }
}

fn whole(at: u64, to: &mut [u8], read: &mut impl FnMut(u64, &mut [u8]) -> usize) -> Option<()> {
    (read(at, to) == to.len()).then_some(())
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn long(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn word(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    /// A position-independent image of one page with a build-id of four bytes, at `bias`.
    fn image() -> Vec<u8> {
        let mut bytes = alloc::vec![0u8; 4096];
        bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
        bytes[24..32].copy_from_slice(&0x1040u64.to_le_bytes());
        bytes[32..40].copy_from_slice(&64u64.to_le_bytes());
        bytes[54..56].copy_from_slice(&56u16.to_le_bytes());
        bytes[56..58].copy_from_slice(&2u16.to_le_bytes());
        bytes[64..68].copy_from_slice(&PT_LOAD.to_le_bytes());
        bytes[64 + 32..64 + 40].copy_from_slice(&4096u64.to_le_bytes());
        bytes[120..124].copy_from_slice(&PT_NOTE.to_le_bytes());
        for field in [8, 16] {
            bytes[120 + field..128 + field].copy_from_slice(&256u64.to_le_bytes());
        }
        bytes[120 + 32..120 + 40].copy_from_slice(&20u64.to_le_bytes());
        for (at, value) in [(256, 4u32), (260, 4), (264, NT_GNU_BUILD_ID)] {
            bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
        }
        bytes[268..276].copy_from_slice(b"GNU\0\xde\xad\xbe\xef");
        bytes
    }

    fn reader(image: &[u8], base: u64) -> impl FnMut(u64, &mut [u8]) -> usize {
        move |at, to| {
            let from = at.checked_sub(base).and_then(|at| image.get(usize::try_from(at).ok()?..)).unwrap_or_default();
            let len = from.len().min(to.len());
            to[..len].copy_from_slice(&from[..len]);
            len
        }
    }

    #[test]
    fn a_moved_program_is_known_by_its_build_id_and_how_far_it_moved() {
        let image = image();
        let found = find(0x5555_0000, reader(&image, 0x5555_0000)).expect("an image");
        assert_eq!((found.bias, found.entry), (0x5555_0000, 0x5555_1040));
        assert_eq!(&found.build_id[..found.build_id_len], b"\xde\xad\xbe\xef");
    }

    #[test]
    fn headers_that_lie_or_are_not_mapped_give_nothing_and_do_no_harm() {
        let image = image();
        assert_eq!(find(0, reader(&image, 0x1000)), None);
        for at in 0..300 {
            for value in [0, 0xff] {
                let mut bad = image.clone();
                bad[at] = value;
                let _ = find(u64::MAX - 4095, reader(&bad, u64::MAX - 4095));
                let _ = find(0x1000, reader(&bad[..at], 0x1000));
            }
        }
    }
}
