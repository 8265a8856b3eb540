//! Computes CRC32 bit by bit, as the standard's text has it.

/// CRC32 of ISO 3309: reflected polynomial 0xEDB88320, all ones before and after.
#[must_use]
pub fn crc32(bytes: &[u8]) -> u32 {
    let mut state = u32::MAX;
    for byte in bytes {
        state ^= u32::from(*byte);
        for _ in 0..8 {
            let carry = state & 1;
            state >>= 1;
            if carry == 1 {
                state ^= 0xEDB8_8320;
            }
        }
    }
    !state
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_check_value_of_the_standard() {
        assert_eq!(super::crc32(b"123456789"), 0xCBF4_3926);
    }
}
