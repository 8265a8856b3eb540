//! Random bytes: a ChaCha20 stream keyed from the processor's generator and the clock.
//!
//! After every request the key is replaced by the stream's own next output, so that a captured state does not reveal what
//! was handed out before it.

use machine::sync::SpinLock;

struct Generator {
    key: [u32; 8],
    seeded: bool,
}

static GENERATOR: SpinLock<Generator> = SpinLock::new(Generator { key: [0; 8], seeded: false });

/// Fills `out` with random bytes.
pub fn fill(out: &mut [u8]) {
    let mut generator = GENERATOR.lock();
    if !generator.seeded {
        seed(&mut generator);
    }
    let mut counter = 0;
    let first = kernel_logic::chacha::block(&generator.key, counter);
    for chunk in out.chunks_mut(64) {
        counter += 1;
        let block = kernel_logic::chacha::block(&generator.key, counter);
        for (at, byte) in chunk.iter_mut().enumerate() {
            *byte = block[at / 4].to_le_bytes()[at % 4];
        }
    }
    generator.key.copy_from_slice(&first[..8]);
    generator.key[0] ^= machine::time::cycles() as u32;
}

/// Mixes bytes a program wrote to `/dev/urandom` into the key.
pub fn mix(bytes: &[u8]) {
    let mut generator = GENERATOR.lock();
    for (at, byte) in bytes.iter().enumerate() {
        generator.key[at / 4 % 8] ^= u32::from(*byte) << (at % 4 * 8);
    }
    let block = kernel_logic::chacha::block(&generator.key, u32::MAX);
    generator.key.copy_from_slice(&block[..8]);
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
