//! Speaks GDB's remote serial protocol to a stub that serves a whole machine, as QEMU's does (`-gdb tcp:HOST:PORT`).
//!
//! The stub stops the machine when a client connects. A processor is a thread of it; the order and the widths of its
//! registers are what its target description says. A detach lets the machine run again. A packet, the answers to a
//! question and the whole session are bounded in bytes and in time: the other side may be anything that listens.

mod ram;
mod wire;

use std::io::{Read, Write};
use std::time::Duration;

use kwab_format::record::RegId;

use super::CaptureError;
use super::registers::{Processor, named};
use wire::{LONGEST, Wire, of_hex, strange};

/// The longest target description.
const LONGEST_TEXT: usize = 1 << 20;
/// Processors that are asked for.
const MOST_PROCESSORS: usize = 1024;
/// How long an answer may take.
const ANSWER: Duration = Duration::from_secs(10);

/// A session. The streams should have a timeout: a limit of time is looked at after every read.
pub struct Remote {
    wire: Wire,
    /// Bytes of memory that one question may ask for.
    piece: u64,
    layout: Vec<Field>,
    threads: Vec<String>,
}

/// A register in the answer to `g`.
#[derive(Debug, Clone, Copy)]
struct Field {
    id: Option<RegId>,
    at: usize,
    bytes: usize,
}

impl Remote {
    /// Greets the stub, and asks for its processors and the order of their registers.
    ///
    /// # Errors
    /// [`CaptureError`] when the other side is not such a stub, or serves another architecture.
    pub fn open(input: Box<dyn Read>, output: Box<dyn Write>, whole: Duration) -> Result<Self, CaptureError> {
        Self::open_within(ANSWER, input, output, whole)
    }

    /// As [`Remote::open`], with a limit of its own for answers.
    pub(super) fn open_within(
        answer: Duration,
        input: Box<dyn Read>,
        output: Box<dyn Write>,
        whole: Duration,
    ) -> Result<Self, CaptureError> {
        let wire = Wire::new(input, output, answer, whole);
        let mut remote = Self { wire, piece: 512, layout: Vec::new(), threads: Vec::new() };
        match remote.greet() {
            Ok(()) => Ok(remote),
            // It is a stub, and the machine stands still.
            Err(error @ CaptureError::Foreign) => remote.detach().and(Err(error)),
            Err(error) => Err(error),
        }
    }

    fn greet(&mut self) -> Result<(), CaptureError> {
        let features = self.wire.ask("qSupported:xmlRegisters=i386")?;
        let features = String::from_utf8_lossy(&features);
        let packet = features.split(';').find_map(|one| u64::from_str_radix(one.strip_prefix("PacketSize=")?, 16).ok());
        // Two digits a byte.
        self.piece = packet.map_or(512, |size| (size / 2).clamp(64, LONGEST as u64 / 4));
        self.layout = layout_of(&self.description()?);
        let known = |id| self.layout.iter().any(|field| field.id == Some(id) && field.bytes == 8);
        if !known(RegId::RIP) || !known(RegId::RSP) {
            return Err(CaptureError::Foreign);
        }
        self.threads = self.threads()?;
        Ok(())
    }

    /// Registers of every processor.
    ///
    /// # Errors
    /// [`CaptureError`] when the stub does not give them.
    pub fn processors(&mut self) -> Result<Vec<Processor>, CaptureError> {
        let mut all = Vec::new();
        for number in 0..self.threads.len() {
            self.select(number)?;
            let bytes = self.wire.ask("g")?;
            let mut processor = Processor { number: number as u32, ..Processor::default() };
            for field in &self.layout {
                let digits = bytes.get(field.at * 2..(field.at + field.bytes) * 2);
                // A register that is not available has letters `x`.
                let Some((id, value)) = field.id.zip(digits.and_then(little)) else { continue };
                processor.registers.push((id, value));
            }
            if processor.registers.iter().all(|(id, _)| *id != RegId::RIP) {
                return Err(CaptureError::Foreign);
            }
            processor.in_user = processor.get(RegId::CS) & 3 == 3;
            let told = self.wire.ask(&format!("qThreadExtraInfo,{}", self.threads[number]))?;
            processor.halted = of_hex(&told).is_some_and(|text| memchr::memmem::find(&text, b"halted").is_some());
            all.push(processor);
        }
        Ok(all)
    }

