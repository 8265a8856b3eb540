//! Makes secrets and searches bytes for them in every form that a dump or a copy of it could have.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// Bytes of a secret in a row that count as found: fewer occur by chance.
const FOUND: usize = 6;

/// A sequence of numbers that is the same in every run (splitmix64).
pub(super) struct Seed(pub(super) u64);

impl Seed {
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Bytes of any value.
    pub(super) fn bytes(&mut self, length: usize) -> Vec<u8> {
        (0..length).map(|_| self.next() as u8).collect()
    }

    /// Letters and digits: what looks like a name.
    pub(super) fn name(&mut self, length: usize) -> Vec<u8> {
        const SIGNS: &[u8] = b"bcdfghjklmnpqrstvwxzBCDFGHJKLMNPQRSTVWXZ23456789";
        (0..length).map(|_| SIGNS[self.next() as usize % SIGNS.len()]).collect()
    }
}

/// Looks for parts of many secrets at once: as they are, backwards (an integer of the other byte order), as UTF-16, in
/// hexadecimal digits, in base64 at any of its places, and all of that at any bit.
pub(super) struct Searched {
    /// Of each length that a form can have, the forms and whose they are.
    forms: BTreeMap<usize, HashMap<Vec<u8>, usize>>,
}

impl Searched {
    pub(super) fn of<'s>(secrets: impl IntoIterator<Item = &'s [u8]>) -> Self {
        let mut forms: BTreeMap<usize, HashMap<Vec<u8>, usize>> = BTreeMap::new();
        for (number, secret) in secrets.into_iter().enumerate() {
            for form in forms_of(secret) {
                forms.entry(form.len()).or_default().insert(form, number);
            }
        }
        Self { forms }
    }

    /// The numbers of the secrets that are in `bytes`.
    pub(super) fn found(&self, bytes: &[u8]) -> BTreeSet<usize> {
        let mut found = BTreeSet::new();
        for bits in 0..8 {
            let shifted: Vec<u8> = match bits {
                0 => bytes.to_vec(),
                _ => bytes.windows(2).map(|pair| pair[0] << bits | pair[1] >> (8 - bits)).collect(),
            };
            for (length, forms) in &self.forms {
                found.extend(shifted.windows(*length).filter_map(|part| forms.get(part).copied()));
            }
        }
        found
    }
}

fn forms_of(secret: &[u8]) -> Vec<Vec<u8>> {
    let mut forms = Vec::new();
    for part in secret.windows(FOUND.min(secret.len())) {
        forms.push(part.to_vec());
        forms.push(part.iter().rev().copied().collect());
        forms.push(part.iter().flat_map(|byte| [*byte, 0]).collect());
        forms.push(part.iter().flat_map(|byte| [0, *byte]).collect());
        let digits: String = part.iter().map(|byte| format!("{byte:02x}")).collect();
        forms.push(digits.to_uppercase().into_bytes());
        forms.push(digits.into_bytes());
    }
    // Three bytes are four signs; of a text in base64 every third place begins such a group.
    forms.extend(secret.windows(9).map(|part| STANDARD.encode(part).into_bytes()));
    forms
}

/// Whether a part of one secret is in `bytes`.
pub(super) fn is_in(secret: &[u8], bytes: &[u8]) -> bool {
    !Searched::of([secret]).found(bytes).is_empty()
}

#[test]
fn a_secret_is_found_in_each_of_its_forms() {
    let secret = b"correct-horse-battery";
    let wide: Vec<u8> = secret.iter().flat_map(|byte| [*byte, 0]).collect();
    let backwards: Vec<u8> = secret.iter().rev().copied().collect();
    let three_bits: Vec<u8> = [&[0][..], secret, &[0]].concat().windows(2).map(|p| p[0] << 5 | p[1] >> 3).collect();
    for front in 0..3 {
        let text = [&b"xxx"[..front], secret].concat();
        assert!(is_in(secret, STANDARD.encode(text).as_bytes()), "{front}");
    }
    for form in [secret.to_vec(), wide, backwards, three_bits, secret[4..10].to_vec()] {
        assert!(is_in(secret, &form), "{form:?}");
    }
    assert!(!is_in(secret, b"corre-ct ho-rse"));
}
