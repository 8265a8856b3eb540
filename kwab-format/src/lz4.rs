//! Packs and unpacks LZ4 blocks without allocating: the caller gives the table and both buffers.
//!
//! The block form is LZ4's: sequences of a token (literal length in the upper four bits, match length minus 4 in the
//! lower), more length bytes where four bits do not do, literals, and a two-byte little-endian distance. The last five
//! bytes are always literals, and no match begins in the last twelve. Greedy matching through a table of last positions
//! is enough for pages, which are mostly zeros and repeated words.

use crate::wire::copy;

/// Last position of each hash; 16 KiB, best a static.
pub type Table = [u32; TABLE_LEN];

/// Entries of a [`Table`].
pub const TABLE_LEN: usize = 1 << HASH_BITS;

const HASH_BITS: u32 = 12;
const MIN_MATCH: usize = 4;
const LAST_LITERALS: usize = 5;
const MATCH_LIMIT: usize = 12;
const MAX_DISTANCE: usize = 0xFFFF;

/// Packs `src` into `dst` and returns the packed length, or `None` when `dst` is too short.
pub fn compress(src: &[u8], dst: &mut [u8], table: &mut Table) -> Option<usize> {
    table.fill(u32::MAX);
    let mut out = Out { dst, len: 0 };
    let match_end = src.len().saturating_sub(LAST_LITERALS);
    let search_end = src.len().saturating_sub(MATCH_LIMIT);
    let mut anchor = 0usize;
    let mut at = 0usize;
    // The longer nothing matches, the longer the strides: incompressible data passes quickly.
    let mut misses = 0usize;
    while at < search_end {
        let word = read4(src, at)?;
        let slot = table.get_mut(hash(word))?;
        let candidate = usize::try_from(*slot).ok()?;
        *slot = u32::try_from(at).ok()?;
        let near = candidate < at && at.wrapping_sub(candidate) <= MAX_DISTANCE;
        if !near || read4(src, candidate)? != word {
            misses = misses.wrapping_add(1);
            at = at.wrapping_add(1).wrapping_add(misses >> 6);
            continue;
        }
        misses = 0;
        let tail = src.get(at.wrapping_add(MIN_MATCH)..match_end)?;
        let more = common_prefix(tail, src.get(candidate.wrapping_add(MIN_MATCH)..)?);
        out.sequence(src.get(anchor..at)?, at.wrapping_sub(candidate), more)?;
        at = at.wrapping_add(MIN_MATCH).wrapping_add(more);
        anchor = at;
    }
    out.literals(src.get(anchor..)?, 0)?;
    Some(out.len)
}

/// Unpacks `src` into `dst` and returns the unpacked length; `None` when `src` is malformed or `dst` too short.
pub fn decompress(src: &[u8], dst: &mut [u8]) -> Option<usize> {
    let mut rest = src;
    let mut len = 0usize;
    loop {
        let (&token, after) = rest.split_first()?;
        let (literals, after) = read_length(usize::from(token >> 4), after)?;
        let (bytes, after) = after.split_at_checked(literals)?;
        let end = len.checked_add(literals)?;
        copy(dst.get_mut(len..end)?, bytes);
        len = end;
        let Some((distance, after)) = after.split_first_chunk::<2>() else {
            // The last sequence has no match; a single byte of one is damage.
            return after.is_empty().then_some(len);
        };
        let (more, after) = read_length(usize::from(token & 15), after)?;
        let distance = usize::from(u16::from_le_bytes(*distance));
        len = copy_match(dst, len, distance, more.checked_add(MIN_MATCH)?)?;
        rest = after;
    }
}

/// Copies `count` bytes from `distance` back, which may overlap what is being written.
fn copy_match(dst: &mut [u8], len: usize, distance: usize, count: usize) -> Option<usize> {
    let end = len.checked_add(count)?;
    let start = len.checked_sub(distance)?;
    if distance == 0 || end > dst.len() {
        return None;
    }
    let mut done = len;
    while done < end {
        // Everything from `start` on repeats with the period `distance`, so each round may double what it copies.
        let chunk = done.wrapping_sub(start).min(end.wrapping_sub(done));
        dst.copy_within(start..start.wrapping_add(chunk), done);
        done = done.wrapping_add(chunk);
    }
    Some(end)
}

fn read_length(nibble: usize, mut rest: &[u8]) -> Option<(usize, &[u8])> {
    let mut length = nibble;
    if nibble == 15 {
        loop {
            let (&more, after) = rest.split_first()?;
            rest = after;
            length = length.checked_add(usize::from(more))?;
            if more != u8::MAX {
                break;
            }
        }
    }
    Some((length, rest))
}

fn read4(src: &[u8], at: usize) -> Option<u32> {
    src.get(at..)?.first_chunk::<4>().map(|word| u32::from_le_bytes(*word))
}

fn hash(word: u32) -> usize {
    (word.wrapping_mul(0x9E37_79B1) >> 20) as usize
}

fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    let (wide_a, _) = a.as_chunks::<8>();
    let (wide_b, _) = b.as_chunks::<8>();
    let wide = wide_a.iter().zip(wide_b).take_while(|(x, y)| x == y).count().saturating_mul(8);
    let tail = a.iter().skip(wide).zip(b.iter().skip(wide)).take_while(|(x, y)| x == y).count();
    wide.saturating_add(tail)
}

struct Out<'b> {
    dst: &'b mut [u8],
    len: usize,
}

impl Out<'_> {
    fn sequence(&mut self, literals: &[u8], distance: usize, more: usize) -> Option<()> {
        self.literals(literals, more.min(15))?;
        self.bytes(&u16::try_from(distance).ok()?.to_le_bytes())?;
        self.length(more)
    }

    fn literals(&mut self, literals: &[u8], match_nibble: usize) -> Option<()> {
        let token = literals.len().min(15) << 4 | match_nibble;
        self.bytes(&[u8::try_from(token).ok()?])?;
        self.length(literals.len())?;
        self.bytes(literals)
    }

    /// The bytes of a length that does not fit its four bits.
    fn length(&mut self, length: usize) -> Option<()> {
        let Some(mut rest) = length.checked_sub(15) else { return Some(()) };
        while rest >= 255 {
            self.bytes(&[255])?;
            rest = rest.wrapping_sub(255);
        }
        self.bytes(&[u8::try_from(rest).ok()?])
    }

    fn bytes(&mut self, bytes: &[u8]) -> Option<()> {
        let end = self.len.checked_add(bytes.len())?;
        copy(self.dst.get_mut(self.len..end)?, bytes);
        self.len = end;
        Some(())
    }
}