    /// Memory at virtual addresses as a processor sees it, as far as it can be read.
    ///
    /// # Errors
    /// [`CaptureError`] when the stub does not answer.
    pub fn memory(&mut self, cpu: u32, start: u64, end: u64) -> Result<Vec<u8>, CaptureError> {
        self.select(cpu as usize)?;
        self.read(start, end)
    }

    /// Whether addresses of [`Remote::memory`] mean physical memory from now on.
    ///
    /// # Errors
    /// [`CaptureError::Refused`] when the stub is not QEMU's.
    pub fn set_physical(&mut self, physical: bool) -> Result<(), CaptureError> {
        let command = format!("Qqemu.PhyMemMode:{}", u8::from(physical));
        match self.wire.ask(&command)?.as_slice() {
            b"OK" => Ok(()),
            _ => Err(CaptureError::Refused { command, why: "the stub does not know physical memory".to_owned() }),
        }
    }

    /// Runs a command of QEMU's monitor; its text, empty when the stub has none.
    ///
    /// # Errors
    /// [`CaptureError`] when the stub does not answer.
    pub fn monitor(&mut self, line: &str) -> Result<String, CaptureError> {
        let hex: String = line.bytes().map(|byte| format!("{byte:02x}")).collect();
        self.wire.send(&format!("qRcmd,{hex}"))?;
        let mut text = Vec::new();
        loop {
            let said = self.wire.packet("qRcmd", &format!("qRcmd,{hex}"))?;
            match said.strip_prefix(b"O").filter(|rest| *rest != b"K").and_then(of_hex) {
                Some(more) if text.len() + more.len() <= LONGEST_TEXT => text.extend(more),
                _ => return Ok(String::from_utf8_lossy(&text).into_owned()),
            }
        }
    }

    /// Ends the session and lets the machine run.
    ///
    /// # Errors
    /// [`CaptureError`] when the stub does not confirm it.
    pub fn detach(&mut self) -> Result<(), CaptureError> {
        // A session whose time is over still has to let the machine go.
        self.wire.extend();
        match self.wire.ask("D")?.as_slice() {
            b"OK" => Ok(()),
            _ => Err(CaptureError::Refused { command: "D".to_owned(), why: "the machine stays stopped".to_owned() }),
        }
    }

    fn select(&mut self, number: usize) -> Result<(), CaptureError> {
        let Some(thread) = self.threads.get(number) else { return Err(CaptureError::Foreign) };
        let command = format!("Hg{thread}");
        match self.wire.ask(&command)?.as_slice() {
            b"OK" => Ok(()),
            _ => Err(CaptureError::Refused { command, why: "no such thread".to_owned() }),
        }
    }

    fn read(&mut self, start: u64, end: u64) -> Result<Vec<u8>, CaptureError> {
        const PAGE: u64 = 4096;
        let (mut bytes, mut at) = (Vec::new(), start);
        while at < end {
            let stop = end.min(at.saturating_add(self.piece)).min((at / PAGE + 1).saturating_mul(PAGE));
            let said = self.wire.ask(&format!("m{at:x},{:x}", stop - at))?;
            let Some(mut read) = of_hex(&said).filter(|read| !read.is_empty()) else { break };
            read.truncate((stop - at) as usize);
            at += read.len() as u64;
            bytes.extend(read);
        }
        Ok(bytes)
    }

