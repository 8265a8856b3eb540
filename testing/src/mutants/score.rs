//! Asks `kwab` about a case and compares its answer with the mutated function.
//!
//! The answer is what a user gets: `kwab triage` with the mutated kernel's image for names, as JSON and as text, then
//! `kwab inspect`. From a serial log the dump comes by `kwab import`. Of a load that printed something else, it is
//! what `kwab oracle` says of its calls, beside those of the kernel without a mutation.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::names::{Blamed, Names};
use super::traces;
use crate::paths;
use crate::process::Call;

/// Lines of the text that a user sees without scrolling.
const SCREEN: usize = 40;

/// A first hypothesis above this score must not blame another function.
pub const SURE: f64 = 0.8;

/// A first hypothesis below this score is a "don't know".
pub const LIKELY: f64 = 0.5;

/// What `kwab` says of a case, beside the truth.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Score {
    /// Whether there was anything to judge: a dump, or a log in which something died.
    pub judged: bool,
    /// Whether the mutated function is named by the first hypothesis: its claim or its evidence.
    pub first: bool,
    /// By one of the first three.
    pub three: bool,
    /// On the first screen of `kwab triage`.
    pub screen: bool,
    /// Anywhere in the output of `kwab triage` or `kwab inspect`.
    pub anywhere: bool,
    /// The first hypothesis' score; `None` without a hypothesis.
    pub score: Option<f64>,
    /// Name of the rule behind it; empty without a hypothesis.
    pub rule: String,
    /// The sentence it claims; empty without a hypothesis.
    pub claim: String,
    /// The function that its claim names, if that is not the mutated one.
    pub blames: Option<String>,
    /// Status of `kwab triage`.
    pub status: Option<i32>,
    /// Whether `kwab check` calls the dump sound.
    pub sound: bool,
}

impl Score {
    /// Whether the first hypothesis is above [`SURE`] and its claim names a function of the kernel while neither the
    /// claim nor the evidence names the mutated one.
    #[must_use]
    pub fn is_wrong(&self) -> bool {
        self.blames.is_some() && self.score.is_some_and(|score| score > SURE)
    }

    /// Whether there is no hypothesis that is likelier than not.
    #[must_use]
    pub fn is_silent(&self) -> bool {
        self.judged && self.score.is_none_or(|score| score < LIKELY)
    }
}

/// How `kwab` is asked about one mutant.
pub struct Examiner<'a> {
    /// The program `kwab`.
    pub kwab: &'a Path,
    /// The kernel with the mutation.
    pub kernel: &'a Path,
    /// The functions of the kernel's image.
    pub names: &'a Names,
    /// The mutated ones.
    pub blamed: &'a Blamed,
    /// Where `kwab` keeps its symbol caches.
    pub cache: PathBuf,
}

