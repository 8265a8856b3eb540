//! One dump of an import while it grows: where its bytes go, which part of the log it covers, and what is concluded.
//!
//! A log is cut into consecutive segments, each ending with one crash, so that every event is in exactly one dump. A
//! segment that follows another within the same boot begins with a copy of the last records before it ([`CONTEXT`]):
//! those are the only ones that lie in two dumps, and the dump says how many they are.

use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

use kwab_format::armour::LINE_BYTES;
use kwab_format::record::{Counter, Identity, Note, NoteKind, Reason, Source, Stamp};
use kwab_format::section::{FILE_HEADER_LEN, SECTION_HEADER_LEN, SECTION_TRAILER_LEN};
use kwab_format::{AnyRecord, BootId, DumpId, FileHeader, Item, Reader, Records, SectionHeader, SectionKind};

use super::assemble::Assembly;
use super::boot::BootFacts;
use super::crash::{Crash, Victim};
use super::emit::DumpWriter;
use super::lines::LogPosition;
use super::summary::{DumpSummary, PrintedDump};
use crate::output::Unnamed;
use crate::report::signature;
use crate::units::count;

/// Records of the segment before that a new one begins with.
pub const CONTEXT: usize = 512;

/// Where the bytes of a dump go.
#[derive(Debug)]
pub enum Out {
    /// A file that gets its name when everything is well.
    File(Unnamed),
    /// Nowhere: a dry run.
    Nowhere,
}

