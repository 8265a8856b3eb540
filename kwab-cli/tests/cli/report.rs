//! `kwab report`: one file that a browser opens without a network, or Markdown. `cargo xtask browser` opens the pages.

use std::fs;

use crate::common::hostile::hostile_dump;
use crate::common::{LOGS, folder, imported, log, run, stdout_of, text};

#[test]
fn a_report_is_one_file_named_after_its_dump_and_never_overwritten_unasked() {
    let folder = folder();
    let at = folder.path();
    for name in LOGS {
        let dump = imported(at, name);
        assert_eq!(stdout_of(at, &["report", &dump]).trim(), format!("{name}.html"));
        let page = fs::read_to_string(at.join(format!("{name}.html"))).expect("written");
        assert!(page.starts_with("<!DOCTYPE html>") && page.len() < 2_000_000, "{name}: {} bytes", page.len());
        let again = run(at, &["report", &dump]);
        assert_eq!(again.status.code(), Some(2));
        assert!(text(&again.stderr).contains("--force"), "{}", text(&again.stderr));
        assert_eq!(stdout_of(at, &["report", &dump, "--force"]).trim(), format!("{name}.html"));
        assert_eq!(stdout_of(at, &["report", &dump, "-o", "-"]), page, "the same on stdout, and nothing else");
        let markdown = stdout_of(at, &["report", &dump, "--md", "-o", "-"]);
        assert!(markdown.starts_with("### ") && markdown.lines().count() < 300, "{markdown}");
        assert_eq!(stdout_of(at, &["report", &dump, "--md"]).trim(), format!("{name}.md"));
        // A log is judged as its dump.
        let of_log = stdout_of(at, &["report", log(name).to_str().expect("UTF-8"), "--md", "-o", "-"]);
        let triage = |page: &str| page.lines().filter(|line| line.starts_with("1. ")).collect::<String>();
        assert_eq!(triage(&of_log), triage(&markdown), "{name}");
    }
}

#[test]
fn the_input_is_not_overwritten_and_a_list_can_be_longer() {
    let folder = folder();
    let at = folder.path();
    let dump = imported(at, "linux-6.1-sysrq-panic");
    let refused = run(at, &["report", &dump, "-o", &dump, "--force"]);
    assert_eq!(refused.status.code(), Some(2), "{}", text(&refused.stderr));
    let few = stdout_of(at, &["report", &dump, "-n", "5", "-o", "-"]);
    let many = stdout_of(at, &["report", &dump, "-o", "-"]);
    assert!(few.contains("the last 5 rows; the dump has "), "what is left out is said");
    assert!(!many.contains("the last 5 rows") && many.len() > few.len() + 50_000);
    assert!(many.contains("sysrq_handle_crash") && many.contains("Linux version 6.1"));
}

#[test]
fn every_record_of_a_hostile_dump_is_text_in_both_forms() {
    let folder = folder();
    for variant in 0..4 {
        let name = format!("hostile-{variant}.kwab");
        fs::write(folder.path().join(&name), hostile_dump(variant)).expect("written");
        let page = run(folder.path(), &["report", &name, "-o", "-"]);
        let page = String::from_utf8(page.stdout).expect("UTF-8");
        assert!(page.ends_with("</html>\n"), "{name}");
        assert_eq!((page.matches("<script").count(), page.matches("<style").count()), (1, 1), "{name}");
        assert!(!page.chars().any(|one| one != '\n' && kwab::plain::is_hostile(one)), "{name}");
        let markdown = run(folder.path(), &["report", &name, "--md", "-o", "-"]);
        let markdown = String::from_utf8(markdown.stdout).expect("UTF-8");
        assert!(markdown.starts_with("### ") && markdown.len() < 60_000, "{name}: {} bytes", markdown.len());
        assert!(!markdown.chars().any(|one| one != '\n' && kwab::plain::is_hostile(one)), "{name}");
    }
}

#[test]
fn a_report_says_which_frames_are_guesses_and_has_no_column_without_contents() {
    let folder = folder();
    let log = log("linux-6.1-sysrq-panic");
    let log = log.to_str().expect("a name");
    let mail = text(&run(folder.path(), &["report", log, "--md", "-o", "-"]).stdout);
    assert!(mail.contains("#2  scan _printk+"), "{mail}");
    assert!(mail.contains("(scan = a guess, log = printed by the kernel)"), "{mail}");
    let page = text(&run(folder.path(), &["report", log, "-o", "-"]).stdout);
    let (_, trace) = page.split_once("Backtrace</h2>").expect("a backtrace");
    let (trace, _) = trace.split_once("</section>").expect("its end");
    assert!(trace.contains("found by") && !trace.contains("address"), "{trace}");
}
