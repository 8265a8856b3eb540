//! The rows of a run and the tables made of them.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use super::guest::{Difference, Sort};
use super::list::Mutant;
use super::names::Blamed;
use super::score::{LIKELY, SURE, Score};
use crate::results::Circumstances;

/// How long the parts of a mutant took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Seconds {
    /// From the start of QEMU to its end.
    pub boot: f64,
    /// All calls of `kwab`.
    pub score: f64,
}

/// A mutant and its outcome.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Row {
    /// Names its folder.
    pub id: String,
    /// File, place and change in one line.
    pub name: String,
    /// The function around the change.
    pub function: Option<String>,
    /// The outcome of its boot.
    pub sort: Sort,
    /// Whether it did something else once and not when asked again.
    pub unsteady: bool,
    /// How its boot ended.
    pub ending: String,
    /// How many jobs ended.
    pub jobs: usize,
    /// The jobs that did something else.
    pub differences: Vec<Difference>,
    /// The functions that a right answer names.
    pub blamed: Blamed,
    /// What `kwab` says of the dump; `None` when nothing died or hung.
    pub dump: Option<Score>,
    /// What it says of the serial log alone.
    pub serial: Option<Score>,
    /// What its oracle says of the calls of a load that printed something else.
    #[serde(default)]
    pub traces: Option<Score>,
    /// What it says with the paths of calls through the kernel, also of a load under which something died.
    #[serde(default)]
    pub paths: Option<Score>,
    /// How long it took.
    pub seconds: Seconds,
}

impl Row {
    /// The row of a mutant that was not booted yet.
    #[must_use]
    pub fn of(mutant: &Mutant) -> Self {
        Self {
            id: mutant.id(),
            name: mutant.name.clone(),
            function: mutant.function.as_ref().map(|function| function.name.clone()),
            sort: Sort::Unnoticed,
            unsteady: false,
            ending: String::new(),
            jobs: 0,
            differences: Vec::new(),
            blamed: Blamed::default(),
            dump: None,
            serial: None,
            traces: None,
            paths: None,
            seconds: Seconds::default(),
        }
    }

    /// What a developer has who looks at the dump and, with the build that worked, at the paths: named where one of
    /// the reports names it.
    #[must_use]
    pub fn either(&self) -> Score {
        let told: Vec<&Score> = [&self.dump, &self.traces, &self.paths].into_iter().flatten().collect();
        let any = |says: fn(&Score) -> bool| told.iter().any(|score| says(score));
        let sure = self.dump.clone().unwrap_or_default();
        Score {
            judged: any(|score| score.judged),
            first: any(|score| score.first),
            three: any(|score| score.three),
            screen: any(|score| score.screen),
            anywhere: any(|score| score.anywhere),
            ..sure
        }
    }

    /// Whether neither report names anything: the dump's has no likely hypothesis, the oracle's found no difference.
    #[must_use]
    pub fn is_silent(&self) -> bool {
        let tells = |score: &Score| score.judged && !score.is_silent();
        let differs = [&self.traces, &self.paths].into_iter().flatten().any(|score| score.judged);
        !(differs || self.dump.as_ref().is_some_and(tells))
    }

    /// One line about it.
    #[must_use]
    pub fn line(&self) -> String {
        let all = [("dump", &self.dump), ("serial", &self.serial), ("calls", &self.traces), ("paths", &self.paths)];
        let said = all.map(|(name, score)| match score {
            Some(score) => format!(" {name} {}", word(score)),
            None => String::new(),
        });
        let Seconds { boot, score } = self.seconds;
        let times = format!("{boot:.0}+{score:.0} s");
        format!("{:<17}{} {} {} ({times})", self.sort.name(), said.concat(), self.id, self.name)
    }
}

/// How well an answer is, in a word.
fn word(score: &Score) -> &'static str {
    match score {
        Score { judged: false, .. } => "none",
        Score { first: true, .. } => "first",
        score if score.is_wrong() => "WRONG",
        Score { three: true, .. } => "three",
        Score { screen: true, .. } => "screen",
        Score { anywhere: true, .. } => "anywhere",
        score if score.is_silent() => "silent",
        _ => "other",
    }
}

/// The mutants of one seed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Record {
    /// What the sample was drawn by.
    pub seed: u64,
    /// When and with what it was judged.
    #[serde(default)]
    pub circumstances: Option<Circumstances>,
    /// How many mutants there are to draw from.
    pub listed: usize,
    /// How many of them cannot be switched on, by reason.
    #[serde(default)]
    pub left_out: BTreeMap<String, usize>,
    /// How many of the others the loads do not come to.
    #[serde(default)]
    pub not_reached: usize,
    /// The rows, in the order of the sample.
    pub rows: Vec<Row>,
}

