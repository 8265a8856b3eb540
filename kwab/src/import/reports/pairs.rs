//! Tells which texts of a table a line cannot hold, by the pairs of bytes that stand in it: one look at the line
//! instead of one search for each text.

use super::words::FREQUENCY;

/// Pairs of bytes are told apart by so many bits of their hash.
const BITS: usize = 12;

/// The pairs of bytes of a line.
#[derive(Debug)]
pub(super) struct Pairs([u64; (1 << BITS) / 64]);

/// The two rarest pairs of bytes of a text.
#[derive(Debug, Clone, Copy)]
pub(super) struct Marks([usize; 2]);

impl Marks {
    /// The marks of a text; absent when it has fewer than two bytes.
    pub(super) fn of(text: &[u8]) -> Option<Self> {
        let frequency = |pair: &&[u8]| pair.iter().map(|byte| u32::from(FREQUENCY[usize::from(*byte)])).sum::<u32>();
        let mut pairs: Vec<&[u8]> = text.windows(2).collect();
        pairs.sort_by_key(frequency);
        let rarest = pairs.first()?;
        Some(Self([bit(rarest), bit(pairs.get(1).unwrap_or(rarest))]))
    }
}

impl Pairs {
    /// Looks at a line.
    pub(super) fn of(line: &[u8]) -> Self {
        let mut pairs = [0; (1 << BITS) / 64];
        for pair in line.windows(2) {
            let bit = bit(pair);
            pairs[bit / 64] |= 1 << (bit % 64);
        }
        Self(pairs)
    }

    /// Whether the line may hold the text of these marks; never `false` when it does.
    pub(super) fn may_hold(&self, marks: Marks) -> bool {
        marks.0.iter().all(|bit| self.0[bit / 64] >> (bit % 64) & 1 == 1)
    }
}

/// The place of a pair.
#[inline]
fn bit(pair: &[u8]) -> usize {
    (usize::from(pair[0]) << 5 ^ usize::from(pair[1])) & ((1 << BITS) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_a_line_holds_is_never_ruled_out() {
        let line = b"[    2.451876] x86/mm: Checked W+X mappings: passed, no W+X pages found.";
        let pairs = Pairs::of(line);
        for length in 2..20 {
            for text in line.windows(length) {
                assert!(Marks::of(text).is_some_and(|marks| pairs.may_hold(marks)), "{text:?}");
            }
        }
        let absent: [&[u8]; 4] = [b"panicked at", b"PANIC", b"Unhandled", b"{}"];
        let ruled_out = absent.iter().filter(|text| Marks::of(text).is_some_and(|marks| !pairs.may_hold(marks)));
        assert!(ruled_out.count() >= 3);
        assert!(Marks::of(b"x").is_none());
    }
}
