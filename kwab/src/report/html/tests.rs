//! The page holds what an inspection holds, stays within its limit, and nothing of a dump is more than text.

use std::collections::BTreeSet;

use super::*;

use crate::analysis::finding::{Evidence, Hypothesis, ListedFunction};
use crate::analysis::verify::Backing;
use crate::report::inspect::{
    CodeReport, CodeRow, EventRow, Fact, Gap, InlinedRow, LogRow, MemoryExcerpt, Options, Profile, ProfileRow,
    RegisterRow, RegisterSet, Remark, StackReport, TaskRow, VmaRow, conclude_since, inspect,
};
use crate::report::markdown::{self, markdown};
use crate::symbols::Symbols;

const EVIL: &str = "</script><script>x()</script><img src=x onerror=x()>\"'`&amp;\u{202e}\u{0}\u{1b}[31m<!--";

/// The inspection of a dump of the repository and its triage.
fn subject(name: &str) -> (Report, Triage, Held) {
    let bytes = std::fs::read(format!("../testing/dumps/{name}.kwab")).expect("checked in");
    let dump = Dump::from_bytes(bytes).expect("a dump");
    let mut report = inspect(&dump, name, Options { rows: 2000, mappings: 2000 });
    let (case, symbols) = (dump.case(), Symbols::new());
    let sources = &mut crate::symbols::SourceLines::new(Vec::new());
    let triage = crate::report::inspect::conclude(&mut report, &case, &symbols, sources, name);
    (report, triage, Held::of(&dump))
}

fn page_of(name: &str) -> String {
    let (report, triage, held) = subject(name);
    html(&Contents { report: &report, triage: &triage, causes: None, held, rows: 2000 })
}

fn hypothesis() -> Hypothesis {
    let evil = || EVIL.to_string();
    let (_, mut triage, _) = subject("null-dereference");
    let function = ListedFunction { name: evil(), place: Some(evil()), why: Some(evil()) };
    let fact = || Evidence { functions: vec![function.clone(); 5], ..Evidence::of(evil(), None, 0.5) };
    let mut one = triage.hypotheses.swap_remove(0);
    (one.claim, one.evidence, one.against) = (evil(), vec![fact()], vec![fact()]);
    (one.next, one.weakened) = (vec![evil()], vec![evil()]);
    one
}

/// A report and a triage whose every string is hostile, each list with `rows` rows.
fn hostile(rows: usize) -> (Report, Triage) {
    let (mut report, mut triage, _) = subject("null-dereference");
    let evil = || EVIL.to_string();
    let some = || Some(evil());
    (report.headline, report.signature, report.file, report.nameless) = (evil(), evil(), evil(), some());
    report.meta = vec![Fact { name: evil(), value: evil() }; rows];
    report.remarks = vec![Remark { kind: evil(), text: evil(), line: None }; rows];
    let task = TaskRow { pid: None, ppid: None, comm: evil(), state: evil(), place: evil() };
    report.tasks = vec![task; rows];
    report.log = vec![LogRow { line: Some(1), level: Some(3), text: evil() }; rows];
    let event = EventRow {
        line: None,
        ns: Some(7),
        cpu: Some(1),
        pid: None,
        text: evil(),
        at: None,
        took_ns: Some(9),
        call: None,
    };
    let events = vec![event; rows];
    (report.events, report.syscalls, report.trace, report.page_checks) =
        (events.clone(), events.clone(), events.clone(), events);
    let vma = VmaRow { start: evil(), end: evil(), prot: evil(), name: evil(), fault: true, ip: true };
    report.vmas = vec![vma; rows];
    let inlined = InlinedRow { function: evil(), place: some(), source: some(), machinery: false };
    for frame in report.backtraces.iter_mut().flat_map(|trace| &mut trace.frames) {
        (frame.symbol, frame.trust, frame.inlined) = (evil(), evil(), vec![inlined.clone()]);
        (frame.addr, frame.place, frame.source) = (some(), some(), some());
    }
    let frames = report.backtraces[0].frames.clone();
    report.backtraces[0].title = evil();
    report.stacks = vec![StackReport { owners: vec![evil()], user: true, frames, ends: some() }; rows];
    let row = CodeRow { addr: evil(), bytes: evil(), text: evil(), values: some(), marked: true };
    report.code = Some(CodeReport { is_fault: true, mark: evil(), within: Some(evil()), lines: vec![row; rows] });
    let register = RegisterRow { name: evil(), value: evil(), note: some() };
    report.registers = vec![RegisterSet { title: evil(), registers: vec![register; rows] }];
    let excerpt = MemoryExcerpt { label: evil(), addr: some(), bytes: evil(), marked: None, length: 1 };
    report.memory = vec![excerpt; rows];
    let row = ProfileRow { name: evil(), calls: 1, total_ns: 1, avg_ns: 1, min_ns: None, max_ns: None };
    report.profiles = vec![Profile { title: evil(), rows: vec![row; rows] }];
    if let Some(cause) = &mut report.cause {
        (cause.kind, cause.victim, cause.reasons) = (evil(), evil(), vec![evil(); rows]);
        (cause.message, cause.place, cause.cmdline, cause.signal) = (some(), some(), some(), some());
        (cause.exception, cause.fault_addr, cause.ip, cause.sp, cause.time) = (some(), some(), some(), some(), some());
    }
    report.completeness.defects = vec![evil(); rows];
    report.completeness.missing = vec![Gap { what: evil(), weakens: evil() }; rows];
    triage.hypotheses = vec![hypothesis(); rows];
    (triage.ruled_out, triage.lacking, triage.losses) = (vec![evil(); rows], vec![evil(); rows], vec![evil(); rows]);
    (report, triage)
}

