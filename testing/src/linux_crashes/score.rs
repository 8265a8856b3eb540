//! Asks `kwab` about a log and compares the answer with the truth: recognised, class, function, processor, task.
//!
//! The answer is what a user gets, `kwab import --json` and then `kwab inspect --json` of the first dump. A [`Check`]
//! that a way has no truth for is not made.

use std::collections::BTreeMap;
use std::fs;
use std::ops::RangeInclusive;
use std::path::Path;

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::kit::Architecture;
use super::ways::{self, Check, Way};
use crate::paths;
use crate::process::Call;

/// What `kwab` says of a log.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// Whether the log holds a death.
    pub died: bool,
    /// The headline of the report; empty if the log holds no death.
    pub headline: String,
    /// The kind of death, and the kinds of bug that the first hypothesis names.
    pub kinds: Vec<String>,
    /// The function that the cause or the first hypothesis names.
    pub functions: Vec<String>,
    /// The processor on which it died, if the report names one.
    pub cpu: Option<i64>,
    /// The name of the task that died, if the report names one.
    pub comm: Option<String>,
    /// The frames that have a source location: `function+offset/size` and `file:line`.
    #[serde(default)]
    pub lines: Vec<(String, String)>,
}

/// Asks `kwab` about a log; dumps go to `scratch`, where the module lies beside them if it was kept.
pub fn ask(kwab: &Path, log: &Path, scratch: &Path) -> Result<Answer> {
    let said = |call: Call| {
        // Every status is an answer: a death that was not understood and a damaged log are findings.
        let output = call.capture_any()?;
        serde_json::from_str::<Value>(&output.stdout).with_context(|| format!("{call}: {}", output.stderr.trim_end()))
    };
    let import = || Call::new(kwab).args(["import", "--json"]);
    let dumps = said(import().arg("--dry-run").arg(log))?;
    let died = dumps["dumps"].as_array().is_some_and(|dumps| dumps.iter().any(|dump| dump["kind"] != "recording"));
    if !died {
        return Ok(Answer::default());
    }
    let dump = scratch.join("dump.kwab");
    said(import().args(["--force", "--crash", "1", "--output"]).arg(&dump).arg(log))?;
    let inspect = Call::new(kwab).args(["inspect", "--json"]);
    let module = scratch.join("crashme.ko");
    let inspect = if module.is_file() { inspect.arg("--symbols").arg(&module) } else { inspect };
    let inspect = said(inspect.arg(&dump))?;
    fs::remove_file(&dump).with_context(|| format!("cannot remove {}", paths::shown(&dump)))?;
    Ok(answer(&inspect))
}

/// What `kwab inspect --json` says of a death.
fn answer(inspect: &Value) -> Answer {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let (cause, first) = (&inspect["cause"], &inspect["hypotheses"][0]);
    let location = text(&cause["place"]).map(|symbol| symbol.split('+').next().unwrap_or_default().to_owned());
    Answer {
        died: true,
        headline: text(&inspect["headline"]).unwrap_or_default(),
        kinds: [&cause["kind"], &cause["message"], &first["class"]].into_iter().filter_map(text).collect(),
        functions: location.into_iter().chain(text(&first["claim"])).collect(),
        cpu: cause["cpu"].as_i64(),
        comm: text(&cause["comm"]),
        lines: lines(inspect),
    }
}

/// The frames of all printed backtraces that have a source location.
fn lines(inspect: &Value) -> Vec<(String, String)> {
    let each = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let frames = each(&inspect["backtraces"]).into_iter().flat_map(|trace| each(&trace["frames"]));
    let located = frames.filter_map(|frame| {
        let place = frame["place"].as_str().filter(|place| place.contains(".c:"))?;
        Some((frame["symbol"].as_str()?.to_owned(), place.to_owned()))
    });
    located.collect()
}

