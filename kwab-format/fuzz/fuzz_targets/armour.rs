//! A console of any text: what is taken for a line encodes to just that line again; a sound line is found in any text.
#![no_main]

use kwab_format::DumpId;
use kwab_format::armour::{Found, LINE_BYTES, LINE_LEN, Lines, encode_line};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    check(data);
    let split = data.first().map_or(0, |b| usize::from(*b) % data.len());
    let (before, rest) = data.split_at(split);
    let piece = &rest[..rest.len().min(LINE_BYTES)];
    if piece.is_empty() {
        return;
    }
    let mut out = [0; LINE_LEN + 1];
    let line = encode_line(DumpId(7), split as u32, piece, &mut out);
    let text = [before, line, rest].concat();
    let found = check(&text).iter().any(|(position, bytes)| (*position, &bytes[..]) == (split as u32, piece));
    assert!(found, "a line is lost in {:?}", String::from_utf8_lossy(&text));
    // The same text with one byte of the line changed never yields that line's bytes at another position.
    let mut bent = text.clone();
    let at = before.len() + usize::from(data[data.len() - 1]) % (line.len() - 1);
    bent[at] ^= 1;
    check(&bent);
});

fn check(text: &[u8]) -> Vec<(u32, Vec<u8>)> {
    let mut lines = Vec::new();
    let mut end = 0;
    for found in Lines::new(text) {
        match found {
            Found::Line { chunk, at, len } => {
                assert!(at >= end && at + len <= text.len());
                end = at + len;
                let mut out = [0; LINE_LEN + 1];
                let again = encode_line(DumpId(u64::from(chunk.dump)), chunk.position, chunk.bytes(), &mut out);
                assert_eq!(again.strip_suffix(b"\n"), Some(&text[at..at + len]), "one form for one piece");
                lines.push((chunk.position, chunk.bytes().to_vec()));
            }
            Found::Torn { at } => assert!(at >= end && at < text.len()),
        }
    }
    lines
}
