//! Finds a rare text in a stream of lines: one search over all that has been read, instead of one per line.

use std::io::Read;

use memchr::memmem::Finder;

use super::lines::Lines;

/// How many bytes behind a line are searched with it, at least and at most: a stream whose lines seldom ask is not
/// searched whole, one that always asks is searched in few calls.
const WINDOWS: (usize, usize) = (128, 8192);
/// A search of so many bytes costs about as much as one more call.
const CALL: usize = 512;

/// A text, and how far the stream is known to be free of it.
#[derive(Debug)]
pub(super) struct Scout {
    text: Finder<'static>,
    free_until: u64,
    window: usize,
    /// Questions that the last search answered beside the one it was made for.
    answered: usize,
}

impl Scout {
    /// Looks for `text`, which has no line end in it.
    pub(super) fn new(text: &[u8]) -> Self {
        Self { text: Finder::new(text).into_owned(), free_until: 0, window: WINDOWS.0, answered: 0 }
    }

    /// Whether the current line may hold the text; never `false` when it does.
    #[inline(always)]
    pub(super) fn may_stand_in<R: Read>(&mut self, lines: &Lines<R>) -> bool {
        let line = lines.line();
        let end = line.offset + line.bytes.len() as u64;
        if end <= self.free_until {
            self.answered += 1;
            return false;
        }
        self.resize();
        let ahead = lines.ahead();
        self.look(line.offset, ahead.get(..line.bytes.len() + self.window).unwrap_or(ahead));
        end > self.free_until
    }

    /// Doubles the window if the last one answered enough questions to be worth its search, halves it otherwise.
    fn resize(&mut self) {
        let worth = (self.window / CALL).max(1);
        let window = if self.answered >= worth { self.window * 2 } else { self.window / 2 };
        self.window = window.clamp(WINDOWS.0, WINDOWS.1);
        self.answered = 0;
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
        let short = [&b"mark\n"[..], &[b'\n'; 5 * WINDOWS.1]].concat();
        let long = [b"one\n", &[b'x'; 2 * WINDOWS.1 + 1][..], b"mark\n", &short, b"mark\nmark"].concat();
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

    #[test]
    fn the_window_is_wide_where_every_line_asks_and_narrow_where_few_do() {
        let log = b"a line of text, as a console has them\n".repeat(3000);
        for (step, wide) in [(1, true), (200, false)] {
            let mut lines = Lines::new(&log[..]);
            let mut scout = Scout::new(b"mark");
            let mut number = 0;
            while lines.advance().expect("a slice does not fail") {
                number += 1;
                if number % step == 0 {
                    scout.may_stand_in(&lines);
                }
            }
            assert_eq!(scout.window, if wide { WINDOWS.1 } else { WINDOWS.0 }, "every {step}th line asks");
        }
    }
}
