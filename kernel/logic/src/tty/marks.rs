//! Keeps a program's output on the console from reading like the kernel's own lines.
//!
//! The console is shared: event lines, armoured dumps and panic reports go over the wire that programs write to, and an
//! importer classifies a line by its beginning. In output that passes through [`Marks`], each of [`MARKS`] gets a
//! backslash before its last byte, so a line with a whole mark comes from the kernel or a privileged program. Other
//! output is unchanged.

/// What kwab takes for the kernel's: the beginning of an event line, of an armoured line and a parity line, of the
/// lines of a panic, and of the line about a process that was killed because memory ran out.
pub const MARKS: [&[u8]; 8] = [
    b"DBG {",
    b"KW1:",
    b"KP1:",
    b"[PANIC",
    b"panicked at ",
    b"Kernel panic - not syncing",
    b"register dump:",
    b"Out of memory: killed",
];

/// Bytes of the longest mark but its last.
const REACH: usize = 25;

/// The end of what passed, for marks that are written in pieces.
#[derive(Debug)]
pub struct Marks {
    tail: [u8; REACH],
    len: usize,
}

impl Default for Marks {
    fn default() -> Self {
        Self::new()
    }
}

impl Marks {
    /// Nothing passed yet.
    pub const fn new() -> Self {
        Self { tail: [0; REACH], len: 0 }
    }

    /// Hands `bytes` on to `emit`, whole marks broken.
    pub fn pass(&mut self, bytes: &[u8], emit: &mut dyn FnMut(&[u8])) {
        let mut from = 0;
        for (at, &byte) in bytes.iter().enumerate() {
            if self.completes(byte) {
                emit(&bytes[from..at]);
                emit(b"\\");
                self.note(b'\\');
                from = at;
            }
            self.note(byte);
        }
        emit(&bytes[from..]);
    }

    fn completes(&self, byte: u8) -> bool {
        let passed = &self.tail[..self.len];
        MARKS.iter().any(|mark| mark.split_last().is_some_and(|(last, head)| *last == byte && passed.ends_with(head)))
    }

    fn note(&mut self, byte: u8) {
        if self.len == REACH {
            self.tail.copy_within(1.., 0);
            self.len -= 1;
        }
        self.tail[self.len] = byte;
        self.len += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::string::String;
    use std::vec::Vec;

    fn passed(pieces: &[&[u8]]) -> String {
        let (mut marks, mut out) = (Marks::new(), Vec::new());
        for piece in pieces {
            marks.pass(piece, &mut |bytes| out.extend_from_slice(bytes));
        }
        String::from_utf8_lossy(&out).into_owned()
    }

    #[test]
    fn a_forged_event_or_armoured_line_does_not_begin_like_one() {
        assert_eq!(passed(&[b"DBG {\"type\":\"panic\"}\n"]), "DBG \\{\"type\":\"panic\"}\n");
        assert_eq!(passed(&[b"xKW1:0011\nKW", b"1", b":"]), "xKW1\\:0011\nKW1\\:");
        assert_eq!(passed(&[b"KP1:0011"]), "KP1\\:0011");
        assert_eq!(
            passed(&[b"[PAN", b"IC] CPU 0\n", b"Kernel panic - not syncing: no\n"]),
            "[PANI\\C] CPU 0\nKernel panic - not syncin\\g: no\n"
        );
        assert_eq!(passed(&[b"Out of memory: killed process 2 (sh)"]), "Out of memory: kille\\d process 2 (sh)");
        assert_eq!(passed(&[b"DDBG {"]), "DDBG \\{");
    }

    #[test]
    fn ordinary_output_passes_as_it_is() {
        let text = "DBG is a word, { a brace, KW1 a name; panicked: no [PANI]\n";
        assert_eq!(passed(&[text.as_bytes()]), text);
    }

    proptest! {
        #[test]
        fn no_whole_mark_passes_however_it_is_cut(
            words in proptest::collection::vec(0_usize..MARKS.len() + 3, 0..20),
            cuts in proptest::collection::vec(1_usize..9, 1..40),
        ) {
            let extra: [&[u8]; 3] = [b"D", b"\n", b"KW"];
            let word = |&at: &usize| MARKS.iter().chain(&extra).nth(at).unwrap().to_vec();
            let text: Vec<u8> = words.iter().flat_map(word).collect();
            let (mut rest, mut pieces) = (&text[..], Vec::new());
            for cut in cuts.iter().cycle() {
                if rest.is_empty() {
                    break;
                }
                let (piece, more) = rest.split_at((*cut).min(rest.len()));
                pieces.push(piece);
                rest = more;
            }
            let out = passed(&pieces);
            for mark in MARKS {
                prop_assert!(!out.as_bytes().windows(mark.len()).any(|window| window == mark));
            }
            prop_assert_eq!(out.replace('\\', ""), String::from_utf8_lossy(&text));
        }
    }
}
