//! Takes the dumps out of a dump channel: the file a memory region was kept in, or a raw disk.
//!
//! The kernel has written them whole; here they are only found and cut out. Anything may stand between them.

use std::collections::HashMap;
use std::io::Write as _;

use kwab_format::reader::Reader;
use kwab_format::record::AnyRecord;
use kwab_format::section::{FILE_HEADER_LEN, FileHeader, SectionKind};
use kwab_format::stream::{Dumps, Found};
use kwab_format::{Item, RecordKind};

use super::crash::Crash;
use super::lines::LogPosition;
use super::made::Told;
use super::pending::{Keeper, PendingDump};
use super::summary::{DumpSummary, ImportReport, SCHEMA};
use super::tally::mark_repetitions;
use super::{ImportError, Options};
use crate::output::Unnamed;

/// Regions and disks are multiples of this, and an empty slot begins with as many zeros.
const PAGE: usize = 4096;

/// Whether a file is a channel and neither a log nor a single dump.
#[must_use]
pub fn is_channel(bytes: &[u8]) -> bool {
    if bytes.is_empty() || !bytes.len().is_multiple_of(PAGE) {
        return false;
    }
    let empty = bytes.get(..PAGE).is_some_and(|first| first.iter().all(|byte| *byte == 0));
    let begins = bytes.first_chunk::<FILE_HEADER_LEN>().is_some_and(|header| FileHeader::decode(header).is_ok());
    let alone = || Dumps::new(bytes).next().is_some_and(|first| first.bytes.len() == bytes.len());
    empty || (begins && !alone())
}

/// Cuts out every dump, in order of position. A kernel's death that was cut off while it was written is one too.
///
/// # Errors
/// [`ImportError::Write`] when a temporary file cannot be written.
pub fn import_channel(bytes: &[u8], options: &Options) -> Result<(ImportReport, Vec<PendingDump>), ImportError> {
    let mut report = ImportReport {
        schema: SCHEMA,
        source: options.source.clone(),
        bytes: bytes.len() as u64,
        ..ImportReport::default()
    };
    let mut dumps = Vec::new();
    let mut keeper = Keeper::default();
    let mut boots: HashMap<[u8; 16], u32> = HashMap::new();
    // Only a header of a file begins a dump: old memory may hold bytes that merely look like a section of one.
    let whole = |found: &Found<'_>| found.bytes.first_chunk::<FILE_HEADER_LEN>().map(FileHeader::decode);
    for found in Dumps::new(bytes) {
        let Some(Ok(header)) = whole(&found) else { continue };
        let next = boots.len() as u32 + 1;
        let boot = *boots.entry(header.boot_id.0).or_insert(next);
        let number = dumps.len() as u32 + 1;
        dumps.push(one(&found, number, boot, options, &mut keeper).map_err(ImportError::Write)?);
    }
    report.boots = boots.len() as u32;
    mark_repetitions(&mut dumps);
    report.dumps = dumps.iter().map(|dump| dump.summary.clone()).collect();
    Ok((report, dumps))
}

fn one(
    found: &Found<'_>,
    number: u32,
    boot: u32,
    options: &Options,
    keeper: &mut Keeper,
) -> std::io::Result<PendingDump> {
    let mut crash = None;
    let (mut ended, mut complete) = (false, None);
    if let Ok(reader) = Reader::new(found.bytes) {
        for item in reader.sections() {
            let Item::Section(section) = item else { continue };
            ended |= section.header.kind == SectionKind::END;
            for record in section.records() {
                match record.decode() {
                    Ok(AnyRecord::Cause(cause)) if crash.is_none() => {
                        crash = Some(Crash::from_cause(&cause, LogPosition { offset: found.offset as u64, line: 0 }));
                    }
                    Ok(AnyRecord::End(end)) => complete = end.complete,
                    Ok(AnyRecord::Frame(frame)) if record.kind == RecordKind(6) && frame.trace == Some(0) => {
                        if let Some(crash) = &mut crash {
                            let trust = frame.trust.unwrap_or_default();
                            crash.frame(0, frame.addr, None, trust, LogPosition::default());
                        }
                    }
                    _ => {}
                }
            }
        }
    }
    let file = match &options.folder {
        Some(folder) => {
            let mut file = Unnamed::in_folder(folder)?;
            file.write_all(found.bytes)?;
            Some(keeper.keep(file, folder)?)
        }
        None => None,
    };
    let mut missing = Vec::new();
    if !ended {
        missing.push("its end: it was cut off while it was written".to_owned());
    } else if complete == Some(false) {
        missing.push("what its end section names".to_owned());
    }
    let summary = Told { missing, ..Told::default() }.summary(number, boot, crash)?;
    Ok(PendingDump { file, summary: DumpSummary { bytes: found.bytes.len() as u64, ..summary } })
}

#[cfg(test)]
mod tests {
    use kwab_format::record::{Cause, CauseKind};
    use kwab_format::sink::SliceSink;
    use kwab_format::{BootId, DumpId, Writer};

    use super::*;

    /// Writes a dump about `message` at `at` of the region, or as much of it as fits `room`.
    fn put(region: &mut [u8], at: usize, room: usize, id: u64, message: &str) {
        let mut buf = [0; 4096];
        let sink = SliceSink::new(&mut region[at..at + room]);
        let mut writer = Writer::new(sink, &mut buf, FileHeader::new(DumpId(id), BootId([1; 16])));
        let _ = writer.begin(SectionKind::CAUSE);
        let cause = Cause { kind: Some(CauseKind::PANIC), message: Some(message.as_bytes()), ..Cause::default() };
        let _ = writer.put(&cause);
        let _ = writer.finish();
    }

    fn import(region: &[u8]) -> ImportReport {
        let options = Options { source: "region".to_owned(), folder: None };
        import_channel(region, &options).expect("nothing is written").0
    }

    #[test]
    fn a_region_with_two_deaths_and_old_bytes_between_gives_both() {
        let mut region = vec![0; 64 << 10];
        put(&mut region, 0, 8192, 1, "first");
        region[9000..9900].fill(0xf5);
        put(&mut region, 16 << 10, 8192, 2, "second");
        assert!(is_channel(&region));
        let report = import(&region);
        let causes: Vec<_> = report.dumps.iter().map(|dump| (dump.cause.as_str(), dump.missing.len())).collect();
        assert_eq!((causes, report.boots), (vec![("first", 0), ("second", 0)], 1));
    }

    #[test]
    fn a_death_in_the_second_slot_alone_and_one_cut_short_are_found() {
        let mut region = vec![0; 64 << 10];
        put(&mut region, 32 << 10, 8192, 3, "late");
        region.copy_within((32 << 10)..(32 << 10) + 100, 48 << 10);
        assert!(is_channel(&region), "an empty first slot is not a log");
        let report = import(&region);
        assert_eq!(report.dumps.len(), 2);
        assert!(report.dumps[0].missing.is_empty());
        assert_eq!(report.dumps[1].missing, ["its end: it was cut off while it was written"]);
    }

    #[test]
    fn a_dump_of_whole_pages_and_a_log_are_no_channels() {
        let mut dump = vec![0; 8192];
        put(&mut dump, 0, 8192, 4, "alone");
        let length = Dumps::new(&dump).next().expect("a dump").bytes.len();
        assert!(!is_channel(&dump[..length]));
        assert!(!is_channel(&[b'x'; 4096]));
        assert!(!is_channel(b""));
    }
}
