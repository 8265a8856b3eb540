//! Random bytes: a ChaCha20 stream keyed from the processor's generator and the clock.
//!
//! The key is replaced by the stream's own next output before bytes of that stream are handed out, and bytes are erased
//! when they are, so that a captured state does not reveal what was handed out before it. Short requests share the
//! output of a key; a long one uses up a key of its own.

use kernel_logic::chacha;
use machine::sync::SpinLock;

/// Bytes kept ready: four blocks without the next key.
const READY: usize = 4 * 64 - 32;

struct Generator {
    key: [u32; 8],
    seeded: bool,
    /// Handed out from the end.
    ready: [u8; READY],
    left: usize,
}

static GENERATOR: SpinLock<Generator> =
    SpinLock::new(Generator { key: [0; 8], seeded: false, ready: [0; READY], left: 0 });

/// Fills `out` with random bytes.
pub fn fill(out: &mut [u8]) {
    let mut generator = GENERATOR.lock();
    if !generator.seeded {
        seed(&mut generator);
    }
    if out.len() > READY { stream(&mut generator.key, out) } else { generator.take(out) }
}

impl Generator {
    /// Bytes from those kept ready.
    fn take(&mut self, out: &mut [u8]) {
        if out.len() > self.left {
            stream(&mut self.key, &mut self.ready);
            self.left = READY;
        }
        let bytes = &mut self.ready[self.left - out.len()..self.left];
        out.copy_from_slice(bytes);
        bytes.fill(0);
        self.left -= out.len();
    }
}

/// Bytes of the key's stream behind the first half of a block, which becomes the next key.
fn stream(next: &mut [u32; 8], out: &mut [u8]) {
    let key = *next;
    let first = chacha::block(&key, 0);
    next.copy_from_slice(&first[..8]);
    next[0] ^= machine::time::cycles() as u32;
    let (begin, rest) = out.split_at_mut(out.len().min(32));
    write_words(begin, &first[8..]);
    for (chunk, counter) in rest.chunks_mut(64).zip(1..) {
        write_words(chunk, &chacha::block(&key, counter));
    }
}

fn write_words(out: &mut [u8], words: &[u32]) {
    for (bytes, word) in out.chunks_mut(4).zip(words) {
        bytes.copy_from_slice(&word.to_le_bytes()[..bytes.len()]);
    }
}

/// Mixes bytes a program wrote to `/dev/urandom` into the key.
pub fn mix(bytes: &[u8]) {
    let mut generator = GENERATOR.lock();
    for (at, byte) in bytes.iter().enumerate() {
        generator.key[at / 4 % 8] ^= u32::from(*byte) << (at % 4 * 8);
    }
    let block = chacha::block(&generator.key, u32::MAX);
    generator.key.copy_from_slice(&block[..8]);
    // What was made before knows nothing of these bytes.
    generator.left = 0;
}

fn seed(generator: &mut Generator) {
    for pair in generator.key.chunks_mut(2) {
        let hardware = machine::random::hardware().unwrap_or(0);
        let mixed = hardware ^ machine::time::cycles().rotate_left(17) ^ machine::time::wall_at_boot();
        pair[0] ^= mixed as u32;
        pair[1] ^= (mixed >> 32) as u32;
    }
    generator.seeded = true;
}
