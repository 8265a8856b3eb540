//! Reads what the monitor's `x /Nxg ADDRESS` prints: an address with a colon, then words of 64 bits in hexadecimal.

/// The words, in order, `most` at most; it ends where memory cannot be accessed.
#[must_use]
pub fn parse(text: &str, most: usize) -> Vec<u64> {
    let mut words = Vec::new();
    for line in text.lines() {
        let Some((_, values)) = line.split_once(": ") else { break };
        for value in values.split_ascii_whitespace() {
            let Some(word) = value.strip_prefix("0x").and_then(|digits| u64::from_str_radix(digits, 16).ok()) else {
                return words;
            };
            if words.len() == most {
                return words;
            }
            words.push(word);
        }
    }
    words
}
