//! The Reed–Solomon code of parity lines: [`CHECKS`] check bytes for a word of at most [`MOST_DATA`] bytes.
//!
//! The field is GF(2^8) modulo x^8 + x^4 + x^3 + x^2 + 1, the generator polynomial has the roots 2^0 to 2^47, the first
//! byte of a word is its highest coefficient. An encoder takes a byte at a time into 48 bytes of state, so that a dying
//! kernel keeps no copy of what it prints: six words are shifted and XORed with one row of a table per byte. A decoder
//! mends every word in which twice the wrong bytes and the missing ones together are at most 48.
//!
//! The crates with this code encode whole words only, those without `std` panic on words beyond their power (checked
//! builds of `reed-solomon` 0.2.1), and the others mend missing bytes but not wrong ones.

/// Check bytes of a word.
pub const CHECKS: usize = 48;
/// Most bytes of a word beside its check bytes.
pub const MOST_DATA: usize = 192;
/// Most bytes of a word.
pub const MOST_BYTES: usize = MOST_DATA + CHECKS;

/// Eight check bytes in one word of the machine, the highest coefficient in its upper byte.
const WORDS: usize = CHECKS / 8;

/// The check bytes of a word that grows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Checks([u64; WORDS]);

impl Checks {
    /// Those of no byte.
    pub const NONE: Self = Self([0; WORDS]);

    /// Appends a byte to the word.
    pub fn push(&mut self, byte: u8) {
        let Self([a, b, c, d, e, f]) = self;
        let [first, ..] = a.to_be_bytes();
        let Some([ga, gb, gc, gd, ge, gf]) = FEEDBACK.get(usize::from(byte ^ first)) else { return };
        *a = (*a << 8 | *b >> 56) ^ ga;
        *b = (*b << 8 | *c >> 56) ^ gb;
        *c = (*c << 8 | *d >> 56) ^ gc;
        *d = (*d << 8 | *e >> 56) ^ gd;
        *e = (*e << 8 | *f >> 56) ^ ge;
        *f = (*f << 8) ^ gf;
    }

    /// Check byte `row`, from the highest coefficient on; 0 beyond the last.
    #[must_use]
    pub fn get(&self, row: usize) -> u8 {
        let word = self.0.get(row / 8).copied().unwrap_or(0);
        word.to_be_bytes().get(row % 8).copied().unwrap_or(0)
    }
}

/// Mends `word`, whose last [`CHECKS`] bytes are its check bytes; `missing` has the indices of bytes that are unknown,
/// each once. Returns how many bytes were changed; `None` when more is wrong than can be mended, with `word` as it was.
///
/// A word with more wrong bytes than the code can mend may come out as another one of the code: whether it is right has
/// to be checked by other means, as a section is by its CRC.
#[must_use]
pub fn mend(word: &mut [u8], missing: &[u8]) -> Option<usize> {
    if word.len() > MOST_BYTES || word.len() <= CHECKS || missing.len() > CHECKS {
        return None;
    }
    let syndromes = syndromes(word);
    if syndromes.iter().all(|&value| value == 0) {
        return Some(0);
    }
    let locator = locator(&syndromes, missing, word.len())?;
    let evaluator = evaluator(&syndromes, &locator);
    let degree = locator.iter().rposition(|&value| value != 0)?;
    let mut mended = [0; MOST_BYTES];
    let mended = mended.get_mut(..word.len())?;
    mended.copy_from_slice(word);
    let (mut roots, mut changed) = (0usize, 0usize);
    for (at, byte) in mended.iter_mut().enumerate() {
        let place = place(at, word.len());
        let inverse = power(255usize.wrapping_sub(place));
        if value_at(&locator, inverse) != 0 {
            continue;
        }
        roots = roots.wrapping_add(1);
        let slope = locator.chunks(2).map(|pair| pair.get(1).copied().unwrap_or(0));
        let slope = horner(slope.rev(), times(inverse, inverse));
        let error = times(times(power(place), value_at(&evaluator, inverse)), reciprocal(slope)?);
        changed = changed.wrapping_add(usize::from(error != 0));
        *byte ^= error;
    }
    if roots != degree || self::syndromes(mended).iter().any(|&value| value != 0) {
        return None;
    }
    word.copy_from_slice(mended);
    Some(changed)
}

/// The values of the word at the roots of the generator.
fn syndromes(word: &[u8]) -> [u8; CHECKS] {
    core::array::from_fn(|root| horner(word.iter().copied(), power(root)))
}

