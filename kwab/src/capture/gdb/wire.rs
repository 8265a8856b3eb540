//! Packets of GDB's remote serial protocol: checksums, confirmations, escapes, and limits of bytes and time.

use std::io::{ErrorKind, Read, Write};
use std::time::{Duration, Instant};

use super::super::CaptureError;

/// The longest packet that is taken, as it is sent and unpacked.
pub(super) const LONGEST: usize = 64 << 10;
/// How often a packet with a wrong checksum is asked for again.
const TRIES: usize = 3;

/// The two directions of a connection.
pub(super) struct Wire {
    input: Box<dyn Read>,
    output: Box<dyn Write>,
    pending: Vec<u8>,
    /// How many of these bytes were taken.
    taken: usize,
    /// How long an answer may take.
    answer: Duration,
    /// When the session ends, whatever it is about.
    until: Instant,
}

impl Wire {
    pub(super) fn new(input: Box<dyn Read>, output: Box<dyn Write>, answer: Duration, whole: Duration) -> Self {
        Self { input, output, pending: Vec::new(), taken: 0, answer, until: Instant::now() + whole }
    }

    /// Time for one more question, also when that of the session is over.
    pub(super) fn extend(&mut self) {
        self.until = self.until.max(Instant::now() + self.answer);
    }

    /// Sends a question and gives its answer; an empty one means that the stub does not know the question.
    pub(super) fn ask(&mut self, question: &str) -> Result<Vec<u8>, CaptureError> {
        self.send(question)?;
        self.packet(question.split([':', ',']).next().unwrap_or_default(), question)
    }

    pub(super) fn send(&mut self, question: &str) -> Result<(), CaptureError> {
        let sum = question.bytes().fold(0_u8, u8::wrapping_add);
        self.output.write_all(format!("${question}#{sum:02x}").as_bytes())?;
        Ok(self.output.flush()?)
    }

    /// The next packet, confirmed; one that came damaged is asked for again, and `question` sent again where the stub
    /// did not understand it.
    pub(super) fn packet(&mut self, to: &str, question: &str) -> Result<Vec<u8>, CaptureError> {
        let until = self.until.min(Instant::now() + self.answer);
        let (mut bad, mut again) = (0, 0);
        loop {
            match self.byte(to, until)? {
                b'$' => {}
                b'-' if again < TRIES => {
                    again += 1;
                    self.send(question)?;
                    continue;
                }
                _ => continue,
            }
            let raw = self.until_hash(to, until)?;
            let sum = raw.iter().copied().fold(0_u8, u8::wrapping_add);
            let digits = [self.byte(to, until)?, self.byte(to, until)?];
            if of_hex(&digits).as_deref() == Some(&[sum]) {
                self.output.write_all(b"+")?;
                self.output.flush()?;
                if is_stop(&raw) {
                    continue;
                }
                return unpacked(&raw).ok_or_else(|| strange(format!("the answer to {to} cannot be unpacked")));
            }
            bad += 1;
            if bad > TRIES {
                return Err(strange(format!("{bad} answers to {to} with wrong checksums")));
            }
            self.output.write_all(b"-")?;
            self.output.flush()?;
        }
    }

    /// The bytes up to the sign that ends a packet.
    fn until_hash(&mut self, to: &str, until: Instant) -> Result<Vec<u8>, CaptureError> {
        let mut raw = Vec::new();
        loop {
            self.fill(to, until)?;
            let rest = self.pending.get(self.taken..).unwrap_or_default();
            let end = memchr::memchr(b'#', rest);
            let run = &rest[..end.unwrap_or(rest.len())];
            if raw.len() + run.len() > LONGEST {
                return Err(strange(format!("an answer of more than {LONGEST} bytes to {to}")));
            }
            raw.extend_from_slice(run);
            self.taken += run.len() + usize::from(end.is_some());
            if end.is_some() {
                return Ok(raw);
            }
        }
    }

    fn byte(&mut self, to: &str, until: Instant) -> Result<u8, CaptureError> {
        self.fill(to, until)?;
        self.taken += 1;
        self.pending.get(self.taken - 1).copied().ok_or_else(|| strange(String::new()))
    }

    /// Waits until a byte is there that was not taken. Bytes that trickle in do not lengthen the time.
    fn fill(&mut self, to: &str, until: Instant) -> Result<(), CaptureError> {
        while self.taken >= self.pending.len() {
            if Instant::now() >= until {
                let why = format!("no whole answer to {to} in time (QEMU serves one debugger: is another connected?)");
                return Err(strange(why));
            }
            let mut room = [0; 4096];
            match self.input.read(&mut room) {
                Ok(0) => return Err(strange(format!("the connection was closed before the answer to {to}"))),
                Ok(len) => {
                    self.pending.clear();
                    self.taken = 0;
                    self.pending.extend_from_slice(room.get(..len).unwrap_or_default());
                }
                Err(error) => match error.kind() {
                    ErrorKind::Interrupted | ErrorKind::WouldBlock | ErrorKind::TimedOut => {}
                    _ => return Err(error.into()),
                },
            }
        }
        Ok(())
    }
}

/// Whether a packet says that the machine has stopped, which a stub says by itself when a client connects. Nothing that
/// is asked here has such an answer.
fn is_stop(raw: &[u8]) -> bool {
    matches!(raw, [b'T' | b'S', high, low, ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit())
}

pub(super) fn strange(why: String) -> CaptureError {
    CaptureError::Remote(why)
}

/// Undoes escapes and run lengths (GDB manual, "Overview" of the protocol); `None` when the packet breaks their rules.
pub(super) fn unpacked(raw: &[u8]) -> Option<Vec<u8>> {
    let mut out: Vec<u8> = Vec::with_capacity(raw.len());
    let mut bytes = raw.iter();
    while let Some(&byte) = bytes.next() {
        match byte {
            b'}' => out.push(bytes.next()? ^ 0x20),
            b'*' => {
                let count = usize::from(bytes.next()?.checked_sub(29)?);
                let last = *out.last()?;
                out.resize(out.len() + count, last);
            }
            byte => out.push(byte),
        }
        if out.len() > LONGEST {
            return None;
        }
    }
    Some(out)
}

/// Bytes of pairs of hexadecimal digits.
pub(super) fn of_hex(digits: &[u8]) -> Option<Vec<u8>> {
    let digit = |digit: u8| char::from(digit).to_digit(16);
    let pairs = digits.chunks(2).map(|pair| Some((digit(pair[0])? << 4 | digit(*pair.get(1)?)?) as u8));
    pairs.collect()
}
