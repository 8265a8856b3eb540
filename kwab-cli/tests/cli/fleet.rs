//! Directories of many dumps: what is new in a build, how often a signature came, what may go.

use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

use crate::common::{folder, run, stdout_of, text};
use serde_json::Value;

/// Day 0 of the dumps: 2026-11-01.
const DAY_0: u64 = 20_758 * 86_400;

/// Makes a dump of a Linux that died in `function`, on a day.
fn died(at: &Path, name: &str, commit: &str, function: &str, day: u64) {
    let version = format!("6.12.0-rc1-00042-g{commit}");
    let log = format!(
        "[    0.000000] Linux version {version} (kwab@example) (gcc 14.2.0) #1 SMP\n\
         [    5.000000] BUG: kernel NULL pointer dereference, address: 0000000000000008\n\
         [    5.000001] #PF: supervisor read access in kernel mode\n\
         [    5.000002] #PF: error_code(0x0000) - not-present page\n\
         [    5.000003] Oops: Oops: 0000 [#1] PREEMPT SMP NOPTI\n\
         [    5.000004] CPU: 0 UID: 0 PID: 7 Comm: sh Not tainted {version} #1\n\
         [    5.000005] RIP: 0010:{function}+0x12/0x80\n\
         [    5.000006] Call Trace:\n\
         [    5.000007]  <TASK>\n\
         [    5.000008]  {function}_caller+0x1/0x20\n\
         [    5.000009]  </TASK>\n\
         [    5.000010] ---[ end trace 0000000000000000 ]---\n\
         [    5.000011] Kernel panic - not syncing: Fatal exception\n"
    );
    let folder = at.join("dumps");
    fs::create_dir_all(&folder).expect("made");
    fs::write(at.join("serial.log"), log).expect("written");
    stdout_of(at, &["import", "serial.log", "-o", &format!("dumps/{name}.kwab"), "--force"]);
    let file = fs::File::options().write(true).open(folder.join(format!("{name}.kwab"))).expect("there");
    file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(DAY_0 + day * 86_400)).expect("dated");
}

/// Three builds: one bug in all of them, one until the second, one only in the third.
fn fleet() -> tempfile::TempDir {
    let folder = folder();
    let at = folder.path();
    for (build, commit) in ["aaaaaaaaaaaa", "bbbbbbbbbbbb", "cccccccccccc"].into_iter().enumerate() {
        let day = build as u64 * 10;
        for number in 0..4 {
            died(at, &format!("steady-{build}-{number}"), commit, "do_steady", day + number);
        }
        match build {
            2 => died(at, "new", commit, "do_new", day + 5),
            _ => died(at, &format!("old-{build}"), commit, "do_old", day + 5),
        }
    }
    folder
}

/// The names of the files that a list has.
fn listed(at: &Path, more: &[&str]) -> Vec<String> {
    let output = run(at, &[&["list", "dumps", "--json"], more].concat());
    assert_eq!(output.status.code(), Some(0), "{more:?}: {}", text(&output.stderr));
    let list: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let dumps = list["groups"].as_array().expect("groups").iter().flat_map(|group| group["dumps"].as_array().unwrap());
    let mut names: Vec<String> = dumps
        .map(|dump| dump["file"].as_str().unwrap().trim_start_matches("dumps/").trim_end_matches(".kwab").to_string())
        .collect();
    names.sort();
    names
}

#[test]
fn a_list_by_time_and_build_and_of_regressions_is_the_same_with_and_without_an_index() {
    let folder = fleet();
    let at = folder.path();
    let steady = |build: usize| (0..4).map(|number| format!("steady-{build}-{number}")).collect::<Vec<_>>();
    for round in ["without an index", "with one"] {
        assert_eq!(listed(at, &["--regressions"]), ["new"], "{round}");
        assert_eq!(listed(at, &["--regressions", "--build", "bbbb"]), Vec::<String>::new(), "{round}");
        assert_eq!(listed(at, &["--build", "bbbbbbb"]), [vec!["old-1".to_string()], steady(1)].concat(), "{round}");
        assert_eq!(
            listed(at, &["--since", "2026-11-22"]),
            ["new", "steady-2-1", "steady-2-2", "steady-2-3"],
            "{round}"
        );
        assert_eq!(listed(at, &["--since", "2026-11-22", "--filter", "place:do_new"]), ["new"], "{round}");
        let unknown = run(at, &["list", "dumps", "--build", "dddd"]);
        assert_eq!(unknown.status.code(), Some(2), "{round}");
        assert!(text(&unknown.stderr).contains("no dump of a build dddd"), "{}", text(&unknown.stderr));
        assert_eq!(run(at, &["list", "dumps", "--since", "soon"]).status.code(), Some(2));
        stdout_of(at, &["index", "dumps"]);
    }
}

