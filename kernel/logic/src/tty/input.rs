//! The input side: each typed byte is translated, acted on, edited and echoed; finished lines wait for read(2).

use super::edit::{EditedLine, Erase};
use super::termios::{
    ECHO, ECHONL, ICANON, ICRNL, IEXTEN, IGNCR, IMAXBEL, INLCR, ISIG, ISTRIP, IUCLC, IXANY, IXON, NOFLSH, Termios,
    VEOF, VEOL, VEOL2, VERASE, VINTR, VKILL, VLNEXT, VMIN, VQUIT, VREPRINT, VSTART, VSTOP, VSUSP, VWERASE,
};
use alloc::collections::VecDeque;

/// Most bytes that wait unread, and the longest line (`N_TTY_BUF_SIZE`).
const LIMIT: usize = 4096;

/// What a typed byte asks of the terminal besides becoming input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// No further action.
    None,
    /// There is something to read now.
    Readable,
    /// SIGINT to the foreground process group.
    Interrupt,
    /// SIGQUIT to the foreground process group.
    Quit,
    /// SIGTSTP to the foreground process group.
    Suspend,
}

/// What a read found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taken {
    /// Nothing to return yet.
    Nothing,
    /// This many bytes; 0 is end of file.
    Bytes(usize),
}

/// The state of one terminal's input and its settings.
#[derive(Debug)]
pub struct LineDiscipline {
    line: EditedLine,
    /// Finished input, in the order in which it was typed.
    ready: VecDeque<u8>,
    /// Lengths of the lines at the front of `ready`, each with whether an end-of-file character closed it.
    lines: VecDeque<(usize, bool)>,
    /// Lines that an end-of-file character closed: it takes the room of a byte.
    ends: usize,
    quote_next: bool,
    stopped: bool,
}

impl LineDiscipline {
    /// A terminal with `termios` and nothing typed.
    pub fn new(termios: Termios) -> Self {
        Self {
            line: EditedLine::new(termios),
            ready: VecDeque::new(),
            lines: VecDeque::new(),
            ends: 0,
            quote_next: false,
            stopped: false,
        }
    }

    /// The settings in force.
    pub fn termios(&self) -> &Termios {
        &self.line.termios
    }

    /// Changes the settings. What was typed in the other mode stays readable, as POSIX asks of TCSANOW.
    pub fn set_termios(&mut self, termios: Termios) {
        let (was, is) = (self.line.termios.local(ICANON), termios.local(ICANON));
        self.line.termios = termios;
        if was && !is {
            self.ready.extend(self.line.bytes.drain(..));
            self.lines.clear();
            self.ends = 0;
        } else if !was && is && !self.ready.is_empty() {
            self.lines.push_back((self.ready.len(), false));
        }
        if termios.iflag & IXON == 0 {
            self.stopped = false;
        }
    }

    /// Whether the stop character holds output back.
    pub fn output_stopped(&self) -> bool {
        self.stopped
    }

    /// Stops or restarts output (TCXONC).
    pub fn set_output_stopped(&mut self, stopped: bool) {
        self.stopped = stopped;
    }

    /// Forgets everything typed and not read (TCIFLUSH).
    pub fn flush_input(&mut self) {
        self.line.bytes.clear();
        self.ready.clear();
        self.lines.clear();
        self.ends = 0;
    }

    /// Bytes that may be typed before one is lost because others wait unread. A line that is too long loses its end and
    /// keeps none waiting: there is always room to finish the only one.
    pub fn room(&self) -> usize {
        let free = (LIMIT - 1).saturating_sub(self.used());
        let only_line = self.line.termios.local(ICANON) && self.lines.is_empty();
        if only_line { free.max(1) } else { free }
    }

    /// Bytes of memory that its queues take.
    pub fn held(&self) -> usize {
        let lines = self.lines.capacity() * size_of::<(usize, bool)>();
        self.line.bytes.capacity() + self.ready.capacity() + lines
    }

    fn used(&self) -> usize {
        self.ready.len() + self.line.bytes.len() + self.ends
    }

    /// Sends a program's output through the output modes.
    pub fn write(&mut self, bytes: &[u8], screen: &mut dyn FnMut(&[u8])) {
        self.line.put(bytes, screen);
    }

    /// Bytes a read would return at most (FIONREAD).
    pub fn available(&self) -> usize {
        if self.line.termios.local(ICANON) { self.lines.iter().map(|line| line.0).sum() } else { self.ready.len() }
    }

    /// Whether a read would return at once.
    pub fn readable(&self) -> bool {
        if self.line.termios.local(ICANON) {
            !self.lines.is_empty()
        } else {
            self.ready.len() >= usize::from(self.line.termios.cc[VMIN].max(1))
        }
    }

    /// Takes bytes for a read: at most one line in canonical mode, else what there is.
    pub fn take(&mut self, into: &mut [u8]) -> Taken {
        if !self.line.termios.local(ICANON) {
            let count = self.drain(into, self.ready.len());
            return if count == 0 { Taken::Nothing } else { Taken::Bytes(count) };
        }
        let Some(&(length, by_eof)) = self.lines.front() else { return Taken::Nothing };
        let count = self.drain(into, length);
        self.lines.pop_front();
        if count < length {
            self.lines.push_front((length - count, by_eof));
        } else {
            self.ends -= usize::from(by_eof);
        }
        Taken::Bytes(count)
    }

