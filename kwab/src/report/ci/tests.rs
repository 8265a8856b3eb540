//! What is new, known and gone, and that no form lets a log speak for kwab.

use super::github::annotations;
use super::*;
use crate::report::catalogue::unreadable;

fn crash(file: &str, signature: &str, finding: Option<(&str, &str)>) -> Seen {
    let finding = finding.map(|(rule, function)| Finding {
        rule: rule.to_string(),
        class: "test".to_string(),
        claim: format!("{rule} in {function}"),
        score: 0.9,
        proven: true,
        function: Some(function.to_string()),
        about: None,
    });
    let entry = CatalogueEntry {
        kind: "panic".to_string(),
        signature: signature.to_string(),
        sound: true,
        finding,
        ..unreadable(file, "oops")
    };
    Seen { entry, is_bug: true, location: None, log_line: Some(7) }
}

fn keys(bugs: &[Bug]) -> Vec<&str> {
    bugs.iter().map(|bug| bug.key.as_str()).collect()
}

#[test]
fn what_was_accepted_is_known_and_what_does_not_come_again_is_gone() {
    let seen = [crash("a", "11111111", Some(("NULL", "read"))), crash("b", "22222222", None)];
    let first = compare(&seen, &Baseline::default(), "known.toml", Vec::new());
    assert_eq!((first.new.len(), first.known.len(), first.gone.len()), (2, 0, 0));
    let text = first.accepted(Baseline::default()).to_toml().expect("TOML");
    let text = text.replacen("comment = \"\"", "comment = \"issue 12\"", 1);
    let baseline = Baseline::from_toml(&text).expect("it reads back");
    let second = compare(&seen[..1], &baseline, "known.toml", Vec::new());
    assert_eq!((second.new.len(), keys(&second.known)), (0, vec!["NULL in read of "]));
    assert_eq!(second.known[0].comment, "issue 12");
    assert_eq!(second.gone.iter().map(|known| known.key.as_str()).collect::<Vec<_>>(), ["~22222222"]);
    let again = second.accepted(baseline.clone());
    assert_eq!(again, baseline, "comments and what is gone stay");
}

#[test]
fn one_symptom_of_two_bugs_is_new_and_a_better_rule_makes_no_known_crash_new() {
    let null = [crash("a", "11111111", Some(("NULL", "read")))];
    let baseline = compare(&null, &Baseline::default(), "", Vec::new()).accepted(Baseline::default());
    let other = compare(&[crash("b", "11111111", Some(("TLB", "unmap")))], &baseline, "", Vec::new());
    assert_eq!(keys(&other.new), ["TLB in unmap of "], "the same signature, another bug");
    let undecided = compare(&[crash("c", "11111111", None)], &baseline, "", Vec::new());
    assert_eq!((undecided.new.len(), undecided.known.len()), (0, 1), "nothing is concluded: the symptom is known");
    let symptom = compare(&[crash("d", "33333333", None)], &Baseline::default(), "", Vec::new());
    let symptom = symptom.accepted(Baseline::default());
    let concluded = compare(&[crash("e", "33333333", Some(("POISON", "free")))], &symptom, "", Vec::new());
    assert_eq!((concluded.new.len(), concluded.known.len()), (0, 1), "the rule is new, the crash is not");
}

#[test]
fn a_dump_that_was_asked_for_is_quiet_and_damage_is_said() {
    let mut asked = crash("a", "11111111", Some(("DELIBERATE", "sysrq")));
    asked.is_bug = false;
    let broken = Seen { entry: unreadable("b", "is not a dump"), is_bug: false, location: None, log_line: None };
    let mut lost = crash("c", "00000000", None);
    lost.entry.kind = "lost".to_string();
    let report = compare(&[asked, broken, lost], &Baseline::default(), "", Vec::new());
    assert_eq!((report.new.len(), report.quiet, report.damaged.len()), (0, 2, 2), "{report:#?}");
    assert_eq!(report.asked, 1, "{report:#?}");
    assert!(markdown(&report).contains("Not counted: 1 requested dump.\n"), "{}", markdown(&report));
}

