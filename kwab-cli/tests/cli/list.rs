//! `kwab list`: dumps of one bug together, by what triage concludes of each.

use std::process::{Command, Stdio};

use crate::common::{folder, kwab, run, stdout_of, text};

/// The committed dumps, of which seven were asked for with the same key.
fn dumps() -> String {
    concat!(env!("CARGO_MANIFEST_DIR"), "/../testing/dumps").to_string()
}

/// The groups of a list of the committed dumps: the rule (or what its claim is about) and the files' names.
fn groups(arguments: &[&str]) -> Vec<(Option<String>, Vec<String>)> {
    let folder = folder();
    let dumps = dumps();
    let arguments: Vec<&str> = ["list", &dumps, "--json"].into_iter().chain(arguments.iter().copied()).collect();
    let listed: serde_json::Value = serde_json::from_str(&stdout_of(folder.path(), &arguments)).expect("JSON");
    let name = |entry: &serde_json::Value| {
        let file = entry["file"].as_str().expect("a path");
        file.rsplit('/').next().expect("a name").trim_end_matches(".kwab").to_string()
    };
    let groups = listed["groups"].as_array().expect("groups").iter().map(|group| {
        let found = &group["finding"];
        let rule = found["about"].as_str().or(found["rule"].as_str()).map(str::to_string);
        (rule, group["dumps"].as_array().expect("dumps").iter().map(name).collect())
    });
    groups.collect()
}

#[test]
fn bugs_that_look_alike_are_groups_of_their_own_and_the_quick_list_cannot_tell_them_apart() {
    let judged = groups(&[]);
    for (rule, file) in [
        ("VM-ELF", "elf-protection"),
        ("VM-SHARE", "fork-shares"),
        ("LEAK", "references-kept"),
        ("TLB", "tlb-shootdown"),
        ("DELIBERATE", "clean"),
    ] {
        assert!(judged.contains(&(Some(rule.to_string()), vec![file.to_string()])), "{rule}: {judged:?}");
    }
    let quick = groups(&["--quick"]);
    assert!(quick.iter().all(|(rule, _)| rule.is_none()), "{quick:?}");
    let sysrq = quick.iter().find(|(_, files)| files.contains(&"clean".to_string())).expect("it is listed");
    for file in ["elf-protection", "fork-shares", "references-kept", "tlb-shootdown"] {
        assert!(sysrq.1.contains(&file.to_string()), "{sysrq:?}");
    }
}

#[test]
fn the_filter_finds_what_triage_says_and_how_sure_it_is() {
    assert_eq!(groups(&["--filter", "cause:null"]), [(Some("NULL".to_string()), vec!["null-dereference".to_string()])]);
    assert_eq!(groups(&["--filter", "rule=tlb"]), [(Some("TLB".to_string()), vec!["tlb-shootdown".to_string()])]);
    let sure = groups(&["--filter", "score>=95 process:exam"]);
    let rules: Vec<_> = sure.iter().filter_map(|(rule, _)| rule.as_deref()).collect();
    assert_eq!(rules, ["DEADLOCK", "DELIBERATE", "STACK"]);
}

#[test]
fn groups_come_in_the_order_that_is_asked_for() {
    let first = |sort: &str| groups(&["--sort", sort]).swap_remove(0).1.swap_remove(0);
    assert_eq!(groups(&[])[0].1, ["cache-freed", "uncounted-frames"]);
    assert_eq!(first("score"), "stack-overflow");
    assert_eq!(first("first"), "clean");
    assert_eq!(first("last"), "user-pointer");
    // `exam-child` comes before `exam[`.
    assert_eq!(first("process"), "cache-writable");
    let folder = folder();
    let refused = run(folder.path(), &["list", &dumps(), "--sort", "size"]);
    assert_eq!(refused.status.code(), Some(2), "{}", text(&refused.stderr));
}

#[test]
fn a_large_group_names_eight_dumps_and_says_how_to_see_the_others() {
    let folder = folder();
    let dump = format!("{}/clean.kwab", dumps());
    for number in 0..12 {
        std::fs::copy(&dump, folder.path().join(format!("copy-{number:02}.kwab"))).expect("copied");
    }
    let named = |text: &str| text.lines().filter(|line| line.contains("copy-")).count();
    let listed = stdout_of(folder.path(), &["list", "."]);
    assert_eq!(named(&listed), 8, "{listed}");
    assert!(
        listed.contains("… and 4 more (--wide names all)") && listed.contains("  12   0.95  DELIBERATE"),
        "{listed}"
    );
    assert_eq!(named(&stdout_of(folder.path(), &["list", ".", "--wide"])), 12);
}

