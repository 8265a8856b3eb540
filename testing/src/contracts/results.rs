//! Writes a contract run for machines: JSON with everything, JUnit XML for CI.

use std::fmt::Write as _;

use anyhow::Result;
use serde::Serialize;

use super::verdict::Verdict;
use crate::jobs::Report;
use crate::paths;

/// One contract's place in the results.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// Its name.
    pub name: String,
    /// What the judge says.
    pub verdict: Verdict,
    /// What our kernel did.
    pub ours: Report,
    /// What Linux did.
    pub linux: Report,
}

/// Writes `build/results/contracts.json` and `build/results/contracts.xml`.
pub fn write(rows: &[Row]) -> Result<()> {
    let folder = paths::build("results")?;
    paths::write(&folder.join("contracts.json"), &serde_json::to_vec_pretty(rows)?)?;
    paths::write(&folder.join("contracts.xml"), junit(rows).as_bytes())
}

fn junit(rows: &[Row]) -> String {
    let failures = rows.iter().filter(|row| row.verdict.is_failure()).count();
    let mut text = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let _ = writeln!(text, "<testsuite name=\"contracts\" tests=\"{}\" failures=\"{failures}\">", rows.len());
    for row in rows {
        let (area, name) = row.name.split_once('/').unwrap_or(("", &row.name));
        let _ = write!(text, "  <testcase classname=\"{}\" name=\"{}\"", escaped(area), escaped(name));
        let message = escaped(&row.verdict.to_string());
        let _ = match &row.verdict {
            Verdict::Same | Verdict::Unsteady(_) => writeln!(text, "/>"),
            Verdict::Known(_) => writeln!(text, "><skipped message=\"{message}\"/></testcase>"),
            _ => writeln!(text, "><failure message=\"{message}\"/></testcase>"),
        };
    }
    text.push_str("</testsuite>\n");
    text
}

/// Text for an attribute; control characters, which XML cannot hold, become question marks.
fn escaped(text: &str) -> String {
    let mut result = String::new();
    for c in text.chars() {
        match c {
            '&' => result.push_str("&amp;"),
            '<' => result.push_str("&lt;"),
            '>' => result.push_str("&gt;"),
            '"' => result.push_str("&quot;"),
            c if c.is_control() => result.push('?'),
            c => result.push(c),
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jobs::End;

    #[test]
    fn a_program_that_prints_markup_does_not_break_the_report() {
        let report = Report { name: "a/b".into(), lines: Vec::new(), end: End::Exit(0) };
        let verdict = Verdict::Differs("`<x>` & \"y\"\u{7}".into());
        let row = Row { name: "a/b".into(), verdict, ours: report.clone(), linux: report };
        let xml = junit(&[row]);
        assert!(xml.contains("failures=\"1\""), "{xml}");
        assert!(xml.contains("message=\"`&lt;x&gt;` &amp; &quot;y&quot;?\""), "{xml}");
    }
}