#[test]
fn a_baseline_of_another_version_or_form_is_refused_with_its_line() {
    let refused = |text: &str| Baseline::from_toml(text).expect_err("refused").to_string();
    assert!(refused("schema = 2\nsignature_version = 1\n").contains("form 2"));
    assert!(refused("schema = 1\nsignature_version = 0\n").contains("version 0"));
    assert!(refused("schema = 1\nsignature_version = 1\nnown = []\n").contains("line 3"));
    assert!(refused("schema = 1\nsignature_version = 1\n[[known]]\nkey = 7\n").contains("line 4"));
    assert!(
        refused("schema = 1\nsignature_version = 1\n[[known]]\nkey = \"a\"\n\n[[known]]\nkey = 7\n").contains("line 7")
    );
    let twice = "schema = 1\nsignature_version = 1\n[[known]]\nkey = \"a\"\n[[known]]\nkey = \"b\"\n\
        comment = \"\"\"\n[[known]]\n\"\"\"\n";
    let read = Baseline::from_toml(twice).expect("read");
    assert_eq!((read.known.len(), read.known[1].comment.as_str()), (2, "[[known]]\n"), "text, not an entry");
    assert!(refused(&format!("{twice}schema = 1\n")).contains("line 10"), "a key of no entry");
    let minimal = "schema = 1\nsignature_version = 1\n[[known]]\nkey = \"~11111111\"\n";
    assert_eq!(Baseline::from_toml(minimal).expect("read").known.len(), 1);
}

/// A crash whose every string tries to end what it stands in.
fn hostile() -> CiReport {
    const EVIL: &str = "x\r\n::error::owned\n##[error]y</script>\"'<img src=x onerror=a>&]]>|`@u`\u{202e}\u{0}%,:";
    let mut seen = crash(EVIL, "11111111", Some((EVIL, EVIL)));
    seen.entry.cause = EVIL.to_string();
    seen.entry.place = EVIL.to_string();
    seen.location = Some(Location { file: EVIL.to_string(), line: 3 });
    let mut other = crash(EVIL, "22222222", None);
    other.entry.cause = EVIL.to_string();
    let baseline = Baseline {
        known: vec![
            Known { key: "~22222222".to_string(), signatures: Vec::new(), title: EVIL.into(), comment: EVIL.into() },
            Known { key: EVIL.to_string(), signatures: Vec::new(), title: EVIL.into(), comment: EVIL.into() },
        ],
        ..Baseline::default()
    };
    compare(&[seen, other], &baseline, EVIL, vec![EVIL.to_string()])
}

#[test]
fn a_log_speaks_in_none_of_the_forms() {
    let report = hostile();
    assert_eq!((report.new.len(), report.known.len(), report.gone.len()), (1, 1, 1));
    let lines = annotations(&report);
    assert_eq!(lines.lines().count(), 2, "{lines}");
    for (line, level) in lines.lines().zip(["::error file=", "::notice title="]) {
        assert!(line.starts_with(level) && !line.contains("##"), "{line}");
        assert!(!line.chars().any(plain_hostile), "{line:?}");
    }
    let properties = lines.lines().next().and_then(|line| line.strip_prefix("::error ")).expect("an error");
    let properties = properties.split("::").next().expect("properties");
    assert_eq!(properties.split(',').count(), 3, "file, line and title: {properties}");

    let xml = junit(&report).expect("XML");
    assert!(!xml.contains("<img") && !xml.contains("</script>") && !xml.contains('\u{0}'), "{xml}");
    assert_eq!(xml.matches("<testcase").count(), 3, "{xml}");
    assert!(xml.contains("failures=\"1\""), "{xml}");
    // The schema of Jenkins (junit-10.xsd) knows these for the whole and no other; a suite may have `skipped`.
    let whole = xml.split_once("<testsuites ").and_then(|(_, rest)| rest.split_once('>')).expect("the whole").0;
    let names: Vec<_> = whole.split('"').step_by(2).map(|name| name.trim().trim_end_matches('=')).collect();
    assert_eq!(names, ["name", "tests", "failures", "errors", ""], "{xml}");
    assert!(xml.contains("<testsuite name=\"kwab ci\" tests=\"3\" skipped=\"1\""), "{xml}");

    let page = markdown(&report);
    assert!(!page.contains("<img") && !page.contains('`') && !page.contains("\n::"), "{page}");
    assert_eq!(page.lines().filter(|line| line.starts_with('|')).count(), 3, "head, rule and one row: {page}");

    let toml = report.accepted(Baseline::default()).to_toml().expect("TOML");
    assert!(Baseline::from_toml(&toml).is_ok() && !toml.contains('\u{202e}'), "{toml}");
}

fn plain_hostile(character: char) -> bool {
    crate::plain::is_hostile(character)
}

