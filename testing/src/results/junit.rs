//! JUnit's XML, the form that CI systems read: a suite of cases that pass, fail or were left out.

use anyhow::{Context as _, Result};
use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};

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

/// One test case with its time and outcome.
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
pub fn text(suite: &str, cases: &[Case]) -> Result<String> {
    let mut group = TestSuite::new(plain(suite));
    group.add_test_cases(cases.iter().map(element));
    let mut report = Report::new(plain(suite));
    report.add_test_suite(group);
    report.to_string().context("writing JUnit's XML")
}

fn element(case: &Case) -> TestCase {
    let status = match &case.outcome {
        Outcome::Pass => TestCaseStatus::success(),
        Outcome::Skipped(why) => {
            let mut status = TestCaseStatus::skipped();
            status.set_message(plain(why));
            status
        }
        Outcome::Failure(how) => {
            let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
            status.set_message(plain(how));
            status
        }
    };
    let mut element = TestCase::new(plain(&case.name), status);
    element.set_classname(plain(&case.class));
    element
}

/// Text for an attribute, with a question mark for each control character: a program's escape sequences shall show.
fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_prints_markup_does_not_break_the_report() {
        let case = |name: &str, outcome| Case { class: "a".into(), name: name.into(), outcome };
        let failure = Outcome::Failure("`<x>` & \"y\"\u{7}".into());
        let cases = [case("b", failure), case("c", Outcome::Pass), case("d", Outcome::Skipped("x".into()))];
        let xml = text("contracts", &cases).unwrap();
        assert!(xml.contains(r#"<testsuite name="contracts" tests="3" skipped="1" errors="0" failures="1">"#), "{xml}");
        let read = Report::deserialize_from_str(&xml).unwrap();
        let [suite] = &read.test_suites[..] else { panic!("{xml}") };
        let names: Vec<_> = suite.test_cases.iter().map(|case| case.name.as_str()).collect();
        assert_eq!(names, ["b", "c", "d"]);
        assert!(suite.test_cases.iter().all(|case| case.classname.as_ref().is_some_and(|class| class.as_str() == "a")));
        let TestCaseStatus::NonSuccess { message: Some(message), .. } = &suite.test_cases[0].status else {
            panic!("{xml}")
        };
        assert_eq!(message.as_str(), "`<x>` & \"y\"?");
    }
}