/// Builds in order: a bug in the first two, not in the third, again in the fourth and the fifth.
#[test]
fn a_bug_that_went_and_came_back_is_a_regression_of_the_build_it_came_back_in() {
    let folder = folder();
    let at = folder.path();
    let commits = ["aaaaaaaaaaaa", "bbbbbbbbbbbb", "cccccccccccc", "dddddddddddd", "eeeeeeeeeeee"];
    let has = [["do_steady", "do_back"], ["do_steady", "do_back"], ["do_steady", "do_other"], ["do_new", "do_back"]];
    let has = has.into_iter().chain([["do_steady", "do_back"]]);
    for (build, (commit, functions)) in commits.into_iter().zip(has).enumerate() {
        for function in functions {
            died(at, &format!("{build}-{function}"), commit, function, build as u64);
        }
    }
    let told = |more: &[&str]| text(&run(at, &[&["list", "dumps", "--regressions"], more].concat()).stderr);
    for round in ["without an index", "with one"] {
        let of = |build: &str| listed(at, &["--regressions", "--build", build]);
        assert_eq!(of("aaaa"), ["0-do_back", "0-do_steady"], "{round}");
        assert_eq!((of("bbbb"), of("cccc")), (vec![], vec!["2-do_other".to_string()]), "{round}");
        assert_eq!(of("dddd"), ["3-do_back", "3-do_new"], "{round}");
        assert_eq!(listed(at, &["--regressions"]), ["4-do_steady"], "{round}: a build without it came between");
        let back = told(&["--build", "dddd"]);
        assert_eq!(back.lines().count(), 1, "{round}: {back}");
        assert!(back.starts_with("kwab: back, last seen in build bbbbbbbbbbbb: NULL in do_back"), "{round}: {back}");
        assert!(told(&[]).contains("last seen in build cccccccccccc: NULL in do_steady"), "{round}");
        assert_eq!(told(&["--build", "cccc"]), "", "{round}: what is new is not back");
        let first = "kwab: no build before aaaaaaaaaaaa: every crash of it is listed, new or not\n";
        assert_eq!(told(&["--build", "aaaa"]), first, "{round}: nothing is known to be new");
        stdout_of(at, &["index", "dumps"]);
    }
    let trend: Value = serde_json::from_str(&stdout_of(at, &["trends", "dumps", "--json"])).expect("JSON");
    let states = trend["signatures"].as_array().expect("signatures").iter();
    let states = states.map(|one| format!("{} {}", one["place"], one["state"]).replace('"', ""));
    let states: Vec<String> = states.map(|one| one.replace("+0x12/0x80", "")).collect();
    for state in ["do_back known", "do_steady back", "do_other gone", "do_new gone"] {
        assert!(states.iter().any(|one| one == state), "{state}: {states:?}");
    }
}

#[test]
fn trends_say_what_is_new_known_and_gone_in_the_newest_build() {
    let folder = fleet();
    let at = folder.path();
    let plain = stdout_of(at, &["trends", "dumps", "--json"]);
    stdout_of(at, &["index", "dumps"]);
    assert_eq!(stdout_of(at, &["trends", "dumps", "--json"]), plain);
    let trend: Value = serde_json::from_str(&plain).expect("JSON");
    let commits: Vec<_> = trend["builds"].as_array().unwrap().iter().map(|one| one["commit"].clone()).collect();
    assert_eq!(commits, ["aaaaaaaaaaaa", "bbbbbbbbbbbb", "cccccccccccc"]);
    let courses: Vec<_> = trend["signatures"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| {
            let counts = one["builds"].as_array().unwrap();
            let counts: Vec<_> = counts.iter().map(|of| (of["build"].as_u64(), of["dumps"].as_u64())).collect();
            (one["state"].as_str().unwrap().to_string(), counts)
        })
        .collect();
    let of = |builds: &[(u64, u64)]| builds.iter().map(|(at, count)| (Some(*at), Some(*count))).collect::<Vec<_>>();
    assert!(courses.contains(&("known".to_string(), of(&[(0, 4), (1, 4), (2, 4)]))), "{courses:?}");
    assert!(courses.contains(&("gone".to_string(), of(&[(0, 1), (1, 1)]))), "{courses:?}");
    assert!(courses.contains(&("new".to_string(), of(&[(2, 1)]))), "{courses:?}");
    let page = stdout_of(at, &["trends", "dumps"]);
    assert!(page.contains("2026-11-01") && page.contains("cccccccccccc"), "{page}");
    assert!(page.lines().all(|line| line.chars().count() <= 80), "{page}");
}

/// What prune says as JSON, and its status.
fn prune(at: &Path, more: &[&str]) -> (Option<i32>, Value) {
    let output = run(at, &[&["prune", "dumps", "--json"], more].concat());
    let value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", text(&output.stderr)));
    (output.status.code(), value)
}

fn leaving(pruned: &Value) -> Vec<&str> {
    let files = pruned["leaving"].as_array().expect("files").iter().map(|one| one["file"].as_str().expect("a path"));
    files.map(|file| file.trim_start_matches("dumps/").trim_end_matches(".kwab")).collect()
}