impl Examiner<'_> {
    /// Asks about a dump. The text of both reports is kept beside it.
    pub fn dump(&self, dump: &Path) -> Result<Score> {
        let triage = self.with_symbols("triage").arg("--json").arg(dump).capture_any()?;
        let said: Value = serde_json::from_str(&triage.stdout)
            .with_context(|| format!("kwab triage of {}: {}", paths::shown(dump), triage.stderr.trim_end()))?;
        let text = self.with_symbols("triage").arg(dump).capture_any()?.stdout;
        let inspect = self.with_symbols("inspect").arg(dump).capture_any()?.stdout;
        paths::write(&dump.with_extension("txt"), format!("{text}\n{inspect}").as_bytes())?;
        let mut score = self.compare(&said, &text, &inspect);
        score.status = triage.status.code();
        score.sound = self.kwab().arg("check").arg(dump).capture_any()?.status.success();
        Ok(score)
    }

    /// Asks about a serial log: the dump of the first crash in it, which is kept beside it. Of an empty
    /// one, as a kernel without a console leaves, there is nothing to judge.
    pub fn log(&self, log: &Path) -> Result<Score> {
        let length = fs::metadata(log).with_context(|| paths::shown(log))?.len();
        if length == 0 {
            return Ok(Score::default());
        }
        let import = self.kwab().args(["import", "--json", "--dry-run"]).arg(log).capture_any()?;
        let said: Value = serde_json::from_str(&import.stdout)
            .with_context(|| format!("kwab import of {}: {}", paths::shown(log), import.stderr.trim_end()))?;
        let died = |dump: &Value| dump["kind"] != "recording";
        let Some(at) = said["dumps"].as_array().and_then(|dumps| dumps.iter().position(died)) else {
            return Ok(Score::default());
        };
        let dump: PathBuf = log.with_extension("serial.kwab");
        let call = self.kwab().args(["import", "--force", "--crash", &(at + 1).to_string(), "--output"]);
        call.arg(&dump).arg(log).capture_any()?;
        if !dump.is_file() {
            return Ok(Score::default());
        }
        self.dump(&dump)
    }

    /// Asks about the calls of a load without a mutation and with it, as [`traces::record`] left them. The text is kept
    /// beside them.
    pub fn traces(&self, folder: &Path) -> Result<Option<Score>> {
        let (good, bad) = (folder.join(traces::GOOD), folder.join(traces::BAD));
        if !good.is_file() || !bad.is_file() {
            return Ok(None);
        }
        let program = traces::program(folder)?;
        let ask = || self.with_symbols("oracle").args(["--program", &program]).arg(&good).arg(&bad);
        self.oracle(&ask, &folder.join("oracle.txt"))
    }

    /// The same with the paths of these calls through the kernel, as [`traces::record_paths`] left them.
    pub fn paths(&self, folder: &Path) -> Result<Option<Score>> {
        let [good, again, bad] =
            [traces::PATHS_GOOD, traces::PATHS_AGAIN, traces::PATHS_BAD].map(|name| folder.join(name));
        let of = |log: &Path| traces::of_log(log);
        if ![&good, &again, &bad].iter().all(|log| of(log).is_file()) {
            return Ok(None);
        }
        let program = traces::program_of_paths(folder)?;
        let ask = || {
            let call = self.with_symbols("oracle").args(["--program", &program]).arg(&good).arg(&bad);
            let call = call.arg("--good-paths").arg(of(&good)).arg("--bad-paths").arg(of(&bad));
            call.arg("--again-paths").arg(of(&again))
        };
        self.oracle(&ask, &folder.join("oracle-paths.txt"))
    }

    fn oracle(&self, ask: &dyn Fn() -> Call, text: &Path) -> Result<Option<Score>> {
        let said = ask().arg("--json").capture_any()?;
        let told = ask().capture_any()?;
        paths::write(text, told.stdout.as_bytes())?;
        let Ok(report) = serde_json::from_str::<Value>(&said.stdout) else { return Ok(Some(Score::default())) };
        let functions: Vec<&str> =
            report["behind"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let named = |count: usize| {
            let first: Vec<&str> = functions.iter().take(count).copied().collect();
            self.names.names(&first.join("\n"), self.blamed)
        };
        let screen: Vec<&str> = told.stdout.lines().take(SCREEN).collect();
        Ok(Some(Score {
            judged: report["verdict"] == "differs" || report["partings"][0].is_object(),
            first: named(1),
            three: named(3),
            screen: self.names.names(&screen.join("\n"), self.blamed),
            anywhere: self.names.names(&told.stdout, self.blamed),
            claim: report["first"]["bad"].as_str().or(report["first"]["good"].as_str()).unwrap_or_default().to_owned(),
            status: said.status.code(),
            ..Score::default()
        }))
    }

    fn compare(&self, said: &Value, text: &str, inspect: &str) -> Score {
        let hypotheses = said["hypotheses"].as_array().map_or(&[][..], Vec::as_slice);
        let named = |hypothesis: &Value| self.names.names(&words(hypothesis), self.blamed);
        let screen: Vec<&str> = text.lines().take(SCREEN).collect();
        let first = hypotheses.first();
        let string = |key: &str| first.and_then(|first| first[key].as_str()).unwrap_or_default().to_owned();
        let (is_first, claim) = (first.is_some_and(named), string("claim"));
        let blames = if is_first { None } else { self.names.any(&claim).map(str::to_owned) };
        Score {
            judged: true,
            first: is_first,
            three: hypotheses.iter().take(3).any(named),
            screen: self.names.names(&screen.join("\n"), self.blamed),
            anywhere: hypotheses.iter().any(named) || self.names.names(&format!("{text}\n{inspect}"), self.blamed),
            score: first.and_then(|first| first["score"].as_f64()),
            rule: string("rule"),
            claim,
            blames,
            status: None,
            sound: false,
        }
    }

    fn kwab(&self) -> Call {
        Call::new(self.kwab).env("XDG_CACHE_HOME", &self.cache)
    }

    fn with_symbols(&self, command: &str) -> Call {
        self.kwab().arg(command).arg("--symbols").arg(self.kernel)
    }
}

/// A hypothesis' claim and what supports it.
fn words(hypothesis: &Value) -> String {
    let evidence = || hypothesis["evidence"].as_array().into_iter().flatten();
    let functions = evidence().flat_map(|evidence| evidence["functions"].as_array().into_iter().flatten());
    let texts = [&hypothesis["claim"]].into_iter().chain(evidence().map(|evidence| &evidence["text"]));
    let texts = texts.chain(functions.flat_map(|function| [&function["name"], &function["why"]]));
    texts.filter_map(Value::as_str).collect::<Vec<_>>().join("\n")
}

/// Keeps a case's files where the next run does not look: the dump beside the log.
pub fn keep(folder: &Path, dump: Option<&[u8]>, serial: &[u8]) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", paths::shown(folder)))?;
    paths::write(&folder.join("serial.log"), serial)?;
    dump.map_or(Ok(()), |dump| paths::write(&folder.join("dump.kwab"), dump))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn score(first: bool, value: Option<f64>, blames: Option<&str>) -> Score {
        Score { judged: true, first, score: value, blames: blames.map(str::to_owned), ..Score::default() }
    }

    #[test]
    fn only_a_sure_first_hypothesis_that_blames_another_function_is_wrong() {
        assert!(score(false, Some(0.85), Some("kernel::f")).is_wrong());
        assert!(!score(false, Some(0.8), Some("kernel::f")).is_wrong());
        assert!(!score(false, Some(0.95), None).is_wrong());
        assert!(!score(true, Some(0.95), None).is_wrong());
    }

    #[test]
    fn no_likely_hypothesis_is_silence_and_no_dump_is_not() {
        assert!(score(false, Some(0.45), None).is_silent() && score(false, None, None).is_silent());
        assert!(!score(false, Some(0.5), None).is_silent());
        assert!(!Score::default().is_silent());
    }

    #[test]
    fn evidence_counts_as_a_part_of_its_hypothesis_and_what_speaks_against_it_does_not() {
        let hypothesis: Value = serde_json::json!({
            "claim": "c", "evidence": [{"text": "e", "weight": 0.1}], "against": [{"text": "a", "weight": 0.1}],
        });
        assert_eq!(words(&hypothesis), "c\ne");
    }
}