fn hostile_page(rows: usize) -> String {
    let (report, triage) = hostile(rows);
    html(&Contents { report: &report, triage: &triage, causes: None, held: Held::default(), rows: 2000 })
}

/// The names of all elements.
fn elements(page: &str) -> BTreeSet<String> {
    let name = |rest: &str| rest.chars().take_while(|one| one.is_ascii_alphanumeric() || *one == '!').collect();
    page.split('<').skip(1).map(|rest| name(rest.trim_start_matches('/'))).collect()
}

#[test]
fn nothing_of_a_hostile_dump_is_markup() {
    let page = hostile_page(1);
    let body = page.split_once("<body>").and_then(|(_, rest)| rest.split_once("<script>")).expect("a body").0;
    let own = "a b br button code details div footer h1 h2 h3 header i input main nav noscript output p rect section \
               span summary svg table td th thead tr";
    let own: Vec<&str> = own.split(' ').collect();
    for element in elements(body) {
        assert!(own.contains(&element.as_str()), "<{element}> is none of the page's");
    }
    assert_eq!(page.matches("<script").count(), 1, "the page's script only");
    assert!(body.matches("&lt;/script&gt;&lt;script&gt;x()").count() > 60, "the text is in every part");
    assert!(!page.chars().any(|one| one != '\n' && plain::is_hostile(one)), "no control character");
    assert!(!body.contains("onerror=x()>"), "no attribute");
}

#[test]
fn a_page_of_much_text_stays_within_the_limit_and_says_what_it_leaves_out() {
    let page = hostile_page(3000);
    assert!(page.len() < LIMIT, "{} bytes", page.len());
    assert!(page.len() > LIMIT / 2, "{} bytes: the shares are used", page.len());
    for part in ["hypotheses", "frames", "mappings", "tasks", "rows", "lines", "stacks", "instructions"] {
        assert!(page.contains(&format!("of 3000 {part}")) || part == "frames", "{part}");
    }
    let (mut report, triage) = hostile(1);
    report.log = vec![LogRow { line: None, level: None, text: "x".repeat(5000) }];
    let page = html(&Contents { report: &report, triage: &triage, causes: None, held: Held::default(), rows: 2000 });
    assert!(page.contains("… (4000 more characters)"));
}

