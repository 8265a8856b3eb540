//! JUnit's XML, the form that CI systems read: a suite of cases that pass, fail or were left out.

use std::fmt::Write as _;

/// How one case went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// As it should.
    Pass,
    /// Not counted, with the reason.
    Skipped(String),
    /// Wrong, and how.
    Failure(String),
}

/// One case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// The group it belongs to.
    pub class: String,
    /// Its name in the group.
    pub name: String,
    /// How it went.
    pub outcome: Outcome,
}

impl Case {
    /// What is wrong, when something is.
    pub fn failure(&self) -> Option<String> {
        match &self.outcome {
            Outcome::Failure(how) => Some(format!("{}/{}: {how}", self.class, self.name)),
            Outcome::Pass | Outcome::Skipped(_) => None,
        }
    }
}

/// The whole document.
pub fn text(suite: &str, cases: &[Case]) -> String {
    let count = |wanted: fn(&Outcome) -> bool| cases.iter().filter(|case| wanted(&case.outcome)).count();
    let failures = count(|outcome| matches!(outcome, Outcome::Failure(_)));
    let skipped = count(|outcome| matches!(outcome, Outcome::Skipped(_)));
    let mut text = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let _ = writeln!(
        text,
        "<testsuite name=\"{}\" tests=\"{}\" failures=\"{failures}\" skipped=\"{skipped}\">",
        escaped(suite),
        cases.len()
    );
    for case in cases {
        let _ = write!(text, "  <testcase classname=\"{}\" name=\"{}\"", escaped(&case.class), escaped(&case.name));
        let _ = match &case.outcome {
            Outcome::Pass => writeln!(text, "/>"),
            Outcome::Skipped(why) => writeln!(text, "><skipped message=\"{}\"/></testcase>", escaped(why)),
            Outcome::Failure(how) => writeln!(text, "><failure message=\"{}\"/></testcase>", escaped(how)),
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

    #[test]
    fn a_program_that_prints_markup_does_not_break_the_report() {
        let case = |name: &str, outcome| Case { class: "a".into(), name: name.into(), outcome };
        let failure = Outcome::Failure("`<x>` & \"y\"\u{7}".into());
        let xml =
            text("contracts", &[case("b", failure), case("c", Outcome::Pass), case("d", Outcome::Skipped("x".into()))]);
        assert!(xml.contains("tests=\"3\" failures=\"1\" skipped=\"1\""), "{xml}");
        assert!(xml.contains("message=\"`&lt;x&gt;` &amp; &quot;y&quot;?\""), "{xml}");
        assert!(xml.contains("<testcase classname=\"a\" name=\"c\"/>"), "{xml}");
    }
}
