//! The numbers that choose a mutation: the same for the same seed.

/// A generator of random numbers (splitmix64).
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// A generator whose sequence is determined by `seed`.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 bits.
    pub const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below `bound`; 0 when there is none.
    pub fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % (bound.max(1) as u64)).unwrap_or_default()
    }

    /// One to `most` of them.
    pub(super) fn bytes(&mut self, most: usize) -> Vec<u8> {
        let count = 1 + self.below(most);
        (0..count).map(|_| self.next().to_le_bytes()[0]).collect()
    }

    /// A number as programs get wrong: small, at a limit, or anything.
    pub(super) fn odd(&mut self) -> u64 {
        match self.below(4) {
            0 => self.next() % 8,
            1 => 1 << self.below(64),
            2 => (1u64 << self.below(64)).wrapping_sub(1 + self.next() % 2),
            _ => self.next(),
        }
    }
}