    fn threads(&mut self) -> Result<Vec<String>, CaptureError> {
        let mut threads = Vec::new();
        let mut command = "qfThreadInfo";
        loop {
            let said = self.wire.ask(command)?;
            let Some(list) = said.strip_prefix(b"m") else { break };
            for thread in list.split(|byte| *byte == b',') {
                let plain = |byte: &u8| byte.is_ascii_hexdigit() || b"p.".contains(byte);
                if threads.len() >= MOST_PROCESSORS || thread.is_empty() || !thread.iter().all(plain) {
                    return Err(strange(format!("more than {MOST_PROCESSORS} threads, or one without a number")));
                }
                threads.push(String::from_utf8_lossy(thread).into_owned());
            }
            command = "qsThreadInfo";
        }
        if threads.is_empty() { Err(strange("it has no threads".to_owned())) } else { Ok(threads) }
    }

    /// The target description, with the files that it includes.
    fn description(&mut self) -> Result<String, CaptureError> {
        let first = self.file("target.xml")?;
        let mut text = first.clone();
        for part in first.split("<xi:include").skip(1).take(16) {
            let name = part.split("href=\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap_or_default();
            let is_plain = |sign: char| sign.is_ascii_alphanumeric() || "._-".contains(sign);
            if !name.is_empty() && name.len() < 128 && name.chars().all(is_plain) {
                text += &self.file(name)?;
            }
        }
        Ok(text)
    }

    fn file(&mut self, name: &str) -> Result<String, CaptureError> {
        let mut text = Vec::new();
        loop {
            let said = self.wire.ask(&format!("qXfer:features:read:{name}:{:x},{:x}", text.len(), self.piece))?;
            let (is_last, more) = match said.split_first() {
                Some((b'l', more)) => (true, more),
                Some((b'm', more)) if !more.is_empty() => (false, more),
                _ => return Err(strange(format!("it does not describe its registers ({name})"))),
            };
            text.extend_from_slice(more);
            if text.len() > LONGEST_TEXT {
                return Err(strange(format!("{name} is longer than {LONGEST_TEXT} bytes")));
            }
            if is_last {
                return Ok(String::from_utf8_lossy(&text).into_owned());
            }
        }
    }
}

/// A number in the order of an x86's memory.
fn little(digits: &[u8]) -> Option<u64> {
    let bytes = of_hex(digits)?;
    Some(bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
}

/// Where each register of a target description lies in the answer to `g`.
fn layout_of(description: &str) -> Vec<Field> {
    let mut text = String::new();
    for (number, part) in description.split("<!--").enumerate() {
        text += if number == 0 { part } else { part.split_once("-->").map_or("", |(_, rest)| rest) };
    }
    let (mut fields, mut at) = (Vec::new(), 0_usize);
    for tag in text.split("<reg ").skip(1) {
        let tag = tag.split('>').next().unwrap_or_default();
        let value = |name: &str| tag.split_once(&format!("{name}=\"")).and_then(|(_, rest)| rest.split('"').next());
        let bits: usize = value("bitsize").and_then(|bits| bits.parse().ok()).unwrap_or(0);
        let bytes = bits.min(1 << 16).div_ceil(8);
        let id = value("name").and_then(register).filter(|_| bytes <= 8);
        fields.push(Field { id, at, bytes });
        at += bytes;
        if fields.len() > 4096 {
            break;
        }
    }
    fields
}

/// The register of a name in QEMU's description of x86-64.
fn register(name: &str) -> Option<RegId> {
    const OTHER: [(&str, RegId); 3] =
        [("eflags", RegId::RFLAGS), ("fs_base", RegId::FS_BASE), ("gs_base", RegId::GS_BASE)];
    let known = named(name);
    known.or_else(|| OTHER.iter().find(|(other, _)| *other == name).map(|(_, id)| *id))
}

impl std::fmt::Debug for Remote {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Remote").field("threads", &self.threads).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