/// Where `kwab` takes its evidence from.
type Of = fn(&Row) -> Option<&Score>;

const SOURCES: [(&str, Of); 2] = [("dump", |row| row.dump.as_ref()), ("serial log", |row| row.serial.as_ref())];

/// A column's title, and what counts in it.
type Count = (&'static str, fn(&Score) -> bool);

/// What counts in a table, by column.
const COUNTS: [Count; 7] = [
    ("judged", |score| score.judged),
    ("first", |score| score.first),
    ("first three", |score| score.three),
    ("screen", |score| score.screen),
    ("report", |score| score.anywhere),
    ("wrong", Score::is_wrong),
    ("don't know", Score::is_silent),
];

/// What the columns mean, for the foot of the tables.
fn definitions() -> String {
    format!(
        "A case is a mutant whose kernel died or hung, or under which a program died. Columns count cases by\n\
         where the mutated function is named (by its name, or by `symbol+offset` of code that was inlined from\n\
         it): in the claim or the evidence of the first hypothesis or of one of the first three, in the first 40\n\
         lines of `kwab triage`, anywhere in `kwab triage` or `kwab inspect`. wrong: the first hypothesis has a\n\
         score above {SURE}, its claim names a function of the kernel, and neither claim nor evidence names the\n\
         mutated one. don't know: no hypothesis has a score of {LIKELY} or more. A case that is not judged left\n\
         no dump, or a log without a death. Of a different output, `kwab oracle` judges the calls of one load: the\n\
         mutated function is the first, one of the first three, on the first screen, anywhere in its report; from\n\
         paths, the code that ran in each call is recorded too, by lines: a switch stays on the line it mutates.\n\
         either: named by the dump's report or by one of the oracle's, each counted where it is best; wrong by the\n\
         dump's; don't know: the dump's has no hypothesis of {LIKELY} or more, and no oracle found a difference.\n\
         Classes of bugs are not scored: a mutation has none that an independent source knows.\n"
    )
}

/// The tables: sorts, scores, calibration.
#[must_use]
pub fn tables(records: &[Record]) -> String {
    let rows: Vec<&Row> = records.iter().flat_map(|record| &record.rows).collect();
    let mut text = String::new();
    for Record { seed, circumstances, listed, left_out, not_reached, rows } in records {
        let cases = rows.iter().filter(|row| row.sort.is_case()).count();
        let noticed = rows.iter().filter(|row| row.sort != Sort::Unnoticed).count();
        let out = left_out.values().sum::<usize>();
        let by = circumstances
            .as_ref()
            .map_or(String::new(), |by| format!(" ({}, kernel at commit {}, QEMU {})", by.date, by.commit, by.qemu));
        let _ =
            writeln!(text, "Seed {seed}{by}: {} of {listed} mutants, {noticed} noticed, {cases} cases.", rows.len());
        let _ = writeln!(text, "{out} cannot be switched on; the loads do not come to {not_reached} of the others.\n");
    }
    let _ = writeln!(text, "| outcome | mutants |\n|---|---:|");
    for sort in Sort::ALL {
        let count = rows.iter().filter(|row| row.sort == sort).count();
        let _ = writeln!(text, "| {} | {count} |", sort.name());
    }
    let _ = writeln!(text, "\n| case | from | cases | {} |", COUNTS.map(|count| count.0).join(" | "));
    let _ = writeln!(text, "|---|---|---:|{}", "---:|".repeat(COUNTS.len()));
    for (name, of) in SOURCES {
        for sort in Sort::ALL.into_iter().filter(|sort| sort.is_case()) {
            let scores = rows.iter().filter(|row| row.sort == sort).filter_map(|row| of(row));
            counts(&mut text, sort.name(), name, &scores.collect::<Vec<_>>());
        }
        let scores: Vec<&Score> = rows.iter().filter_map(|row| of(row)).collect();
        counts(&mut text, "all", name, &scores);
    }
    let of_calls: Vec<&Score> = rows.iter().filter_map(|row| row.traces.as_ref()).collect();
    counts(&mut text, Sort::DifferentOutput.name(), "calls", &of_calls);
    for sort in [Sort::ProgramDied, Sort::KernelDied, Sort::Hung, Sort::DifferentOutput] {
        let of_paths = rows.iter().filter(|row| row.sort == sort).filter_map(|row| row.paths.as_ref());
        counts(&mut text, sort.name(), "paths", &of_paths.collect::<Vec<_>>());
    }
    either(&mut text, &rows);
    calibration(&mut text, &rows);
    let _ = write!(text, "\n{}", definitions());
    text
}

/// The row of all that was noticed. Its last column is of both reports: a dump that says nothing is not silence yet.
fn either(text: &mut String, rows: &[&Row]) {
    let noticed: Vec<&&Row> = rows.iter().filter(|row| row.sort != Sort::Unnoticed).collect();
    let scores: Vec<Score> = noticed.iter().map(|row| row.either()).collect();
    let mut counted = counted(&scores.iter().collect::<Vec<_>>());
    if let Some(last) = counted.last_mut() {
        *last = noticed.iter().filter(|row| row.is_silent()).count();
    }
    line_of(text, ("all noticed", "either"), scores.len(), &counted);
}

fn counts(text: &mut String, case: &str, source: &str, scores: &[&Score]) {
    line_of(text, (case, source), scores.len(), &counted(scores));
}

/// How many of the scores count in each column.
fn counted(scores: &[&Score]) -> [usize; COUNTS.len()] {
    COUNTS.map(|(_, counts)| scores.iter().filter(|score| counts(score)).count())
}

fn line_of(text: &mut String, (case, source): (&str, &str), all: usize, counted: &[usize]) {
    let counted: Vec<String> = counted.iter().map(usize::to_string).collect();
    let _ = writeln!(text, "| {case} | {source} | {all} | {} |", counted.join(" | "));
}

/// The bands of scores that are calibrated, each with its upper end.
const BANDS: [(f64, &str); 5] =
    [(0.5, "below 0.5"), (0.7, "0.5-0.7"), (0.8, "0.7-0.8"), (0.9, "0.8-0.9"), (1.1, "0.9-1")];

/// Of the first hypotheses in each band, how many name the mutated function, another one, or none.
fn calibration(text: &mut String, rows: &[&Row]) {
    let head = "first hypothesis' score | right (names it) | wrong (its claim names another) | names none";
    let _ = writeln!(text, "\n| from | {head} |\n|---|---|---:|---:|---:|");
    for (name, of) in SOURCES {
        let mut low = 0.0;
        for (high, band) in BANDS {
            let inside = |score: &&Score| score.score.is_some_and(|score| (low..high).contains(&score));
            let scores: Vec<&Score> = rows.iter().filter_map(|row| of(row)).filter(inside).collect();
            let right = scores.iter().filter(|score| score.first).count();
            let wrong = scores.iter().filter(|score| score.blames.is_some()).count();
            let _ = writeln!(text, "| {name} | {band} | {right} | {wrong} | {} |", scores.len() - right - wrong);
            low = high;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(sort: Sort, score: Option<Score>) -> Row {
        Row {
            id: "0".into(),
            name: "x".into(),
            function: None,
            sort,
            unsteady: false,
            ending: String::new(),
            jobs: 0,
            differences: Vec::new(),
            blamed: Blamed::default(),
            dump: score,
            serial: None,
            traces: None,
            paths: None,
            seconds: Seconds::default(),
        }
    }

    #[test]
    fn every_case_is_counted_once_per_column_and_each_score_in_one_band() {
        let right = Score { judged: true, first: true, three: true, score: Some(0.8), ..Score::default() };
        let wrong = Score { judged: true, score: Some(0.95), blames: Some("kernel::f".into()), ..Score::default() };
        let unsure = Score { judged: true, score: Some(0.4), ..Score::default() };
        let differs = Score { judged: true, ..Score::default() };
        let rows = vec![
            row(Sort::KernelDied, Some(right)),
            row(Sort::Hung, Some(wrong)),
            row(Sort::Hung, Some(Score::default())),
            Row { paths: Some(differs), ..row(Sort::Hung, Some(unsure)) },
            row(Sort::Unnoticed, None),
        ];
        let text = tables(&[Record {
            seed: 1,
            circumstances: None,
            listed: 9,
            left_out: BTreeMap::new(),
            not_reached: 0,
            rows,
        }]);
        assert!(text.contains("Seed 1: 5 of 9 mutants, 4 noticed, 4 cases."), "{text}");
        // The dump alone says nothing of one case, and the oracle does; nothing was judged of another.
        assert!(text.contains("| all noticed | either | 4 | 3 | 1 | 1 | 0 | 0 | 1 | 1 |"), "{text}");
        assert!(text.contains("| hung | 3 |"), "{text}");
        assert!(text.contains("| all | dump | 4 | 3 | 1 | 1 | 0 | 0 | 1 | 1 |"), "{text}");
        assert!(text.contains("| dump | 0.8-0.9 | 1 | 0 | 0 |"), "{text}");
        assert!(text.contains("| dump | 0.9-1 | 0 | 1 | 0 |"), "{text}");
    }
}
