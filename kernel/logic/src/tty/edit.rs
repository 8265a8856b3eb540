//! Erasing in the line being edited, and what the screen shows of it.

use alloc::vec::Vec;

use super::output::Column;
use super::termios::{ECHO, ECHOCTL, ECHOE, ECHOK, ECHOKE, ECHOPRT, IUTF8, Termios};

/// Takes one column off the screen.
const RUB_OUT: &[u8; 3] = b"\x08 \x08";
/// Columns taken off with one piece of output: a line of tabs has eight times as many as bytes.
const PER_PIECE: usize = 64;
/// [`RUB_OUT`] that often.
const RUBBED_OUT: [u8; 3 * PER_PIECE] = {
    let mut all = [0; 3 * PER_PIECE];
    let mut at = 0;
    while at < all.len() {
        all[at] = RUB_OUT[at % 3];
        at += 1;
    }
    all
};

/// What an erasing key takes away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Erase {
    Character,
    Word,
    Line,
}

/// The line being edited, and the screen column its echo has reached.
#[derive(Debug)]
pub(super) struct EditedLine {
    /// The settings in force.
    pub(super) termios: Termios,
    /// The bytes typed so far, translated and not yet readable.
    pub(super) bytes: Vec<u8>,
    /// The screen column at which the line began.
    pub(super) start: usize,
    /// The screen column after the last byte written.
    pub(super) column: Column,
}

impl EditedLine {
    /// An empty line at column 0.
    pub(super) const fn new(termios: Termios) -> Self {
        Self { termios, bytes: Vec::new(), start: 0, column: Column(0) }
    }

    /// Takes characters off the end of the line and off the screen.
    pub(super) fn erase(&mut self, what: Erase, key: u8, screen: &mut dyn FnMut(&[u8])) {
        if self.bytes.is_empty() {
            return;
        }
        let keep = match what {
            Erase::Character => self.previous_character(),
            Erase::Word => self.previous_word(),
            Erase::Line => 0,
        };
        let visible = match what {
            Erase::Line => self.termios.local(ECHO | ECHOK | ECHOKE | ECHOE),
            _ => self.termios.local(ECHO | ECHOE),
        };
        if visible && self.termios.lflag & ECHOPRT == 0 {
            let columns = self.columns(self.bytes.len()) - self.columns(keep);
            self.bytes.truncate(keep);
            self.column.0 = self.column.0.saturating_sub(columns);
            let mut left = columns;
            while left > 0 {
                let some = left.min(PER_PIECE);
                screen(&RUBBED_OUT[..some * RUB_OUT.len()]);
                left -= some;
            }
            return;
        }
        self.bytes.truncate(keep);
        self.echo(key, screen);
        if what == Erase::Line && self.termios.local(ECHOK) {
            self.put(b"\n", screen);
        }
    }

    /// Prints the line again on a fresh one.
    pub(super) fn reprint(&mut self, key: u8, screen: &mut dyn FnMut(&[u8])) {
        self.echo(key, screen);
        self.put(b"\n", screen);
        self.start = 0;
        for at in 0..self.bytes.len() {
            let byte = self.bytes[at];
            self.echo(byte, screen);
        }
    }

    /// Echoes a typed byte by the local modes.
    pub(super) fn echo(&mut self, byte: u8, screen: &mut dyn FnMut(&[u8])) {
        if !self.termios.local(ECHO) {
            return;
        }
        if self.termios.local(ECHOCTL) && is_control(byte) && byte != b'\t' && byte != b'\n' {
            self.column.0 += 2;
            screen(&[b'^', byte ^ 0x40]);
        } else {
            self.put(&[byte], screen);
        }
    }

    /// Sends bytes through the output modes.
    pub(super) fn put(&mut self, bytes: &[u8], screen: &mut dyn FnMut(&[u8])) {
        self.column.write(&self.termios, bytes, screen);
    }

    /// The screen column behind the first `length` bytes of the line.
    fn columns(&self, length: usize) -> usize {
        self.bytes[..length].iter().fold(self.start, |column, &byte| match byte {
            b'\t' => (column / 8 + 1) * 8,
            _ if is_control(byte) => column + if self.termios.local(ECHOCTL) { 2 } else { 0 },
            _ if self.termios.iflag & IUTF8 != 0 && byte & 0xc0 == 0x80 => column,
            _ => column + 1,
        })
    }

    fn previous_character(&self) -> usize {
        let mut keep = self.bytes.len() - 1;
        while self.termios.iflag & IUTF8 != 0 && keep > 0 && self.bytes[keep] & 0xc0 == 0x80 {
            keep -= 1;
        }
        keep
    }

    fn previous_word(&self) -> usize {
        let word_byte = |&byte: &u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80;
        let end = self.bytes.iter().rposition(word_byte).map_or(0, |at| at + 1);
        self.bytes[..end].iter().rposition(|byte| !word_byte(byte)).map_or(0, |at| at + 1)
    }
}

pub(super) fn is_control(byte: u8) -> bool {
    byte < b' ' || byte == 0x7f
}
