//! The ChaCha20 block function (RFC 8439, section 2.3), with an all-zero nonce.

/// One block of 16 words for `key` and `counter`.
pub fn block(key: &[u32; 8], counter: u32) -> [u32; 16] {
    block_with_nonce(key, counter, [0; 3])
}

fn block_with_nonce(key: &[u32; 8], counter: u32, nonce: [u32; 3]) -> [u32; 16] {
    let mut start = [0; 16];
    start[..4].copy_from_slice(&[0x6170_7865, 0x3320_646e, 0x7962_2d32, 0x6b20_6574]);
    start[4..12].copy_from_slice(key);
    start[12] = counter;
    start[13..].copy_from_slice(&nonce);
    let mut state = start;
    for _ in 0..10 {
        quarter_round::<0, 4, 8, 12>(&mut state);
        quarter_round::<1, 5, 9, 13>(&mut state);
        quarter_round::<2, 6, 10, 14>(&mut state);
        quarter_round::<3, 7, 11, 15>(&mut state);
        quarter_round::<0, 5, 10, 15>(&mut state);
        quarter_round::<1, 6, 11, 12>(&mut state);
        quarter_round::<2, 7, 8, 13>(&mut state);
        quarter_round::<3, 4, 9, 14>(&mut state);
    }
    for (word, first) in state.iter_mut().zip(start) {
        *word = word.wrapping_add(first);
    }
    state
}

/// A quarter round of four words. The indices are constants, so that the words stay in registers.
#[inline(always)]
fn quarter_round<const A: usize, const B: usize, const C: usize, const D: usize>(state: &mut [u32; 16]) {
    for (x, y, z, turn) in [(A, B, D, 16), (C, D, B, 12), (A, B, D, 8), (C, D, B, 7)] {
        state[x] = state[x].wrapping_add(state[y]);
        state[z] = (state[z] ^ state[x]).rotate_left(turn);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_vector_of_rfc_8439_section_2_3_2() {
        let mut key = [0; 8];
        for (at, word) in key.iter_mut().enumerate() {
            let b = at as u32 * 4;
            *word = b | (b + 1) << 8 | (b + 2) << 16 | (b + 3) << 24;
        }
        let out = block_with_nonce(&key, 1, [0x0900_0000, 0x4a00_0000, 0]);
        assert_eq!(out[..4], [0xe4e7_f110, 0x1559_3bd1, 0x1fdd_0f50, 0xc471_20a3]);
        assert_eq!(out[15], 0x4e3c_50a2);
    }
}
