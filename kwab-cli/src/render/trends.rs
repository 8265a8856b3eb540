//! Words and columns of `kwab trends`: the builds, then a row per signature.

use std::fmt::Write as _;

use kwab::plain;

use super::{Tone, cut, paint};
use crate::output::Style;

/// Builds that have a column.
const COLUMNS: usize = 8;

/// A build as the page shows it.
pub(crate) struct ShownBuild<'t> {
    /// Its commit or name.
    pub name: &'t str,
    /// The day of its first dump.
    pub day: String,
    /// How many dumps are of it.
    pub dumps: u64,
}

/// A signature as the page shows it.
pub(crate) struct ShownCourse<'t> {
    /// How it stands in the newest build.
    pub state: &'static str,
    /// The name of the symptom.
    pub signature: &'t str,
    /// What happened, in one line.
    pub cause: &'t str,
    /// How many dumps have it.
    pub dumps: u64,
    /// Dumps by build, in the order of the builds; absent is none.
    pub builds: Vec<(usize, u64)>,
}

/// Renders builds and signatures as tables.
pub(crate) fn page(builds: &[ShownBuild<'_>], courses: &[ShownCourse<'_>], style: Style) -> String {
    let mut out = String::new();
    let mut line = |tone: Option<Tone>, text: &str| {
        let text = cut(text, style.width);
        let _ = writeln!(out, "{}", tone.map_or(text.clone(), |tone| paint(style, tone, &text)));
    };
    if builds.is_empty() {
        return "no dump here says which build it is of\n".to_string();
    }
    let first = if style.width == usize::MAX { 0 } else { builds.len().saturating_sub(COLUMNS) };
    line(Some(Tone::Head), &format!("{:>6}  {:<10}  {:>6}  {}", "build", "since", "dumps", "commit or build-id"));
    if first > 0 {
        line(Some(Tone::Dim), &format!("        … {first} older ones (--wide shows all)"));
    }
    for (index, build) in builds.iter().enumerate().skip(first) {
        let (number, name) = (index + 1, plain::line(build.name));
        line(Some(Tone::Dim), &format!("{number:>6}  {:<10}  {:>6}  {name}", build.day, build.dumps));
    }
    let columns: String = (first..builds.len()).map(|index| format!(" {:>5}", index + 1)).collect();
    line(Some(Tone::Head), &format!("{:>6}  state  signature{columns}  what", "dumps"));
    for course in courses {
        let counts = (first..builds.len()).map(|index| {
            let found = course.builds.iter().find(|(build, _)| *build == index);
            found.map_or("     ·".to_string(), |(_, dumps)| format!(" {dumps:>5}"))
        });
        let (counts, what): (String, _) = (counts.collect(), plain::line(course.cause));
        let ShownCourse { state, signature, dumps, .. } = course;
        line(None, &format!("{dumps:>6}  {state:<5}  {signature:<9}{counts}  {what}"));
    }
    out
}