#[test]
fn of_a_long_list_the_newest_rows_stay() {
    let (mut report, triage) = hostile(1);
    report.log = (0..9000).map(|at| LogRow { line: Some(at), level: None, text: format!("[{at}.5] m{at}-") }).collect();
    let held = Held { log: 70_000, ..Held::default() };
    let page = html(&Contents { report: &report, triage: &triage, causes: None, held, rows: 9000 });
    assert!(page.contains("m8999-") && !page.contains("m0-"), "the last stay");
    assert!(page.contains("the oldest ") && page.contains(" of 9000 lines"), "the number left out is said");
    assert!(page.contains("the last 9000 rows; the dump has 70000 records of the log"));
    assert!(page.contains("data-t=8999500000000"), "the timeline has them");
    assert!(page.contains("8940 older rows are not printed"));
}

#[test]
fn the_policy_names_the_hashes_of_what_is_in_the_page() {
    let page = page_of("null-dereference");
    let inner = |tag: &str| {
        let (_, rest) = page.split_once(&format!("<{tag}>")).expect("it begins");
        rest.split_once(&format!("</{tag}>")).expect("it ends").0
    };
    for tag in ["script", "style"] {
        assert!(page.contains(&format!("{tag}-src 'sha256-{}'", hash(inner(tag)))), "{tag}");
    }
    // The digest of nothing, as FIPS 180-4's example files give it.
    assert_eq!(hash(""), "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=");
    assert!(page.contains("default-src 'none'") && !page.contains("unsafe"), "nothing else is allowed");
    let body = page.replace(SCRIPT, "");
    for outside in ["http:", "https:", "url(", "@import", " style=", " onclick", " src="] {
        assert!(!body.contains(outside), "{outside}");
    }
}

#[test]
fn parts_come_most_valuable_first_and_every_link_has_its_part() {
    let page = page_of("tlb-shootdown");
    let order = ["triage", "cause", "backtrace", "registers", "timeline", "space", "stacks", "calls", "log", "meta"];
    let positions: Vec<usize> =
        order.iter().map(|id| page.find(&format!("<section id=\"{id}\"")).unwrap_or_else(|| panic!("{id}"))).collect();
    assert!(positions.is_sorted(), "{positions:?}");
    let body = page.replace(SCRIPT, "");
    for link in body.split("href=\"#").skip(1) {
        let id = link.split('"').next().unwrap_or_default();
        assert!(page.contains(&format!("id=\"{id}\"")), "{id}");
    }
    assert!(page.contains(" data-c=0>") && page.contains(" data-c=1>"), "both processors have rows");
    assert!(page.contains("data-death=\"416577000\""), "the death has its time");
}

#[test]
fn causes_have_rows_that_name_both_ends_and_what_lasted_says_how_long() {
    let dump = Dump::from_bytes(std::fs::read("../testing/dumps/tlb-shootdown.kwab").unwrap()).unwrap();
    let (report, triage, held) = subject("tlb-shootdown");
    let causes = Causes::of(&dump);
    let page = html(&Contents { report: &report, triage: &triage, causes: Some(&causes), held, rows: 2000 });
    let rows: Vec<&str> = page.lines().filter(|line| line.contains(" data-from=")).collect();
    assert_eq!(rows.len(), causes.flows.len());
    let number = |line: &str, name: &str| -> Option<u32> {
        let (_, rest) = line.split_once(name)?;
        rest.split(['>', ' ']).next()?.parse().ok()
    };
    let marked: Vec<&str> = page.lines().filter(|line| line.contains(" data-m=")).collect();
    for (row, flow) in rows.iter().zip(&causes.flows) {
        assert_eq!((number(row, "data-from="), number(row, "data-to=")), (Some(flow.from), Some(flow.to)));
        assert!(row.contains(&text(&causes.effect_words(flow))), "{row}");
        for end in [flow.from, flow.to] {
            let ns = causes.moments[end as usize].ns;
            let at = marked.iter().find(|line| number(line, "data-m=") == Some(end)).expect("a row of its own");
            assert!(at.contains(&format!(" data-t={ns} ")), "{at}");
        }
    }
    let turns = marked.iter().filter(|line| line.contains("context switch")).filter(|line| line.contains(" data-d="));
    assert!(turns.count() >= 3, "turns that end before the death have lengths");
    assert!(page_of("tlb-shootdown").matches("data-from").count() == page.matches("data-from").count() - rows.len());
}