/// Whether a frame of the function has a line of its definition.
fn is_located(answer: &Answer, function: &str, file: &str, lines: &RangeInclusive<usize>) -> bool {
    let number = |place: &str| {
        let (path, rest) = place.rsplit_once(&format!("{file}:"))?;
        let digits = rest.split(|c: char| !c.is_ascii_digit()).next()?;
        (path.is_empty() || path.ends_with('/')).then(|| digits.parse::<usize>().ok())?
    };
    let own = |symbol: &str| symbol.split('+').next() == Some(function);
    answer.lines.iter().any(|(symbol, place)| own(symbol) && number(place).is_some_and(|line| lines.contains(&line)))
}

/// Whether an answer passes each check of a way that the way has a truth for.
pub fn compare(
    way: &Way,
    on: Architecture,
    classes: &BTreeMap<String, Vec<String>>,
    answer: &Answer,
) -> BTreeMap<Check, bool> {
    let said = |words: &[String]| {
        let mut texts = answer.kinds.iter().chain([&answer.headline]).map(|text| text.to_lowercase());
        texts.any(|text| words.iter().any(|word| text.contains(word.as_str())))
    };
    let blamed = |function: &str| {
        let word = |text: &str| text.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == function);
        word(&answer.headline) || answer.functions.iter().any(|text| word(text))
    };
    let runs = |comm: &str| match comm.strip_suffix(':') {
        Some(beginning) => answer.comm.as_deref().is_some_and(|name| name.starts_with(beginning)),
        None => answer.comm.as_deref() == Some(comm),
    };
    let located = way.function().and_then(|function| {
        let (file, lines) = ways::definition(&function).ok()??;
        Some(is_located(answer, &function, &file, &lines))
    });
    let checks = [
        (Check::Recognised, Some(answer.died)),
        (Check::Class, classes.get(way.class(on)).map(|words| answer.died && said(words))),
        (Check::Function, way.function().map(|function| blamed(&function))),
        (Check::Cpu, way.cpu().map(|cpu| answer.cpu == Some(cpu))),
        (Check::Comm, way.comm().map(runs)),
        (Check::Line, located),
    ];
    checks.into_iter().filter_map(|(check, passed)| passed.map(|passed| (check, passed))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(name: &str, answer: &Answer) -> Vec<Check> {
        let table = ways::table().unwrap();
        let way = table.ways.iter().find(|way| way.name == name).unwrap();
        let checks = compare(way, Architecture::Amd64, &table.classes, answer);
        checks.into_iter().filter(|(_, passed)| !passed).map(|(check, _)| check).collect()
    }

    #[test]
    fn an_answer_is_compared_with_each_part_of_the_truth() {
        let (file, lines) = ways::definition("crashme_soft_lockup").unwrap().unwrap();
        let place = format!("/module/{file}:{} [crashme]", lines.end());
        let right = Answer {
            died: true,
            headline: "kernel soft lockup on CPU 1, running crash-me[147]".into(),
            functions: vec!["crashme_soft_lockup".into()],
            cpu: Some(1),
            comm: Some("crash-me".into()),
            lines: vec![("crashme_soft_lockup+0x5/0x10".into(), place)],
            ..Answer::default()
        };
        assert_eq!(checked("soft-lockup", &right), []);
        assert_eq!(checked("soft-lockup", &Answer { cpu: Some(0), ..right.clone() }), [Check::Cpu]);
        let other = Answer { functions: vec!["crashme_soft_lockup_of_another".into()], ..right.clone() };
        assert_eq!(checked("soft-lockup", &other), [Check::Function]);
        assert_eq!(checked("rcu-stall", &right), [Check::Class, Check::Function, Check::Line]);
        let behind = vec![("crashme_soft_lockup+0x5/0x10".to_owned(), format!("{file}:{}", lines.end() + 1))];
        assert_eq!(checked("soft-lockup", &Answer { lines: behind, ..right.clone() }), [Check::Line]);
        assert_eq!(checked("soft-lockup", &Answer::default()), Check::ALL);
    }

    #[test]
    fn a_worker_is_known_by_the_beginning_of_its_name() {
        let worker = Answer { comm: Some("kworker/1:1".into()), ..Answer::default() };
        assert!(!checked("work", &worker).contains(&Check::Comm));
    }
}