#[test]
fn sarif_has_what_the_standard_demands() {
    let sarif = sarif(&hostile());
    assert_eq!(sarif["version"], "2.1.0");
    let run = &sarif["runs"][0];
    let rules = run["tool"]["driver"]["rules"].as_array().expect("rules");
    let results = run["results"].as_array().expect("results");
    assert_eq!(run["tool"]["driver"]["name"], "kwab");
    let states: Vec<_> = results.iter().filter_map(|result| result["baselineState"].as_str()).collect();
    assert_eq!(states, ["new", "unchanged", "absent"]);
    for result in results {
        let index = usize::try_from(result["ruleIndex"].as_u64().expect("an index")).expect("small");
        assert_eq!(rules[index]["id"], result["ruleId"], "the index is that of the rule");
        assert!(result["message"]["text"].is_string());
        let level = result["level"].as_str().expect("a level");
        assert!(["note", "error"].contains(&level));
        for place in result["locations"].as_array().into_iter().flatten() {
            let uri = place["physicalLocation"]["artifactLocation"]["uri"].as_str().expect("a URI");
            assert!(uri.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~/%".contains(&byte)), "{uri}");
            assert!(place["physicalLocation"]["region"]["startLine"].as_u64().is_some_and(|line| line > 0));
        }
    }
    let ids: std::collections::BTreeSet<_> = rules.iter().filter_map(|rule| rule["id"].as_str()).collect();
    assert_eq!(ids.len(), rules.len(), "each rule once");
}

#[test]
fn a_place_is_file_and_line_with_or_without_a_column() {
    let parsed = |text| Location::parse(text).map(|location| location.to_string());
    assert_eq!(parsed("fs/pipe.c:120").as_deref(), Some("fs/pipe.c:120"));
    assert_eq!(parsed("src/main.rs:7:13").as_deref(), Some("src/main.rs:7"));
    for text in ["ip 0000:12ab", "fs/pipe.c", ":3", "a:0", "vfs_read+0x12"] {
        assert_eq!(parsed(text), None, "{text}");
    }
    let location = Location { file: "/src/x/fs/a.c".to_string(), line: 1 };
    assert_eq!(location.within("/src/x".as_ref()).file, "fs/a.c");
}

#[test]
fn a_place_in_the_standard_library_is_none_of_the_projects() {
    let bytes = std::fs::read("../testing/dumps/leak.kwab").expect("checked in");
    let dump = crate::model::Dump::from_bytes(bytes).expect("a dump");
    let report = crate::report::inspect::inspect(&dump, "leak.kwab", crate::report::inspect::Options::default());
    let said = report.cause.as_ref().and_then(|cause| cause.place.clone());
    assert!(said.is_some_and(|place| place == "library/alloc/src/alloc.rs:553"), "the dump says so");
    let location = Location::of(&report);
    assert!(location.as_ref().is_none_or(|location| !location.file.contains("library/")), "{location:?}");
}

/// What the file's documentation says, entry by entry.
fn first_that_knows(known: &[Known], key: &str, signatures: &[String]) -> Option<usize> {
    let shares = |entry: &Known| entry.signatures.iter().any(|one| signatures.contains(one));
    let comparable = |entry: &Known| entry.key.starts_with('~') || key.starts_with('~');
    let by_key = known.iter().position(|entry| entry.key == key);
    by_key.or_else(|| known.iter().position(|entry| comparable(entry) && shares(entry)))
}

#[test]
fn the_index_of_a_baseline_finds_what_a_search_of_all_entries_finds() {
    let mut seed = 0x2545_f491_4f6c_dd1d_u64;
    let mut next = |below: u64| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed % below
    };
    let mut found = [0; 2];
    for _ in 0..400 {
        let mut some = |most: u64| -> Vec<String> { (0..next(most)).map(|_| format!("{:08x}", next(9))).collect() };
        let known: Vec<Known> = (0..8)
            .map(|number| {
                let signatures = some(4);
                let key = if number % 2 == 0 {
                    format!("~{}", some(3).concat())
                } else {
                    format!("NULL {}", some(3).concat())
                };
                Known { key, signatures, title: String::new(), comment: String::new() }
            })
            .collect();
        let index = Index::of(&known);
        for key in ["~", "~00000001", "NULL ", "NULL 00000002"] {
            let signatures = some(3);
            let place = index.position(key, &signatures);
            assert_eq!(place, first_that_knows(&known, key, &signatures), "{key} {signatures:?} {known:#?}");
            found[usize::from(place.is_some())] += 1;
        }
    }
    assert!(found.iter().all(|count| *count > 100), "{found:?}");
}