    fn drain(&mut self, into: &mut [u8], most: usize) -> usize {
        let count = into.len().min(most).min(self.ready.len());
        for (slot, byte) in into.iter_mut().zip(self.ready.drain(..count)) {
            *slot = byte;
        }
        count
    }

    /// Handles one byte from the device; what the screen must show goes to `screen`.
    pub fn input(&mut self, byte: u8, screen: &mut dyn FnMut(&[u8])) -> Action {
        let iflag = self.line.termios.iflag;
        let mut byte = if iflag & ISTRIP != 0 { byte & 0x7f } else { byte };
        if iflag & IUCLC != 0 && self.line.termios.local(IEXTEN) {
            byte.make_ascii_lowercase();
        }
        if core::mem::take(&mut self.quote_next) {
            return self.accept(byte, screen);
        }
        if iflag & IXON != 0 && self.flow_control(byte) {
            return Action::None;
        }
        if let Some(action) = self.signal(byte, screen) {
            return action;
        }
        byte = match byte {
            b'\r' if iflag & IGNCR != 0 => return Action::None,
            b'\r' if iflag & ICRNL != 0 => b'\n',
            b'\n' if iflag & INLCR != 0 => b'\r',
            other => other,
        };
        if self.line.termios.local(ICANON) { self.edit_byte(byte, screen) } else { self.accept(byte, screen) }
    }

    /// Stops or starts output; returns whether the byte was one of the flow characters.
    fn flow_control(&mut self, byte: u8) -> bool {
        if self.line.termios.is(VSTART, byte) {
            self.stopped = false;
            return true;
        }
        if self.line.termios.is(VSTOP, byte) {
            self.stopped = true;
            return true;
        }
        if self.line.termios.iflag & IXANY != 0 {
            self.stopped = false;
        }
        false
    }

    fn signal(&mut self, byte: u8, screen: &mut dyn FnMut(&[u8])) -> Option<Action> {
        if !self.line.termios.local(ISIG) {
            return None;
        }
        let keys = [(VINTR, Action::Interrupt), (VQUIT, Action::Quit), (VSUSP, Action::Suspend)];
        let &(_, action) = keys.iter().find(|(key, _)| self.line.termios.is(*key, byte))?;
        self.stopped = false;
        if !self.line.termios.local(NOFLSH) {
            self.flush_input();
        }
        self.line.echo(byte, screen);
        Some(action)
    }

    fn edit_byte(&mut self, byte: u8, screen: &mut dyn FnMut(&[u8])) -> Action {
        let termios = self.line.termios;
        if termios.is(VERASE, byte) {
            self.line.erase(Erase::Character, byte, screen);
        } else if termios.is(VKILL, byte) {
            self.line.erase(Erase::Line, byte, screen);
        } else if termios.local(IEXTEN) && termios.is(VWERASE, byte) {
            self.line.erase(Erase::Word, byte, screen);
        } else if termios.local(IEXTEN) && termios.is(VLNEXT, byte) {
            self.quote_next = true;
            if termios.local(ECHO) {
                screen(b"^\x08");
            }
        } else if termios.local(IEXTEN | ECHO) && termios.is(VREPRINT, byte) {
            self.line.reprint(byte, screen);
        } else if self.ends_line(byte) && self.used() >= LIMIT {
            self.warn(screen);
        } else if termios.is(VEOF, byte) {
            return self.finish_line(true);
        } else if byte == b'\n' {
            if termios.local(ECHO) || termios.local(ECHONL) {
                self.line.put(b"\n", screen);
            }
            self.line.bytes.push(b'\n');
            return self.finish_line(false);
        } else if self.ends_line(byte) {
            self.line.echo(byte, screen);
            self.line.bytes.push(byte);
            return self.finish_line(false);
        } else {
            return self.accept(byte, screen);
        }
        Action::None
    }

    fn ends_line(&self, byte: u8) -> bool {
        let termios = &self.line.termios;
        let ends = termios.is(VEOF, byte) || termios.is(VEOL, byte);
        byte == b'\n' || ends || (termios.local(IEXTEN) && termios.is(VEOL2, byte))
    }

    /// A byte is lost.
    fn warn(&self, screen: &mut dyn FnMut(&[u8])) {
        if self.line.termios.iflag & IMAXBEL != 0 {
            screen(b"\x07");
        }
    }

    /// Makes `byte` input as it is.
    fn accept(&mut self, byte: u8, screen: &mut dyn FnMut(&[u8])) -> Action {
        let canonical = self.line.termios.local(ICANON);
        if self.used() >= LIMIT - 1 {
            self.warn(screen);
            return Action::None;
        }
        if self.line.bytes.is_empty() {
            self.line.start = self.line.column.0;
        }
        self.line.echo(byte, screen);
        if canonical {
            self.line.bytes.push(byte);
            return Action::None;
        }
        self.ready.push_back(byte);
        if self.readable() { Action::Readable } else { Action::None }
    }

    fn finish_line(&mut self, by_eof: bool) -> Action {
        self.ends += usize::from(by_eof);
        self.lines.push_back((self.line.bytes.len(), by_eof));
        self.ready.extend(self.line.bytes.drain(..));
        Action::Readable
    }
}
