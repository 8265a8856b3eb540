//! One thing has one name: kinds of records and processes are called the same by the commands, their JSON and the
//! interface.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use crate::common::{folder, imported, run, text};
use kwab_tui::load::{Generations, Job, Message, Sources, perform};
use kwab_tui::view::{Slot, View};
use serde_json::Value;

/// The lists of a dump, as the interface shows them.
fn views(dump: &Path) -> BTreeMap<Slot, Arc<dyn View>> {
    let current = Generations::default();
    current.crash.store(1, std::sync::atomic::Ordering::Relaxed);
    let mut jobs = vec![Job::Open { generation: 1, path: dump.to_path_buf(), sources: Sources::default() }];
    let mut views = BTreeMap::new();
    while let Some(job) = jobs.pop() {
        jobs.extend(perform(job, &current, &mut |message| {
            if let Message::List { slot, view, .. } = message {
                views.insert(slot, view);
            }
        }));
    }
    views
}

/// The texts of all members with this name, wherever they are.
fn members(value: &Value, name: &str, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(object) => {
            found.extend(object.get(name).and_then(Value::as_str).map(str::to_string));
            object.values().for_each(|value| members(value, name, found));
        }
        Value::Array(items) => items.iter().for_each(|value| members(value, name, found)),
        _ => {}
    }
}

/// Dumps of a kernel and of logs, in a folder of their own.
fn dumps(at: &Path) -> Vec<String> {
    let ours = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testing/dumps");
    let mut names = Vec::new();
    for name in ["null-dereference.kwab", "cache-writable.kwab", "lock-order.kwab"] {
        std::fs::copy(ours.join(name), at.join(name)).expect("the dump is there");
        names.push(name.to_string());
    }
    names.extend(["kevlar-panic-socket", "kevlar-segv-children", "linux-6.1-sysrq-panic"].map(|log| imported(at, log)));
    names
}

#[test]
fn kinds_of_records_are_those_of_json() {
    let folder = folder();
    let at = folder.path();
    for dump in dumps(at) {
        let views = views(&at.join(&dump));
        let timeline = &views[&Slot::Timeline];
        let kind = |row| match timeline.field(row, "kind") {
            Some(kwab::report::filter::FieldValue::Text(kind)) => kind.into_owned(),
            _ => panic!("{dump}: event {row} has no kind"),
        };
        let shown: BTreeSet<String> = (0..timeline.len()).map(kind).collect();
        let mut known = BTreeSet::new();
        for section in ["cause", "events", "syscalls", "flight"] {
            let out = run(at, &["cat", &dump, section]);
            for line in text(&out.stdout).lines() {
                members(&serde_json::from_str(line).unwrap_or_default(), "type", &mut known);
            }
        }
        assert!(!shown.is_empty() && shown.is_subset(&known), "{dump}: {shown:?} and {known:?}");
    }
}

#[test]
fn a_process_has_one_name_in_lists_reports_triage_and_the_interface() {
    let folder = folder();
    let at = folder.path();
    let names = dumps(at);
    let list: Value = serde_json::from_str(&text(&run(at, &["list", ".", "--json"]).stdout)).expect("JSON");
    let entries: Vec<&Value> = list["groups"]
        .as_array()
        .expect("groups")
        .iter()
        .flat_map(|group| group["dumps"].as_array().expect("dumps"))
        .collect();
    assert_eq!(entries.len(), names.len());
    let mut programs = 0;
    for entry in entries {
        let of = |name: &str| entry[name].as_str().expect(name).to_string();
        let (file, victim, process) = (of("file"), of("victim"), of("process"));
        let first =
            |command: &str| text(&run(at, &[command, &file]).stdout).lines().next().unwrap_or_default().to_string();
        let (triage, inspect) = (first("triage"), first("inspect"));
        if victim == "kernel" {
            assert!(
                process.is_empty() || inspect.contains(&process) || !inspect.contains("running"),
                "{file}: {inspect}"
            );
            continue;
        }
        programs += 1;
        assert!(victim.ends_with(&process) && !process.is_empty(), "{file}: {victim} and {process}");
        for said in [&triage, &inspect, &of("cause")] {
            assert!(said.starts_with(&format!("{victim} died of ")), "{file}: {victim} and {said}");
        }
        if let Some(claim) = entry["finding"]["claim"].as_str().filter(|claim| claim.contains(" crashed: ")) {
            assert!(claim.starts_with(victim.split('[').next().unwrap_or_default()), "{file}: {victim} and {claim}");
        }
        let judged: Value = serde_json::from_str(&text(&run(at, &["triage", &file, "--json"]).stdout)).expect("JSON");
        let mut claims = BTreeSet::new();
        members(&judged, "claim", &mut claims);
        for (who, _) in claims.iter().filter_map(|claim| claim.split_once(" crashed: ")) {
            assert_eq!(Some(who), victim.split('[').next(), "{file}: {claims:?}");
        }
    }
    assert!(programs >= 2, "deaths of programs to compare");
}
