//! The kernel's random numbers: a ChaCha20 generator, seeded from the processor and from time, that replaces its key after every
//! use, so that what was given out cannot be computed from what is kept (random(4)).

use linux_abi::Errno;
use machine::sync::SpinLock;

use crate::fs::io::{Sink, Source};
use crate::user::UserPtr;

/// State of the generator.
struct Generator {
    key: [u32; 8],
    seeded: bool,
}

static GENERATOR: SpinLock<Generator> = SpinLock::new(Generator { key: [0; 8], seeded: false });

/// Bytes of one block.
const BLOCK: usize = 64;
/// `RNDGETENTCNT`.
const GET_ENTROPY_COUNT: u32 = 0x8004_5200;

/// Fills `out` with random bytes. Any context.
pub fn fill(out: &mut [u8]) {
    let key = fresh_key();
    for (counter, chunk) in out.chunks_mut(BLOCK).enumerate() {
        let block = chacha20(&key, counter as u64);
        chunk.copy_from_slice(&block[..chunk.len()]);
    }
}

/// One random word.
pub fn word() -> u64 {
    let mut bytes = [0; 8];
    fill(&mut bytes);
    u64::from_le_bytes(bytes)
}

/// Fills what a program reads.
pub fn fill_sink(sink: &mut Sink<'_>) -> Result<(), Errno> {
    let key = fresh_key();
    let mut counter = 0;
    while sink.left() > 0 {
        sink.put(&chacha20(&key, counter))?;
        counter += 1;
    }
    Ok(())
}

/// Mixes what a program writes into the key.
pub fn stir_from(source: &mut Source<'_>) -> Result<(), Errno> {
    let mut chunk = [0; 32];
    while source.left() > 0 {
        let count = source.take(&mut chunk)?;
        stir(&chunk[..count]);
    }
    Ok(())
}

/// Requests of `/dev/random`.
pub fn ioctl(request: u32, argument: u64) -> Result<usize, Errno> {
    match request {
        GET_ENTROPY_COUNT => UserPtr::<i32>::new(argument).write(256).map(|()| 0),
        _ => Err(Errno::ENOTTY),
    }
}

/// Mixes bytes into the key.
fn stir(bytes: &[u8]) {
    let mut generator = GENERATOR.lock_irq();
    for (at, &byte) in bytes.iter().enumerate() {
        generator.key[at / 4 % 8] ^= u32::from(byte) << (at % 4 * 8);
    }
    let block = chacha20(&generator.key, u64::MAX);
    generator.key = first_words(&block);
}

/// A key for one request; the generator goes on with another.
fn fresh_key() -> [u32; 8] {
    let mut generator = GENERATOR.lock_irq();
    if !generator.seeded {
        for word in 0..4 {
            let seed = machine::random::hardware().unwrap_or(0) ^ machine::time::cycles().rotate_left(word * 16);
            generator.key[word as usize * 2] ^= seed as u32;
            generator.key[word as usize * 2 + 1] ^= (seed >> 32) as u32;
        }
        generator.seeded = true;
    }
    generator.key[7] ^= machine::time::cycles() as u32;
    let block = chacha20(&generator.key, u64::MAX);
    let words = all_words(&block);
    generator.key.copy_from_slice(&words[..8]);
    let mut key = [0; 8];
    key.copy_from_slice(&words[8..]);
    key
}

fn all_words(block: &[u8; BLOCK]) -> [u32; 16] {
    let mut words = [0; 16];
    for (word, bytes) in words.iter_mut().zip(block.chunks_exact(4)) {
        *word = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    }
    words
}

fn first_words(block: &[u8; BLOCK]) -> [u32; 8] {
    let mut key = [0; 8];
    key.copy_from_slice(&all_words(block)[..8]);
    key
}

/// One block of the ChaCha20 stream with a zero nonce (RFC 8439, 2.3; 64-bit counter as in the original cipher).
fn chacha20(key: &[u32; 8], counter: u64) -> [u8; BLOCK] {
    let mut start = [0; 16];
    start[..4].copy_from_slice(&[0x6170_7865, 0x3320_646e, 0x7962_2d32, 0x6b20_6574]);
    start[4..12].copy_from_slice(key);
    start[12] = counter as u32;
    start[13] = (counter >> 32) as u32;
    let mut state = start;
    for _ in 0..10 {
        for [a, b, c, d] in [[0, 4, 8, 12], [1, 5, 9, 13], [2, 6, 10, 14], [3, 7, 11, 15]] {
            quarter_round(&mut state, a, b, c, d);
        }
        for [a, b, c, d] in [[0, 5, 10, 15], [1, 6, 11, 12], [2, 7, 8, 13], [3, 4, 9, 14]] {
            quarter_round(&mut state, a, b, c, d);
        }
    }
    let mut block = [0; BLOCK];
    for ((bytes, mixed), first) in block.chunks_exact_mut(4).zip(state).zip(start) {
        bytes.copy_from_slice(&mixed.wrapping_add(first).to_le_bytes());
    }
    block
}

fn quarter_round(state: &mut [u32; 16], a: usize, b: usize, c: usize, d: usize) {
    for (turn_d, turn_b) in [(16, 12), (8, 7)] {
        state[a] = state[a].wrapping_add(state[b]);
        state[d] = (state[d] ^ state[a]).rotate_left(turn_d);
        state[c] = state[c].wrapping_add(state[d]);
        state[b] = (state[b] ^ state[c]).rotate_left(turn_b);
    }
}