#[test]
fn every_hypothesis_and_its_evidence_is_in_the_page() {
    let (report, triage, held) = subject("user-pointer");
    let page = html(&Contents { report: &report, triage: &triage, causes: None, held, rows: 2000 });
    assert!(triage.hypotheses.len() > 1);
    for one in &triage.hypotheses {
        assert!(page.contains(&text(&one.claim)) && page.contains(&format!("{:.2}", one.score)), "{}", one.claim);
        one.evidence.iter().for_each(|fact| assert!(page.contains(&text(&fact.text)), "{}", fact.text));
    }
    let again = crate::analysis::triage(
        &Dump::from_bytes(std::fs::read("../testing/dumps/user-pointer.kwab").unwrap()).unwrap().case(),
        &Symbols::new(),
        &Backing::none(),
        "user-pointer",
    );
    assert_eq!(again, triage, "conclude gives all of the triage");
}

#[test]
fn the_markdown_of_a_hostile_dump_is_text_of_bounded_length() {
    for rows in [1, 3000] {
        let (report, triage) = hostile(rows);
        let page =
            markdown(&Contents { report: &report, triage: &triage, causes: None, held: Held::default(), rows: 2000 });
        assert!(page.len() < markdown::LIMIT, "{} bytes", page.len());
        let mut fence: Option<String> = None;
        for line in page.lines() {
            let ticks: String = line.chars().take_while(|one| *one == '`').collect();
            match &fence {
                Some(open) if *open == line => fence = None,
                Some(open) => assert!(!line.contains(open.as_str()), "{line}"),
                None if ticks.len() >= 3 => fence = Some(ticks),
                None => {
                    let rest = line.replace("<!-- -->", "").replace("\\[", "").replace("\\]", "");
                    assert!(!rest.contains(['<', '>', '`', '[', '*', '@']), "{line}");
                }
            }
        }
        assert!(fence.is_none() && page.lines().count() < 400, "{page}");
    }
}

#[test]
fn what_was_changed_since_a_build_that_worked_is_in_both_forms_with_and_without_a_bug() {
    use crate::builds::{BuildChanges, ChangedFunction};
    let changed = |name: &str| ChangedFunction { name: name.to_owned(), explains: 1, ..ChangedFunction::default() };
    let functions = (0..7).map(|at| changed(&format!("changed_{at}"))).collect();
    let changes = BuildChanges { old: "0123456789abcdef".to_owned(), functions, ..BuildChanges::default() };
    for (name, is_bug) in [("null-dereference", true), ("clean", false)] {
        let bytes = std::fs::read(format!("../testing/dumps/{name}.kwab")).expect("checked in");
        let dump = Dump::from_bytes(bytes).expect("a dump");
        let mut report = inspect(&dump, name, Options { rows: 20, mappings: 20 });
        let sources = &mut crate::symbols::SourceLines::new(Vec::new());
        let changes = Some(&changes);
        let triage = conclude_since(&mut report, &dump.case(), &Symbols::new(), changes, sources, name);
        assert_eq!((report.since.as_ref(), triage.untold_changes().is_some()), (triage.since.as_ref(), !is_bug));
        let contents = Contents { report: &report, triage: &triage, causes: None, held: Held::of(&dump), rows: 20 };
        for page in [html(&contents), markdown(&contents)] {
            // Markdown breaks up what a reader of it may take for a link, and escapes underscores.
            let page = page.replace("<!-- -->", "").replace("&#95;", "_");
            assert!(page.contains("changed since build 01234567…, which worked:"), "{name}: {page}");
            assert!(page.contains("changed_2"), "{name}: {page}");
        }
    }
    let since = crate::analysis::Since { good: String::new(), functions: Vec::new(), more: 0 };
    assert_eq!(since.lines(3), ["the code of no function"]);
}
