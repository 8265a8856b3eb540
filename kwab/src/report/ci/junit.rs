//! The report as JUnit's XML: a case per crash, which fails when the crash is new.

use quick_junit::{NonSuccessKind, Report, SerializeError, TestCase, TestCaseStatus, TestSuite};

use super::{Bug, CiReport};
use crate::plain;
use crate::units::count;

/// The document. A run without any crash has one case that passes, so that no system takes it for one that never ran.
///
/// # Errors
/// When the document cannot be written.
pub fn junit(report: &CiReport) -> Result<String, SerializeError> {
    let mut suite = TestSuite::new("kwab ci");
    suite.add_test_cases(report.new.iter().map(|bug| {
        let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
        status.set_type("new crash").set_message(text(&bug.title)).set_description(details(bug));
        case(&bug.key, status)
    }));
    suite.add_test_cases(report.known.iter().map(|bug| {
        let mut status = TestCaseStatus::skipped();
        let why = if bug.comment.is_empty() { "in the baseline" } else { &bug.comment };
        status.set_type("known crash").set_message(text(why));
        case(&bug.key, status)
    }));
    suite.add_test_cases(report.gone.iter().map(|known| case(&known.key, TestCaseStatus::success())));
    if suite.test_cases.is_empty() {
        suite.add_test_case(case("no crash", TestCaseStatus::success()));
    }
    let mut whole = Report::new("kwab ci");
    whole.add_test_suite(suite);
    // A runner must not find a command in a document that is printed (`super::github`).
    whole.to_string().map(|text| without_total(&text).replace("##", "#&#35;"))
}

/// The document without the number of all skipped cases, which the schemas of JUnit's XML allow for a suite only.
fn without_total(text: &str) -> String {
    let whole = || {
        let (before, rest) = text.split_once("<testsuites ")?;
        let (attributes, behind) = rest.split_once('>')?;
        let (first, rest) = attributes.split_once(" skipped=\"")?;
        let (_, last) = rest.split_once('"')?;
        Some(format!("{before}<testsuites {first}{last}>{behind}"))
    };
    whole().unwrap_or_else(|| text.to_owned())
}

fn case(name: &str, status: TestCaseStatus) -> TestCase {
    let mut case = TestCase::new(text(name), status);
    case.set_classname("kwab.crashes");
    case
}

/// What to look at, a fact per line.
fn details(bug: &Bug) -> String {
    let lines = [
        bug.title.clone(),
        format!("signature {}, {}", bug.signature(), count(bug.count as u64, "time", "times")),
        format!("at {}", bug.place()),
        format!("in {}", bug.example.file),
    ];
    lines.iter().map(|line| text(line)).collect::<Vec<_>>().join("\n")
}

/// Text without control characters; the XML writer escapes what has a meaning in XML.
fn text(text: &str) -> String {
    plain::line(text).into_owned()
}