/// The polynomial whose roots are the inverses of the wrong and missing places, lowest coefficient first (Berlekamp and
/// Massey, begun with the places that are known).
fn locator(syndromes: &[u8; CHECKS], missing: &[u8], len: usize) -> Option<[u8; CHECKS + 1]> {
    let mut locator = [0; CHECKS + 1];
    *locator.first_mut()? = 1;
    for &at in missing {
        let place = power(place(usize::from(at), len));
        let shifted = times_x(&locator);
        add_scaled(&mut locator, &shifted, place);
    }
    let known = missing.len();
    let (mut before, mut length) = (locator, known);
    for step in known..CHECKS {
        let window = syndromes.get(..=step)?.iter().rev();
        let gap = locator.iter().zip(window).fold(0, |sum, (&a, &b)| sum ^ times(a, b));
        before = times_x(&before);
        if gap == 0 {
            continue;
        }
        let old = locator;
        add_scaled(&mut locator, &before, gap);
        if length.wrapping_mul(2) <= step.wrapping_add(known) {
            length = step.wrapping_add(known).wrapping_add(1).wrapping_sub(length);
            before = old.map(|value| times(value, reciprocal(gap).unwrap_or(0)));
        }
    }
    // Twice the wrong bytes and the missing ones.
    (length.wrapping_mul(2).wrapping_sub(known) <= CHECKS).then_some(locator)
}

/// The product of syndromes and locator, up to the degree that is known.
fn evaluator(syndromes: &[u8; CHECKS], locator: &[u8; CHECKS + 1]) -> [u8; CHECKS] {
    core::array::from_fn(|degree| {
        let window = syndromes.get(..=degree).unwrap_or_default().iter().rev();
        locator.iter().zip(window).fold(0, |sum, (&a, &b)| sum ^ times(a, b))
    })
}

/// The exponent of the byte at `at` in a word of `len` bytes.
const fn place(at: usize, len: usize) -> usize {
    len.wrapping_sub(1).wrapping_sub(at)
}

fn times_x(polynomial: &[u8; CHECKS + 1]) -> [u8; CHECKS + 1] {
    let mut shifted = [0; CHECKS + 1];
    for (to, &from) in shifted.iter_mut().skip(1).zip(polynomial) {
        *to = from;
    }
    shifted
}

fn add_scaled(to: &mut [u8; CHECKS + 1], from: &[u8; CHECKS + 1], factor: u8) {
    for (to, &from) in to.iter_mut().zip(from) {
        *to ^= times(from, factor);
    }
}

/// The value at `x` of a polynomial with its lowest coefficient first.
fn value_at(polynomial: &[u8], x: u8) -> u8 {
    horner(polynomial.iter().rev().copied(), x)
}

/// The value at `x` of a polynomial whose coefficients come highest first.
fn horner(coefficients: impl Iterator<Item = u8>, x: u8) -> u8 {
    coefficients.fold(0, |value, coefficient| times(value, x) ^ coefficient)
}

fn times(a: u8, b: u8) -> u8 {
    if a == 0 || b == 0 { 0 } else { power(logarithm(a).wrapping_add(logarithm(b))) }
}

/// `None` for 0.
fn reciprocal(a: u8) -> Option<u8> {
    (a != 0).then(|| power(255usize.wrapping_sub(logarithm(a))))
}

fn logarithm(a: u8) -> usize {
    FIELD.1.get(usize::from(a)).map_or(0, |&exponent| usize::from(exponent))
}

/// 2 to the power of `exponent`, which is at most 509.
fn power(exponent: usize) -> u8 {
    FIELD.0.get(exponent).copied().unwrap_or(0)
}

/// Powers of 2, twice over, and their logarithms; the one of 0 means nothing.
static FIELD: ([u8; 510], [u8; 256]) = field();
/// What the check bytes change by for each byte that leaves them.
static FEEDBACK: [[u64; WORDS]; 256] = feedback();

#[expect(clippy::indexing_slicing, clippy::arithmetic_side_effects, reason = "evaluated when this is compiled")]
const fn field() -> ([u8; 510], [u8; 256]) {
    let (mut powers, mut logarithms) = ([0; 510], [0; 256]);
    let (mut exponent, mut value) = (0usize, 1u16);
    while exponent < 255 {
        powers[exponent] = value as u8;
        powers[exponent + 255] = value as u8;
        logarithms[value as usize] = exponent as u8;
        value <<= 1;
        if value > 255 {
            value ^= 0x11d;
        }
        exponent += 1;
    }
    (powers, logarithms)
}

#[expect(clippy::indexing_slicing, clippy::arithmetic_side_effects, reason = "evaluated when this is compiled")]
const fn feedback() -> [[u64; WORDS]; 256] {
    let (powers, logarithms) = field();
    // Highest coefficient first; the highest of all is 1 and not stored.
    let mut generator = [0u8; CHECKS + 1];
    generator[0] = 1;
    let mut root = 0;
    while root < CHECKS {
        let mut at = root + 1;
        while at > 0 {
            if generator[at - 1] != 0 {
                generator[at] ^= powers[logarithms[generator[at - 1] as usize] as usize + root];
            }
            at -= 1;
        }
        root += 1;
    }
    let mut table = [[0; WORDS]; 256];
    let mut byte = 1;
    while byte < 256 {
        let mut at = 0;
        while at < CHECKS {
            let coefficient = generator[at + 1];
            let product = if coefficient == 0 {
                0
            } else {
                powers[logarithms[coefficient as usize] as usize + logarithms[byte] as usize]
            };
            table[byte][at / 8] |= (product as u64) << (56 - at % 8 * 8);
            at += 1;
        }
        byte += 1;
    }
    table
}
