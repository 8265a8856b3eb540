//! Finds a rare text in a stream of lines: one search over all that has been read, instead of one per line.

use std::io::Read;

use memchr::memmem::Finder;

use super::lines::Lines;

/// How many bytes behind a line are searched with it: a stream whose lines seldom ask is not searched whole.
const WINDOW: usize = 8192;

/// A text, and how far the stream is known to be free of it.
#[derive(Debug)]
pub(super) struct Scout {
    text: Finder<'static>,
    free_until: u64,
}

impl Scout {
    /// Looks for `text`, which has no line end in it.
    pub(super) fn new(text: &[u8]) -> Self {
        Self { text: Finder::new(text).into_owned(), free_until: 0 }
    }

    /// Whether the current line may hold the text; never `false` when it does.
    #[inline(always)]
    pub(super) fn may_stand_in<R: Read>(&mut self, lines: &Lines<R>) -> bool {
        let line = lines.line();
        let end = line.offset + line.bytes.len() as u64;
        end > self.free_until && {
            let ahead = lines.ahead();
            self.look(line.offset, ahead.get(..line.bytes.len() + WINDOW).unwrap_or(ahead));
            end > self.free_until
        }
    }

    #[cold]
    fn look(&mut self, from: u64, ahead: &[u8]) {
        let tail = self.text.needle().len() - 1;
        let free = self.text.find(ahead).unwrap_or_else(|| ahead.len().saturating_sub(tail));
        self.free_until = from + free as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_hold_the_text_are_found_whatever_the_stream_is_cut_into() {
        /// A stream that gives a few bytes at a time.
        struct Drops<'a>(&'a [u8], usize);
        impl Read for Drops<'_> {
            fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
                let count = self.1.min(self.0.len()).min(into.len());
                into[..count].copy_from_slice(&self.0[..count]);
                self.0 = &self.0[count..];
                Ok(count)
            }
        }
        let log = b"one\nmark\n\ntwo mark\nma\nrk\nmark mark\nend mar";
        let long = [b"one\n", &[b'x'; 2 * WINDOW + 1][..], b"mark\n", &[b'\n'; WINDOW - 1], b"mark"].concat();
        for (log, size) in [1, 2, 3, 7, 100].map(|size| (&log[..], size)).into_iter().chain([(&long[..], 100_000)]) {
            let mut lines = Lines::new(Drops(log, size));
            let mut scout = Scout::new(b"mark");
            while lines.advance().expect("a slice does not fail") {
                let holds = memchr::memmem::find(lines.line().bytes, b"mark").is_some();
                assert!(scout.may_stand_in(&lines) || !holds, "line {}, {size} bytes at once", lines.line().number);
            }
        }
        let mut lines = Lines::new(&log[..]);
        let mut scout = Scout::new(b"mark");
        let mut found = Vec::new();
        while lines.advance().expect("a slice does not fail") {
            found.extend(scout.may_stand_in(&lines).then_some(lines.line().number));
        }
        assert_eq!(found, [2, 4, 7, 8], "the last three bytes may be the front of a text");
    }
}
