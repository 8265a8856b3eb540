//! Asks two readers of the dump format about the same dumps: kwab-format, and the one in `testing/second-reader`,
//! which was written in another language from `FORMAT.md` and `RECORDS.md`.
//!
//! Where they disagree, one of them or the document is wrong. [`corpus`] gives the dumps of this repository,
//! [`mutate`] makes damaged and re-sealed ones of them, [`first`] renders what kwab-format reads, [`disagreements`]
//! compares: the dumps of the stream and of the file, sections, values, defects, and what end sections count wrongly.

mod fields;
pub mod first;
pub mod mutate;
pub mod random;

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use crate::process::Call;
use crate::{paths, synth};

/// The longest that the second reader may take for one batch.
const LIMIT: Duration = Duration::from_secs(600);

/// A dump and where it came from.
#[derive(Clone, Debug)]
pub struct Sample {
    /// What to call it in a report.
    pub name: String,
    /// The dump, as bytes.
    pub bytes: Vec<u8>,
}

/// A dump that the readers do not agree about.
#[derive(Clone, Debug)]
pub struct Disagreement {
    /// The name of the sample.
    pub name: String,
    /// Where in the report they differ first, and both values.
    pub text: String,
}

/// Every dump in `kwab-format/vectors` and `testing/dumps`, in order of path, and a dump of the records in the vectors.
///
/// # Errors
/// When a folder cannot be read or is empty.
pub fn corpus() -> Result<Vec<Sample>> {
    let mut samples = Vec::new();
    for folder in ["kwab-format/vectors/dumps", "kwab-format/vectors/damaged", "testing/dumps"] {
        let mut paths = Vec::new();
        for entry in fs::read_dir(paths::root().join(folder)).with_context(|| folder.to_owned())? {
            paths.push(entry?.path());
        }
        paths.retain(|path| path.extension().is_some_and(|extension| extension == "kwab"));
        ensure!(!paths.is_empty(), "no dumps in {folder}");
        paths.sort();
        for path in paths {
            let bytes = fs::read(&path).with_context(|| paths::shown(&path))?;
            samples.push(Sample { name: paths::shown(&path), bytes });
        }
    }
    samples.push(vectors()?);
    samples.extend(several(&samples));
    Ok(samples)
}

/// Files that hold several dumps: one behind the other, and as a channel with other bytes around them.
fn several(samples: &[Sample]) -> [Sample; 2] {
    let first: Vec<&[u8]> = samples.iter().map(|sample| sample.bytes.as_slice()).take(3).collect();
    let behind = first.concat();
    let mut channel = vec![0; 512];
    for dump in &first {
        channel.extend_from_slice(dump);
        channel.extend_from_slice(&[0xf5, 0x89, 0, b'K']);
        channel.resize(channel.len().next_multiple_of(512), 0);
    }
    [("three dumps", behind), ("a channel", channel)].map(|(name, bytes)| Sample { name: name.into(), bytes })
}

/// The records of `kwab-format/vectors/records.txt`, as bytes, in one section.
fn vectors() -> Result<Sample> {
    let name = "kwab-format/vectors/records.txt";
    let vectors = synth::vectors::parse(&paths::read(&paths::root().join(name))?)?;
    let bytes: Vec<u8> = vectors.iter().flat_map(|vector| vector.bytes.iter().copied()).collect();
    let dump = synth::Dump::new(7, [7; 16]).payload(1, 0, vectors.len(), &bytes);
    Ok(Sample { name: name.into(), bytes: dump.finish() })
}

/// What the second reader finds in the armoured lines of a text.
///
/// # Errors
/// When it cannot be run or finds another number of dumps than one.
pub fn armoured(text: &Path) -> Result<Value> {
    let reader = paths::root().join("testing/second-reader");
    let call = Call::new("python3").arg("-B").arg(reader).arg("--armour").arg(text).limit(LIMIT);
    serde_json::from_str(&call.capture()?.stdout).with_context(|| paths::shown(text))
}

/// Lets both readers read `samples` and names those that they read differently.
///
/// # Errors
/// When the second reader cannot be run or does not answer for every dump.
pub fn disagreements(samples: &[Sample], scratch: &Path) -> Result<Vec<Disagreement>> {
    let batch = scratch.join("batch");
    let mut bytes = Vec::new();
    for sample in samples {
        bytes.extend(u32::try_from(sample.bytes.len())?.to_le_bytes());
        bytes.extend_from_slice(&sample.bytes);
    }
    fs::write(&batch, bytes).with_context(|| paths::shown(&batch))?;
    let reader = paths::root().join("testing/second-reader");
    // -B: the tests leave no bytecode in the source tree.
    let call = Call::new("python3").arg("-B").arg(reader).arg("--batch").arg(&batch).limit(LIMIT);
    let output = call.capture()?;
    let lines: Vec<_> = output.stdout.lines().collect();
    ensure!(lines.len() == samples.len(), "{} answers for {} dumps", lines.len(), samples.len());
    let mut found = Vec::new();
    for (sample, line) in samples.iter().zip(lines) {
        let second: Value = serde_json::from_str(line).with_context(|| format!("the answer for {}", sample.name))?;
        let first = first::file(&sample.bytes);
        if first != second {
            let mut text = String::new();
            difference(&first, &second, "", &mut text);
            found.push(Disagreement { name: sample.name.clone(), text });
        }
    }
    Ok(found)
}

/// Writes the path and both values of the first difference between two reports.
fn difference(first: &Value, second: &Value, path: &str, out: &mut String) {
    match (first, second) {
        (Value::Object(a), Value::Object(b)) if a.keys().eq(b.keys()) => {
            let changed = a.iter().zip(b.values()).find(|((_, left), right)| left != right);
            if let Some(((key, left), right)) = changed {
                difference(left, right, &format!("{path}.{key}"), out);
            }
        }
        (Value::Array(a), Value::Array(b)) => {
            let common = a.iter().zip(b).position(|(left, right)| left != right).unwrap_or(a.len().min(b.len()));
            match (a.get(common), b.get(common)) {
                (Some(left), Some(right)) => difference(left, right, &format!("{path}[{common}]"), out),
                (left, right) => told(&left, &right, &format!("{path}[{common}]"), out),
            }
        }
        _ => told(&Some(first), &Some(second), path, out),
    }
}

fn told(first: &Option<&Value>, second: &Option<&Value>, path: &str, out: &mut String) {
    let shown = |value: &Option<&Value>| match value {
        Some(value) => value.to_string().chars().take(300).collect(),
        None => "nothing".to_owned(),
    };
    let _ = write!(out, "{path}: kwab-format reads {}, the second reader {}", shown(first), shown(second));
}
