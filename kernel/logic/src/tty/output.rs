//! Turns written bytes into what the screen gets, and knows the cursor's column.

use super::termios::{OCRNL, OLCUC, ONLCR, ONLRET, ONOCR, OPOST, TABDLY, Termios, XTABS};

/// Where the cursor stands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Column(pub usize);

impl Column {
    /// Sends `bytes` to `screen` by the output modes of `termios`.
    pub fn write(&mut self, termios: &Termios, bytes: &[u8], screen: &mut dyn FnMut(&[u8])) {
        if termios.oflag & OPOST == 0 {
            screen(bytes);
            return;
        }
        let mut plain = 0;
        for (at, &byte) in bytes.iter().enumerate() {
            if (b' '..0x7f).contains(&byte) && termios.oflag & OLCUC == 0 {
                self.0 += 1;
                continue;
            }
            if plain < at {
                screen(&bytes[plain..at]);
            }
            plain = at + 1;
            self.special(termios.oflag, byte, screen);
        }
        if plain < bytes.len() {
            screen(&bytes[plain..]);
        }
    }

    fn special(&mut self, oflag: u32, byte: u8, screen: &mut dyn FnMut(&[u8])) {
        match byte {
            b'\n' if oflag & ONLCR != 0 => {
                self.0 = 0;
                screen(b"\r\n");
            }
            b'\n' => {
                if oflag & ONLRET != 0 {
                    self.0 = 0;
                }
                screen(b"\n");
            }
            b'\r' if oflag & ONOCR != 0 && self.0 == 0 => {}
            b'\r' if oflag & OCRNL != 0 => {
                if oflag & ONLRET != 0 {
                    self.0 = 0;
                }
                screen(b"\n");
            }
            b'\r' => {
                self.0 = 0;
                screen(b"\r");
            }
            b'\t' => {
                let spaces = 8 - self.0 % 8;
                self.0 += spaces;
                screen(if oflag & TABDLY == XTABS { &b"        "[..spaces] } else { b"\t" });
            }
            8 => {
                self.0 = self.0.saturating_sub(1);
                screen(b"\x08");
            }
            _ => {
                // A UTF-8 continuation byte takes no column of its own.
                self.0 += usize::from(byte >= b' ' && byte != 0x7f && byte & 0xc0 != 0x80);
                let byte = if oflag & OLCUC != 0 { byte.to_ascii_uppercase() } else { byte };
                screen(&[byte]);
            }
        }
    }
}