#[test]
fn prune_keeps_the_first_and_the_newest_of_each_signature_and_removes_nothing_unasked() {
    let folder = fleet();
    let at = folder.path();
    fs::write(at.join("dumps/notes.kwab"), "not a dump\n").expect("written");
    fs::write(at.join("dumps/notes.txt"), "mine\n").expect("written");
    let before = || fs::read_dir(at.join("dumps")).unwrap().flatten().filter(|one| one.file_name() != ".kwab-index.db");
    let all = before().count();
    let (status, planned) = prune(at, &["--keep", "3"]);
    let expected: Vec<String> = (0..3)
        .flat_map(|build| (0..4).map(move |number| format!("steady-{build}-{number}")))
        .filter(|name| !["steady-0-0", "steady-2-2", "steady-2-3"].contains(&name.as_str()))
        .collect();
    assert_eq!((status, leaving(&planned)), (Some(0), expected.iter().map(String::as_str).collect()));
    assert_eq!((planned["removed"].as_bool(), before().count()), (Some(false), all));
    let (status, done) = prune(at, &["--keep", "3", "--yes"]);
    assert_eq!((status, leaving(&done)), (Some(0), leaving(&planned)));
    assert_eq!(before().count(), all - expected.len());
    let left = run(at, &["list", "dumps", "--json"]);
    assert!(!text(&left.stderr).contains("differ"), "the index is up to date: {}", text(&left.stderr));
    assert!(!text(&left.stdout).contains("steady-1-") && text(&left.stdout).contains("steady-0-0"));
    assert_eq!(leaving(&prune(at, &["--keep", "3"]).1), Vec::<&str>::new());
    // The smallest size leaves the first and the last of each signature, and what is not a dump, and says so.
    let (status, done) = prune(at, &["--max-size", "1", "--yes"]);
    assert_eq!((status, leaving(&done)), (Some(3), vec!["steady-2-2"]));
    let names: Vec<String> = before().map(|one| one.file_name().to_string_lossy().into_owned()).collect();
    for kept in ["new", "old-0", "old-1", "steady-0-0", "steady-2-3", "notes"] {
        assert!(names.contains(&format!("{kept}.kwab")), "{kept}: {names:?}");
    }
    assert!(names.contains(&"notes.txt".to_string()), "{names:?}");
    assert_eq!(run(at, &["prune", "dumps"]).status.code(), Some(2));
    assert_eq!(run(at, &["prune", "dumps", "--keep", "1"]).status.code(), Some(2));
}

#[test]
fn prune_by_size_takes_the_oldest_that_may_go() {
    let folder = fleet();
    let at = folder.path();
    let (_, all) = prune(at, &["--max-size", "1G"]);
    assert_eq!(leaving(&all), Vec::<&str>::new());
    let bytes = all["bytes"].as_u64().expect("bytes");
    let (status, planned) = prune(at, &["--max-size", &(bytes - 1).to_string()]);
    assert_eq!((status, leaving(&planned)), (Some(0), vec!["steady-0-1"]));
}

#[test]
fn a_disk_without_room_for_the_index_is_pruned_all_the_same() {
    let folder = fleet();
    let at = folder.path();
    // A limit of the length of files stands for the full disk.
    let kwab = assert_cmd::cargo::cargo_bin("kwab");
    let limited = |more: &str| {
        let script = format!("ulimit -f 8; exec \"$0\" prune dumps --json --keep 3 {more}");
        std::process::Command::new("sh").current_dir(at).args(["-c", &script]).arg(&kwab).output().expect("runs")
    };
    let plan = limited("");
    let said = text(&plan.stderr);
    assert!(said.contains("the dumps are read without it"), "{said}");
    let planned: Value = serde_json::from_slice(&plan.stdout).unwrap_or_else(|_| panic!("{said}"));
    assert_eq!((plan.status.code(), leaving(&planned).len()), (Some(0), 9), "{said}");
    let done = limited("--yes");
    assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
    let left =
        fs::read_dir(at.join("dumps")).unwrap().flatten().filter(|one| one.path().extension() == Some("kwab".as_ref()));
    assert_eq!(left.count(), 6);
    // What has room again is indexed.
    let (status, none) = prune(at, &["--keep", "3"]);
    assert_eq!((status, leaving(&none)), (Some(0), vec![]));
}

#[test]
fn a_file_in_the_place_of_a_directory_is_named_as_that() {
    let folder = folder();
    fs::write(folder.path().join("log"), "text\n").expect("written");
    for arguments in [&["index", "log"][..], &["trends", "log"], &["prune", "log", "--keep", "3"]] {
        let output = run(folder.path(), arguments);
        assert_eq!(output.status.code(), Some(2));
        let said = text(&output.stderr);
        assert_eq!(said, "kwab: log: is not a directory; name the one that holds the dumps\n", "{arguments:?}");
    }
}