#[test]
fn rows_stay_within_eighty_columns_and_a_wide_list_cuts_nothing() {
    let folder = folder();
    let listed = stdout_of(folder.path(), &["list", &dumps()]);
    assert!(listed.lines().all(|line| line.chars().count() <= 80), "{listed}");
    let wide = kwab(folder.path()).args(["list", &dumps(), "--wide"]).output().expect("runs");
    assert!(!text(&wide.stdout).lines().any(|line| line.ends_with('…')), "{}", text(&wide.stdout));
}

#[test]
fn the_kernels_dump_and_the_serial_log_of_one_death_are_one_crash() {
    let folder = folder();
    let at = folder.path();
    let data = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../testing/data/one-death");
    for name in ["memory.kwab", "serial.log"] {
        std::fs::copy(data.join(name), at.join(name)).expect("the sample is there");
    }
    stdout_of(at, &["import", "serial.log"]);
    let listed: serde_json::Value = serde_json::from_str(&stdout_of(at, &["list", ".", "--json"])).expect("JSON");
    let group = |file: &str| {
        let all = listed["groups"].as_array().expect("groups").iter();
        let files = |group: &serde_json::Value| -> Vec<String> {
            let dumps = group["dumps"].as_array().expect("dumps").iter();
            dumps.map(|dump| dump["file"].as_str().expect("a path").trim_start_matches("./").to_string()).collect()
        };
        let mut all = all.filter(|group| files(group).iter().any(|name| name == file));
        let group = all.next().unwrap_or_else(|| panic!("{file} is in no group: {listed}"));
        (group["count"].as_u64(), files(group).len(), group["signatures"].as_array().map(Vec::len))
    };
    // The log and the dump tell different symptoms of it.
    assert_eq!(group("memory.kwab"), (Some(1), 2, Some(2)), "{listed}");
    assert_eq!(group("serial-1.kwab"), (Some(1), 1, Some(1)), "{listed}");
    assert_eq!(listed["signature_version"].as_u64(), Some(1));
}

#[test]
fn what_can_be_read_once_is_listed_as_the_file_is() {
    let folder = folder();
    let at = folder.path();
    let data = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../testing/data");
    std::fs::copy(format!("{}/null-dereference.kwab", dumps()), at.join("one")).expect("copied");
    std::fs::copy(data.join("logs/kevlar-segv-children.log"), at.join("console")).expect("copied");
    let both = ["leak", "clean"].map(|name| std::fs::read(format!("{}/{name}.kwab", dumps())).expect("there"));
    std::fs::write(at.join("two"), both.concat()).expect("written");
    std::fs::write(at.join("cut"), &both[0][..both[0].len() / 2]).expect("written");
    std::fs::write(at.join("garbage"), [0x7f, 0, 1, 2, 0xff, 0xfe, 0, 0]).expect("written");
    std::fs::write(at.join("nothing"), "").expect("written");
    assert!(Command::new("mkfifo").arg(at.join("fifo")).status().expect("runs").success());
    let listed = |output: std::process::Output, name: &str| {
        let said =
            |bytes: &[u8]| text(bytes).replace(&format!("\"{name}\""), "NAME").replace(&format!("{name}:"), "NAME:");
        // A busy machine may let the reader wait for this test to write.
        let stderr = said(&output.stderr).replace("kwab: NAME: a FIFO that no program writes; waiting for one\n", "");
        // A dump that is made of a log holds the name that the log was read by, and is as much longer.
        let stdout = said(&output.stdout);
        let rows = stdout.lines().filter(|line| !line.trim_start().starts_with("\"bytes\""));
        (output.status.code(), rows.collect::<Vec<_>>().join("\n"), stderr)
    };
    for (input, status, dumps) in
        [("one", 0, 1), ("two", 0, 2), ("console", 0, 1), ("cut", 3, 1), ("garbage", 2, 0), ("nothing", 2, 0)]
    {
        let wanted = listed(run(at, &["list", input, "--json"]), input);
        assert_eq!((wanted.0, wanted.1.matches("\"file\"").count()), (Some(status), dumps), "{input}: {wanted:?}");
        let stdin = std::fs::File::open(at.join(input)).expect("there");
        let list = |name: &str| {
            let mut command = Command::new(assert_cmd::cargo::cargo_bin("kwab"));
            command.current_dir(at).args(["list", name, "--json"]).stdout(Stdio::piped()).stderr(Stdio::piped());
            command
        };
        let piped = list("-").stdin(stdin).output().expect("runs");
        assert_eq!(listed(piped, "stdin"), wanted, "{input} on stdin");
        let child = list("fifo").spawn().expect("started");
        std::fs::write(at.join("fifo"), std::fs::read(at.join(input)).expect("there")).expect("written");
        assert_eq!(listed(child.wait_with_output().expect("ends"), "fifo"), wanted, "{input} in a FIFO");
    }
}