impl Write for Out {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Out::File(file) => file.write(bytes),
            Out::Nowhere => Ok(bytes.len()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A dump that grows.
#[derive(Debug)]
pub struct Segment {
    /// The sections that are written for this crash.
    pub out: DumpWriter<Out>,
    /// The death it tells about.
    pub crash: Option<Crash>,
    /// The boot it began in, or that its crash happened in.
    pub boot: BootFacts,
    /// Where it begins in the log.
    pub start: LogPosition,
    /// Events in it, without those copied from the segment before.
    pub events: u64,
    /// Records copied from the segment before.
    pub context: CopiedHistory,
    /// A dump that came as armoured lines.
    pub assembly: Option<Assembly>,
    /// Programs that were asked to end, and other things worth a remark.
    remarks: Vec<(LogPosition, String)>,
    unimplemented: Vec<(i64, Vec<u8>, u32, u64, LogPosition)>,
}

impl Segment {
    /// Starts a dump in `folder`, or nowhere.
    ///
    /// # Errors
    /// When the temporary file cannot be made.
    pub fn new(folder: Option<&Path>, dump_id: u64, boot: BootFacts, start: LogPosition) -> io::Result<Self> {
        let out = match folder {
            Some(folder) => Out::File(Unnamed::in_folder(folder)?),
            None => Out::Nowhere,
        };
        let header = FileHeader::new(DumpId(dump_id), BootId([0; 16]));
        Ok(Self {
            out: DumpWriter::new(out, header),
            crash: None,
            boot,
            start,
            events: 0,
            context: CopiedHistory::default(),
            assembly: None,
            remarks: Vec::new(),
            unimplemented: Vec::new(),
        })
    }

    /// Notes something that is worth a line in the report of this dump.
    pub fn remark(&mut self, position: LogPosition, text: String) {
        if self.remarks.len() < 64 {
            self.remarks.push((position, text));
        }
    }

    /// Notes a call that the kernel does not have.
    pub fn unimplemented(&mut self, nr: i64, name: &[u8], pid: u32, position: LogPosition) {
        if let Some(known) = self.unimplemented.iter_mut().find(|known| known.0 == nr && known.2 == pid) {
            known.3 += 1;
        } else if self.unimplemented.len() < 64 {
            self.unimplemented.push((nr, name.to_vec(), pid, 1, position));
        }
    }

    /// Begins with the last records of `before`.
    pub fn begin_with_context(&mut self, before: &DumpWriter<Out>, boot_starts: u64) {
        for kind in [SectionKind::EVENTS, SectionKind::LOG] {
            let recent = before.recent(kind, CONTEXT);
            for record in recent {
                let line = record.decode().ok().and_then(|record| record.stamp().line);
                if line.is_none_or(|line| line >= boot_starts) {
                    self.out.put_raw(kind, record);
                    if let Some(copies) = self.context.of(kind) {
                        *copies += 1;
                    }
                }
            }
        }
    }

    /// Takes over everything that `other`, the segment behind this one, has recorded.
    ///
    /// # Errors
    /// Those of the files.
    pub fn absorb(&mut self, mut other: Segment) -> io::Result<()> {
        let context = other.context;
        other.out.flush_all();
        let finished = other.out.finish()?;
        if let Out::File(mut file) = finished {
            copy_records(&mut file, context, &mut self.out)?;
        }
        self.events += other.events;
        if self.assembly.is_none() {
            self.assembly = other.assembly;
        }
        for (position, text) in other.remarks {
            self.remark(position, text);
        }
        for (nr, name, pid, count, position) in other.unimplemented {
            self.unimplemented(nr, &name, pid, position);
            if let Some(known) = self.unimplemented.iter_mut().find(|known| known.0 == nr && known.2 == pid) {
                known.3 += count - 1;
            }
        }
        Ok(())
    }

    /// Closes the dump: cause, identity and source are written last, when they are known.
    ///
    /// # Errors
    /// Those of the file.
    pub fn finish(
        mut self,
        number: u32,
        source: &str,
        end: LogPosition,
        dialect: &str,
    ) -> io::Result<(DumpSummary, Option<Unnamed>)> {
        let printed = self.mend();
        let assembled = self.write_assembly(printed);
        if let Some(crash) = &mut self.crash {
            crash.conclude();
            if !assembled {
                crash.write(&mut self.out);
            }
        }
        if !assembled {
            self.write_identity(number);
        }
        self.write_source(source, end, dialect);
        self.write_remarks();
        let signature = self.signature();
        let mut summary = DumpSummary {
            number,
            path: None,
            boot: self.boot.number,
            kind: self.kind_name().to_string(),
            subject: self.subject(),
            cause: self.cause(),
            line: self.crash.as_ref().map(|crash| crash.position.line),
            signature,
            same_as: None,
            events: self.events,
            bytes: 0,
            missing: if assembled { Vec::new() } else { self.missing() },
            printed,
        };
        let Out::File(mut file) = self.out.finish()? else { return Ok((summary, None)) };
        summary.bytes = file.stream_position()?;
        Ok((summary, Some(file)))
    }

    fn write_identity(&mut self, number: u32) {
        let boot = &self.boot;
        let crash = self.crash.as_ref();
        let reason = match crash.map(|crash| crash.victim) {
            None => Reason::RECORDING,
            Some(Victim::Kernel) if crash.is_some_and(|crash| crash.death.is_hang()) => Reason::HANG,
            Some(Victim::Kernel) => Reason::KERNEL_CRASH,
            Some(Victim::Process(_)) => Reason::PROCESS_CRASH,
        };
        let name = crash.and_then(|crash| crash.kernel_name.as_ref()).map(String::as_bytes);
        let identity = Identity {
            kernel_name: boot.kernel.as_deref().or(name),
            kernel_version: boot.version.as_deref(),
            kernel_build_id: crash.and_then(|crash| crash.kernel_build_id.as_deref()),
            arch: crash.and_then(Crash::arch),
            command_line: boot.command_line.as_deref(),
            mono_ns: crash.and_then(|crash| crash.death.ns),
            reason: Some(reason),
            kernel_offset: crash.and_then(|crash| crash.kernel_offset),
            producer: Some(concat!("kwab ", env!("CARGO_PKG_VERSION"), " import").as_bytes()),
            cpus: boot.cpus,
            tsc_hz: boot.tsc_hz,
            ram_bytes: boot.ram_bytes,
            hardware: boot.hardware.as_deref(),
            boot_number: Some(boot.number),
            crash_number: (number > 0).then_some(number),
            debug: boot.debug.as_deref(),
            ..Identity::default()
        };
        self.out.put(SectionKind::IDENTITY, &identity);
    }

    fn write_source(&mut self, name: &str, end: LogPosition, dialect: &str) {
        let source = Source {
            name: Some(name.as_bytes()),
            start: Some(self.start.offset),
            end: Some(end.offset),
            lines: Some(end.line.saturating_sub(self.start.line)),
            dialect: Some(dialect.as_bytes()),
            stamp: Stamp { line: Some(self.start.line), ..Stamp::default() },
            ..Source::default()
        };
        self.out.put(SectionKind::IDENTITY, &source);
        for (name, value) in
            [("events", self.events), ("context_events", self.context.events), ("context_lines", self.context.lines)]
        {
            let counter = Counter {
                group: Some(b"import"),
                name: Some(name.as_bytes()),
                value: i64::try_from(value).ok(),
                ..Counter::default()
            };
            self.out.put(SectionKind::NOTES, &counter);
        }
    }

    fn write_remarks(&mut self) {
        let calls = self.unimplemented.iter().map(|(nr, name, pid, count, position)| {
            let times = if *count > 1 { format!(", {count} times") } else { String::new() };
            let name = String::from_utf8_lossy(name);
            (*position, format!("unimplemented system call {nr} {name} (pid {pid}{times})"))
        });
        let all: Vec<_> = calls.chain(self.remarks.drain(..)).collect();
        for (position, text) in all {
            let stamp = Stamp { line: Some(position.line), ..Stamp::default() };
            let note = Note { kind: Some(NoteKind::REMARK), text: Some(text.as_bytes()), stamp, ..Note::default() };
            self.out.put(SectionKind::NOTES, &note);
        }
    }

    /// Mends the dump that the kernel itself wrote onto the console, and says what there is of it.
    fn mend(&mut self) -> Option<PrintedDump> {
        let assembly = self.assembly.as_mut()?;
        // A temporary file that fails here fails again when it is read, which is told there.
        let mended = assembly.mend().unwrap_or_default();
        let mended_lines = mended.bytes.div_ceil(LINE_BYTES as u64);
        let (bytes, missing_bytes) = assembly.coverage();
        let damaged_lines = if mended.is_whole { assembly.damaged } else { 0 };
        Some(PrintedDump { lines: assembly.lines, mended_lines, bytes, missing_bytes, damaged_lines })
    }

    /// Merges that dump; `true` when it tells the cause.
    fn write_assembly(&mut self, printed: Option<PrintedDump>) -> bool {
        let (Some(assembly), Some(printed)) = (self.assembly.take(), printed) else { return false };
        let PrintedDump { lines, mended_lines, bytes: came, missing_bytes: missing, .. } = printed;
        let mut note = |text: String, kind| {
            let note = Note { kind: Some(kind), text: Some(text.as_bytes()), ..Note::default() };
            self.out.put(SectionKind::NOTES, &note);
        };
        if mended_lines > 0 {
            let text = format!(
                "{mended_lines} lines of the dump the kernel printed were lost or damaged on the way and are mended by \
                 its parity lines"
            );
            note(text, NoteKind::REMARK);
        }
        if missing > 0 {
            let text = format!(
                "{missing} bytes of the dump the kernel printed are missing ({came} were received, in {lines} lines)"
            );
            note(text, NoteKind::DEFECT);
        }
        let bytes = match assembly.read() {
            Ok(bytes) => bytes,
            Err(error) => {
                note(format!("the dump the kernel printed could not be kept: {error}"), NoteKind::DEFECT);
                return false;
            }
        };
        let Ok(reader) = Reader::new(&bytes) else {
            note("what the kernel printed in armour is not a dump".to_string(), NoteKind::DEFECT);
            return false;
        };
        let mut own: Option<Crash> = None;
        let mut scratch = Vec::new();
        for item in reader.sections() {
            match item {
                Item::Defect(defect) => {
                    let text = format!("in the dump the kernel printed: {defect}");
                    let record = Note { kind: Some(NoteKind::DEFECT), text: Some(text.as_bytes()), ..Note::default() };
                    self.out.put(SectionKind::NOTES, &record);
                }
                Item::Section(section) => {
                    if matches!(section.header.kind, SectionKind::END | SectionKind::INDEX) {
                        continue;
                    }
                    scratch.resize(section.unpacked_len(), 0);
                    let Ok(payload) = section.unpack(&mut scratch) else { continue };
                    for record in Records::new(payload) {
                        if let Ok(AnyRecord::Cause(cause)) = record.decode() {
                            own.get_or_insert_with(|| Crash::from_cause(&cause, self.start));
                        }
                        self.out.put_raw(section.header.kind, record);
                    }
                }
            }
        }
        let told = own.is_some();
        if let Some(mut own) = own {
            if let Some(seen) = &self.crash {
                own.position = seen.position;
            }
            self.crash = Some(own);
        }
        told
    }

    pub(super) fn kind_name(&self) -> &'static str {
        match self.crash.as_ref().map(|crash| crash.victim) {
            None => "recording",
            Some(Victim::Kernel) => "panic",
            Some(Victim::Process(_)) => "process",
        }
    }

    pub(super) fn subject(&self) -> String {
        let Some(crash) = &self.crash else { return "no crash".to_string() };
        let text = |bytes: &Option<Vec<u8>>| bytes.as_ref().map(|bytes| String::from_utf8_lossy(bytes).into_owned());
        match crash.victim {
            Victim::Process(pid) => {
                let program = text(&crash.death.cmdline).or_else(|| text(&crash.death.comm));
                let program = program.map(|line| line.split(' ').next().unwrap_or_default().to_string());
                match program {
                    Some(program) if pid == 0 => program,
                    program => format!("{}[{pid}]", program.unwrap_or_else(|| "pid".to_string())),
                }
            }
            Victim::Kernel => match (crash.death.source(), text(&crash.death.comm)) {
                (Some(position), _) => position,
                (None, Some(comm)) => format!("{comm}[{}]", crash.death.pid.unwrap_or(0)),
                (None, None) => "kernel".to_string(),
            },
        }
    }

    pub(super) fn cause(&self) -> String {
        let Some(crash) = &self.crash else { return count(self.events, "event", "events") };
        match crash.victim {
            Victim::Process(_) => {
                let name = crash.death.signal_name.as_deref().unwrap_or_default();
                let signal = crash.death.signal.map_or("signal".into(), |_| String::from_utf8_lossy(name));
                let ip = crash.death.ip.map_or(String::new(), |ip| format!("  ip={ip:#x}"));
                format!("{signal}{ip}")
            }
            Victim::Kernel => {
                let message = crash.death.message.as_ref().map(|text| String::from_utf8_lossy(text).into_owned());
                let message = message.unwrap_or_else(|| "no message".to_string());
                let line = message.lines().rfind(|line| !line.starts_with("panicked at")).unwrap_or(&message);
                line.to_string()
            }
        }
    }

    pub(super) fn signature(&self) -> String {
        self.crash.as_ref().map_or_else(|| "00000000".to_string(), |crash| signature::of(&crash.signature_parts()))
    }

    fn missing(&self) -> Vec<String> {
        self.crash.as_ref().map(Crash::missing).unwrap_or_default()
    }
}

/// Copies the records of a finished dump, without the ones at its front that the taker already has.
fn copy_records(file: &mut Unnamed, context: CopiedHistory, out: &mut DumpWriter<Out>) -> io::Result<()> {
    file.seek(SeekFrom::Start(FILE_HEADER_LEN as u64))?;
    let mut left = context;
    let mut header = [0; SECTION_HEADER_LEN];
    let mut payload = Vec::new();
    loop {
        file.read_exact(&mut header)?;
        let damaged = |_| io::Error::other("a temporary file was changed while it was in use");
        let section = SectionHeader::decode(&header).map_err(damaged)?;
        payload.resize(section.payload_len as usize + SECTION_TRAILER_LEN, 0);
        file.read_exact(&mut payload)?;
        if section.kind == SectionKind::END {
            return Ok(());
        }
        if section.kind == SectionKind::INDEX {
            continue;
        }
        for record in Records::new(&payload[..section.payload_len as usize]) {
            match left.of(section.kind) {
                Some(copies) if *copies > 0 => *copies -= 1,
                _ => out.put_raw(section.kind, record),
            }
        }
    }
}

/// How many records at the front of each kind were copied from the segment before.
#[derive(Debug, Clone, Copy, Default)]
pub struct CopiedHistory {
    /// Events that were copied from the segment before.
    pub events: u64,
    /// Lines of text.
    pub lines: u64,
}

impl CopiedHistory {
    fn of(&mut self, kind: SectionKind) -> Option<&mut u64> {
        match kind {
            SectionKind::EVENTS => Some(&mut self.events),
            SectionKind::LOG => Some(&mut self.lines),
            _ => None,
        }
    }
}
