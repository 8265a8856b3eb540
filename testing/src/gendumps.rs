//! Makes any number of small dumps from a seed: a fleet's, with many causes, builds, commits and days.
//!
//! Each is a real dump of `testing/dumps` without its large sections (memory, log, events, page tables), in which the
//! kernel's version, its build-id, the clock and the words of the message are others. The same options always give the
//! same bytes. Of the causes some are frequent and most are rare; each begins and ends with some build, as bugs do.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, anyhow};
use kwab::format::record::{Cause, Identity};
use kwab::format::{AnyRecord, BootId, DumpId, FileHeader, RawRecord, Records, SectionKind, Sink, SinkError, Writer};
use kwab::model::DumpFile;

use crate::paths;

/// What to write.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// How many dumps.
    pub dumps: u64,
    /// How many builds of the kernel they are of.
    pub builds: u64,
    /// Dumps of a directory.
    pub of_folder: u64,
    /// Where the random numbers start.
    pub seed: u64,
}

/// Sections that are left out: they make a dump large, and a list does not show them.
const LARGE: &[SectionKind] = &[
    SectionKind::STACKS,
    SectionKind::PAGE_TABLE,
    SectionKind::LOG,
    SectionKind::EVENTS,
    SectionKind::FLIGHT,
    SectionKind::KEPT,
    SectionKind::MEMORY,
    SectionKind::COUNTERS,
    SectionKind::SYSCALLS,
    SectionKind::MEMORY_MAP,
    SectionKind::IMAGES,
    SectionKind::INDEX,
    SectionKind::END,
];

/// Words that tell one bug from another in the message of its death.
const WORDS: &[&str] = &[
    "alpha", "bravo", "charlie", "delta", "echo", "foxtrot", "golf", "hotel", "india", "juliett", "kilo", "lima",
    "mike", "november", "oscar", "papa", "quebec", "romeo", "sierra", "tango", "uniform", "victor", "whiskey", "xray",
];

/// 2026-01-01, nanoseconds since 1970.
const FIRST_DAY: i64 = 20_454 * DAY;
const DAY: i64 = 86_400_000_000_000;

/// Writes dumps below a directory; gives their bytes.
///
/// # Errors
/// Those of the dumps of the repository and of the directory.
pub fn generate(folder: &Path, options: &Options) -> Result<u64> {
    let templates = templates()?;
    let mut random = Random(options.seed ^ 0x9e37_79b9_7f4a_7c15);
    let mut buffer = vec![0; 256 << 10];
    let mut bytes = 0;
    let mut inside = PathBuf::new();
    for number in 0..options.dumps {
        if number % options.of_folder == 0 {
            inside = folder.join(format!("{:05}", number / options.of_folder));
            std::fs::create_dir_all(&inside).with_context(|| inside.display().to_string())?;
        }
        let build = number * options.builds / options.dumps;
        let of_build = number - (build * options.dumps).div_ceil(options.builds);
        let ns = FIRST_DAY + build as i64 * DAY + of_build as i64 * 1_000_000_000;
        let bug = bug(&mut random, build, templates.len() as u64);
        let template = &templates[(bug % templates.len() as u64) as usize];
        let dump = write(template, bug / templates.len() as u64, build, ns, random.next(), &mut buffer)?;
        bytes += dump.len() as u64;
        std::fs::write(inside.join(format!("{number:07}.kwab")), dump)?;
    }
    Ok(bytes)
}

/// A bug that lives in a build: a few are frequent.
fn bug(random: &mut Random, build: u64, templates: u64) -> u64 {
    let all = templates * WORDS.len() as u64;
    loop {
        let (a, b) = (random.below(all), random.below(all));
        let bug = a * b / all;
        // Each comes with some build, and most go with another.
        let begins = bug * 7 % 40;
        let lives = 5 + bug * 11 % 60;
        if bug < 8 || (begins..begins + lives).contains(&(build % 80)) {
            return bug;
        }
    }
}

/// The records of a dump, section by section.
type Template = Vec<(SectionKind, Vec<u8>)>;

fn templates() -> Result<Vec<Template>> {
    let files = std::fs::read_dir(paths::root().join("testing/dumps"))?.flatten().map(|entry| entry.path());
    let mut dumps: Vec<PathBuf> = files.filter(|path| path.extension().is_some_and(|end| end == "kwab")).collect();
    dumps.sort();
    dumps.iter().map(|path| template(path).with_context(|| paths::shown(path))).collect()
}

fn template(path: &Path) -> Result<Template> {
    let file = DumpFile::open(path)?;
    let wanted = file.sections.iter().enumerate().filter(|(_, section)| !LARGE.contains(&section.header.kind));
    let read = |index| file.payload(index).map_err(|defect| anyhow!("{defect}"));
    wanted.map(|(index, section)| Ok((section.header.kind, read(index)?.to_vec()))).collect()
}

fn write(template: &Template, word: u64, build: u64, ns: i64, id: u64, buffer: &mut [u8]) -> Result<Vec<u8>> {
    let mut writer =
        Writer::new(Bytes(Vec::with_capacity(4096)), buffer, FileHeader::new(DumpId(id), BootId::default()));
    let word = WORDS[word as usize % WORDS.len()];
    let commit = build.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 16;
    let version = format!("0.1.0-{build:05}-g{commit:012x}");
    let mut build_id = [0; 20];
    build_id[..8].copy_from_slice(&commit.to_be_bytes());
    for (kind, payload) in template {
        writer.begin(*kind)?;
        for record in Records::new(payload) {
            put(&mut writer, record, word, &version, &build_id, ns)?;
        }
        writer.end()?;
    }
    let (sink, result) = writer.finish();
    result?;
    Ok(sink.0)
}

fn put(
    writer: &mut Writer<'_, Bytes>,
    record: RawRecord<'_>,
    word: &str,
    version: &str,
    build_id: &[u8],
    ns: i64,
) -> Result<()> {
    match record.decode() {
        Ok(AnyRecord::Identity(identity)) => writer.put(&Identity {
            kernel_version: Some(version.as_bytes()),
            kernel_build_id: Some(build_id),
            wall_ns: Some(ns),
            ..identity
        })?,
        Ok(AnyRecord::Cause(cause)) => {
            let message = [cause.message.unwrap_or_default(), b" in ", word.as_bytes()].concat();
            writer.put(&Cause { message: Some(&message), ..cause })?;
        }
        _ => writer.put_raw(&record)?,
    }
    Ok(())
}

struct Bytes(Vec<u8>);

impl Sink for Bytes {
    fn write(&mut self, bytes: &[u8]) -> Result<(), SinkError> {
        self.0.extend_from_slice(bytes);
        Ok(())
    }
}

/// The generator SplitMix64 (Steele, Lea, Flood 2014).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }
}
