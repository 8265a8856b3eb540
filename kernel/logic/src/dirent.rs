//! Packs directory entries as getdents64(2) returns them.

/// `d_type` values are the file type bits of `st_mode` shifted down.
pub const fn kind_of_mode(mode: u32) -> u8 {
    (mode >> 12 & 0xf) as u8
}

const FIXED: usize = 19;

/// Size of a packed entry: fixed part, name, zero, padded to eight bytes.
pub const fn packed_size(name: &[u8]) -> usize {
    (FIXED + name.len() + 1).next_multiple_of(8)
}

/// Writes one `struct linux_dirent64` to the front of `into`; returns its size, or `None` if it does not fit.
///
/// `next` is the cookie (`d_off`) from which the listing goes on behind this entry.
pub fn pack(into: &mut [u8], ino: u64, next: u64, kind: u8, name: &[u8]) -> Option<usize> {
    let size = packed_size(name);
    let entry = into.get_mut(..size)?;
    entry[..8].copy_from_slice(&ino.to_le_bytes());
    entry[8..16].copy_from_slice(&next.to_le_bytes());
    entry[16..18].copy_from_slice(&(size as u16).to_le_bytes());
    entry[18] = kind;
    entry[FIXED..FIXED + name.len()].copy_from_slice(name);
    entry[FIXED + name.len()..].fill(0);
    Some(size)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_fills_the_padding_still_ends_in_zero() {
        let mut buffer = [0xff_u8; 64];
        assert_eq!(pack(&mut buffer, 7, 9, kind_of_mode(0o040_755), b"abcd"), Some(24));
        assert_eq!(buffer[18..24], [4, b'a', b'b', b'c', b'd', 0]);
        assert_eq!(pack(&mut buffer, 7, 9, 8, b"abcde"), Some(32));
        assert_eq!((buffer[16], buffer[24], buffer[31], buffer[32]), (32, 0, 0, 0xff));
        assert_eq!(pack(&mut buffer[..23], 7, 9, 8, b"abcd"), None);
    }
}
