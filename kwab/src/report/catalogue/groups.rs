//! Puts dumps of the same bug together, and the groups in order.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::Serialize;

use super::entry::{CatalogueEntry, Finding};
use crate::analysis::is_at_the_death;
use crate::report::signature::{self, without_numbers};

/// The version of [`Catalogue`]'s JSON form.
pub const SCHEMA: u32 = 3;

/// Clocks of a log and of a dump of one death differ by less than this, in nanoseconds: the log is stamped when its
/// line is printed, the dump when it is written.
const ONE_DEATH_NS: u64 = 2_000_000_000;

/// Dumps, grouped by what triage concludes from them.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Catalogue {
    /// Version of this form.
    pub schema: u32,
    /// Version of the way signatures are made; those of different versions are not to be compared.
    pub signature_version: u32,
    /// Groups of dumps of one bug, in the order that was asked for.
    pub groups: Vec<Group>,
}

/// Dumps of the same bug.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Group {
    /// The best supported conclusion among them, when it is likelier than not: what they have in common.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finding: Option<Finding>,
    /// Their signatures, each once; the oldest dump's first.
    pub signatures: Vec<String>,
    /// How many deaths or recordings they tell of: a log and a dump of the same death count once.
    pub count: usize,
    /// The dumps, oldest first; those that know no wall clock last.
    pub dumps: Vec<CatalogueEntry>,
}

/// What groups are ordered by; equal ones stay ordered by frequency. In each order crashes come before recordings, and
/// those before unreadable files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Order {
    /// The most frequent first.
    #[default]
    Count,
    /// The best supported conclusion first.
    Score,
    /// The one that happened first.
    First,
    /// The one that happened last first.
    Last,
    /// By the rule's name and the claim.
    Finding,
    /// By function or location.
    Place,
    /// By the process that died or ran.
    Process,
    /// The one with the most damaged dumps first.
    Completeness,
}

impl Catalogue {
    /// Groups entries and orders the groups.
    #[must_use]
    pub fn of(entries: Vec<CatalogueEntry>, order: Order) -> Self {
        let arranged = arrange(&entries.iter().collect::<Vec<_>>());
        let mut entries: Vec<Option<CatalogueEntry>> = entries.into_iter().map(Some).collect();
        let mut take = |index: usize| entries.get_mut(index).and_then(Option::take);
        let mut groups: Vec<(Rank, Group)> = arranged
            .into_iter()
            .map(|Arranged { rank, finding, count, members, .. }| {
                let dumps: Vec<CatalogueEntry> = members.into_iter().filter_map(&mut take).collect();
                let mut seen = BTreeSet::new();
                let each = dumps.iter().map(|entry| entry.signature.clone());
                let signatures = each.filter(|signature| seen.insert(signature.clone())).collect();
                (rank, Group { finding, signatures, count, dumps })
            })
            .collect();
        groups.sort_by(|(rank, a), (other, b)| rank.cmp(other).then_with(|| order.compare(a, b)));
        let groups = groups.into_iter().map(|(_, group)| group).collect();
        Self { schema: SCHEMA, signature_version: signature::VERSION, groups }
    }
}

/// What kind of group it is; lists show them in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rank {
    /// Dumps of a crash, or in which triage finds a bug.
    Crash,
    /// Dumps that tell of no death, or have lost it.
    Recording,
    /// Files that are not dumps.
    Unreadable,
}

/// A group as positions in a list of entries.
#[derive(Debug, Clone)]
pub struct Arranged {
    /// What kind of group it is.
    pub rank: Rank,
    /// What its dumps have in common: rule and function of the conclusion, or `~` and the signature of the symptom.
    pub key: String,
    /// The best supported conclusion among its dumps, when it is likelier than not.
    pub finding: Option<Finding>,
    /// How many deaths or recordings they tell of.
    pub count: usize,
    /// The dumps, oldest first; those that know no wall clock last.
    pub members: Vec<usize>,
}

/// Puts the entries of the same bug together, the most frequent first.
#[must_use]
pub fn arrange(entries: &[&CatalogueEntry]) -> Vec<Arranged> {
    let mut by_key: BTreeMap<(Rank, String), Arranged> = BTreeMap::new();
    for bundle in bundles(entries) {
        let members = || bundle.iter().filter_map(|index| entries.get(*index).copied());
        let likely = members().filter_map(|entry| entry.finding.as_ref()).filter(|found| found.is_likely());
        let best = likely.max_by(|a, b| a.score.total_cmp(&b.score));
        let (rank, name) = key(best, members());
        let empty = || Arranged { rank, key: name.clone(), finding: None, count: 0, members: Vec::new() };
        let group = by_key.entry((rank, name.clone())).or_insert_with(empty);
        group.count += 1;
        group.members.extend(&bundle);
    }
    let mut groups: Vec<Arranged> = by_key.into_values().collect();
    for group in &mut groups {
        group.members.sort_by_key(|index| entries.get(*index).map(|entry| (time(entry), entry.file.as_str())));
        let members = group.members.iter().filter_map(|index| entries.get(*index));
        let likely = members.filter_map(|entry| entry.finding.as_ref()).filter(|found| found.is_likely());
        // Of equally supported ones that of the oldest dump: the order of the entries does not matter.
        group.finding = likely.reduce(|best, other| if other.score > best.score { other } else { best }).cloned();
    }
    groups.sort_by_key(|group| (group.rank, std::cmp::Reverse(group.count)));
    groups
}

/// Orders dumps by when they happened. Those that know no wall clock come last: logs, beside the dumps of their deaths.
const fn time(entry: &CatalogueEntry) -> (bool, Option<i64>, Option<u32>, Option<u64>) {
    (entry.wall_ns.is_none(), entry.wall_ns, entry.boot, entry.mono_ns)
}

/// The last of dumps in their order whose clock can be compared with the first one's.
#[must_use]
pub fn last_of<'a>(ordered: impl DoubleEndedIterator<Item = &'a CatalogueEntry> + Clone) -> Option<&'a CatalogueEntry> {
    let has_wall = ordered.clone().next()?.wall_ns.is_some();
    ordered.rev().find(|entry| entry.wall_ns.is_some() == has_wall)
}

impl Group {
    /// The function of the finding, else the location that the oldest dump says; empty when unknown.
    #[must_use]
    pub fn place(&self) -> &str {
        let function = self.finding.as_ref().and_then(|found| found.function.as_deref());
        function.or_else(|| self.dumps.first().map(|entry| entry.place.as_str())).unwrap_or_default()
    }
}

impl Order {
    /// How two groups of the same rank stand in this order; equal ones stay in the order of [`arrange`].
    #[must_use]
    pub fn compare(self, a: &Group, b: &Group) -> std::cmp::Ordering {
        let first = |group: &Group| group.dumps.first().map(time);
        let last = |group: &Group| last_of(group.dumps.iter()).map(|entry| (entry.wall_ns, entry.boot, entry.mono_ns));
        let score = |group: &Group| group.finding.as_ref().map_or(0.0, |found| found.score);
        let named = |group: &Group| match (&group.finding, group.dumps.first()) {
            (Some(found), _) => (0, found.rule.clone(), found.claim.clone()),
            (None, first) => (1, String::new(), first.map(|entry| entry.cause.clone()).unwrap_or_default()),
        };
        // Groups that do not know come last.
        let known = |text: Option<&str>| text.map(|text| (text.is_empty(), text.to_string()));
        let process = |group: &Group| known(group.dumps.first().map(|entry| entry.process.as_str()));
        let damaged = |group: &Group| group.dumps.iter().filter(|entry| !entry.sound).count();
        match self {
            Self::Count => std::cmp::Ordering::Equal,
            Self::Score => score(b).total_cmp(&score(a)),
            Self::First => first(a).cmp(&first(b)),
            Self::Last => last(b).cmp(&last(a)),
            Self::Finding => named(a).cmp(&named(b)),
            Self::Place => known(Some(a.place())).cmp(&known(Some(b.place()))),
            Self::Process => process(a).cmp(&process(b)),
            Self::Completeness => damaged(b).cmp(&damaged(a)),
        }
    }
}

/// The group of a bundle: what its best supported likely finding says, else what died how.
fn key<'a>(best: Option<&Finding>, members: impl Iterator<Item = &'a CatalogueEntry>) -> (Rank, String) {
    // The kernel's own dump comes before the log of the same death.
    let Some(told) = members.min_by_key(|entry| entry.source != "kernel") else {
        return (Rank::Unreadable, String::new());
    };
    if let Some(found) = best {
        return (Rank::Crash, key_of(found, told));
    }
    match told.kind.as_str() {
        "recording" => (Rank::Recording, String::new()),
        "lost" => (Rank::Recording, "lost".to_string()),
        "unreadable" => (Rank::Unreadable, String::new()),
        _ => (Rank::Crash, format!("~{}", told.signature)),
    }
}

/// What findings of the same bug have in common: the rule, and where. That is the function with the program it belongs
/// to; without a function the location that the signature names, and of a bug that lies elsewhere than the death the
/// claim without its numbers.
fn key_of(found: &Finding, told: &CatalogueEntry) -> String {
    let rule = match &found.about {
        Some(about) => format!("{} {about}", found.rule),
        None => found.rule.clone(),
    };
    match &found.function {
        Some(function) => {
            let victim = told.victim.split('[').next().unwrap_or_default();
            let program = String::from_utf8_lossy(signature::base_name(victim.as_bytes()));
            format!("{rule} in {function} of {program}")
        }
        None if is_at_the_death(&found.rule) => format!("{rule} at {}", told.signature),
        None => format!("{rule}: {}", String::from_utf8_lossy(&without_numbers(found.claim.as_bytes()))),
    }
}

/// Entries of one death together: each log that tells of the death of a dump goes with that dump, each dump with one.
fn bundles(entries: &[&CatalogueEntry]) -> Vec<Vec<usize>> {
    let is_log = |(_, entry): &(usize, &&CatalogueEntry)| entry.source == "log";
    let (logs, dumps): (Vec<_>, Vec<_>) = entries.iter().enumerate().partition(is_log);
    let mut bundles: Vec<Vec<usize>> = dumps.iter().map(|(index, _)| vec![*index]).collect();
    let mut by_death: BTreeMap<Death<'_>, BTreeSet<(u64, usize)>> = BTreeMap::new();
    for (bundle, (_, dump)) in dumps.into_iter().enumerate() {
        let Some((key, ns)) = death(dump) else { continue };
        by_death.entry(key).or_default().insert((ns, bundle));
    }
    for (index, log) in logs {
        let partner = death(log).and_then(|(key, ns)| {
            let deaths = by_death.get_mut(&key)?;
            let near = [deaths.range(..(ns, 0)).next_back(), deaths.range((ns, 0)..).next()];
            let nearest = *near.into_iter().flatten().min_by_key(|(other, _)| ns.abs_diff(*other))?;
            (ns.abs_diff(nearest.0) < ONE_DEATH_NS && deaths.remove(&nearest)).then_some(nearest.1)
        });
        match partner.and_then(|bundle| bundles.get_mut(bundle)) {
            Some(bundle) => bundle.push(index),
            None => bundles.push(vec![index]),
        }
    }
    bundles
}

/// Process, its id and the processor of a death.
type Death<'a> = (&'a str, Option<u32>, Option<u32>);

/// What a log and a dump of the same death say alike, and when it was; `None` for what cannot be compared.
fn death(entry: &CatalogueEntry) -> Option<(Death<'_>, u64)> {
    let died = !matches!(entry.kind.as_str(), "recording" | "lost" | "unreadable");
    let ns = entry.mono_ns.filter(|_| died && entry.pid.is_some() && entry.cpu.is_some())?;
    Some(((entry.process.as_str(), entry.pid, entry.cpu), ns))
}

#[cfg(test)]
mod tests {
    use super::super::entry::unreadable;
    use super::*;

    fn found(rule: &str, score: f64, function: Option<&str>) -> Finding {
        Finding {
            rule: rule.to_string(),
            class: "test".to_string(),
            claim: format!("{rule} happened 3 times"),
            score,
            proven: false,
            function: function.map(str::to_string),
            about: None,
        }
    }

    fn crash(file: &str, finding: Option<Finding>) -> CatalogueEntry {
        CatalogueEntry {
            kind: "panic".to_string(),
            signature: "11111111".to_string(),
            source: "kernel".to_string(),
            finding,
            ..unreadable(file, "")
        }
    }

    /// Rule and files of each group.
    fn groups(entries: Vec<CatalogueEntry>, order: Order) -> Vec<(Option<String>, Vec<String>)> {
        let groups = Catalogue::of(entries, order).groups;
        let files = |group: &Group| group.dumps.iter().map(|entry| entry.file.clone()).collect();
        groups.iter().map(|group| (group.finding.as_ref().map(|found| found.rule.clone()), files(group))).collect()
    }

    fn files(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_string()).collect()
    }

    #[test]
    fn one_symptom_of_two_bugs_makes_two_groups_and_two_symptoms_of_one_bug_one() {
        let mut other = crash("c", Some(found("LEAK", 0.6, Some("map"))));
        other.signature = "22222222".to_string();
        let entries = vec![
            crash("a", Some(found("LEAK", 0.9, Some("map")))),
            crash("b", Some(found("TLB", 0.9, Some("map")))),
            other,
        ];
        let groups = groups(entries, Order::Count);
        assert_eq!(groups, [(Some("LEAK".to_string()), files(&["a", "c"])), (Some("TLB".to_string()), files(&["b"]))]);
    }

    #[test]
    fn a_finding_less_likely_than_not_does_not_part_what_looks_the_same() {
        let entries = vec![crash("a", Some(found("NULL", 0.3, None))), crash("b", Some(found("WILD", 0.4, None)))];
        assert_eq!(groups(entries, Order::Count), [(None, files(&["a", "b"]))]);
    }

    #[test]
    fn one_claim_at_two_locations_is_two_bugs_and_a_function_is_one_of_its_program() {
        let at = |file: &str, signature: &str, victim: &str, function: Option<&str>| {
            let mut entry = crash(file, Some(found("NULL", 0.69, function)));
            (entry.signature, entry.victim) = (signature.to_string(), victim.to_string());
            entry
        };
        let entries = vec![
            at("a", "11111111", "/bin/grep[7]", None),
            at("b", "22222222", "/bin/vi[8]", None),
            at("c", "33333333", "/bin/grep[9]", Some("main")),
            at("d", "44444444", "vi[9]", Some("main")),
            at("e", "55555555", "grep[10]", Some("main")),
        ];
        let groups: Vec<_> = groups(entries, Order::Count).into_iter().map(|(_, files)| files).collect();
        assert_eq!(groups, [files(&["c", "e"]), files(&["a"]), files(&["b"]), files(&["d"])]);
    }

    #[test]
    fn a_claim_without_a_function_is_told_apart_by_its_words_and_not_by_its_numbers() {
        let said = |file: &str, claim: &str| {
            crash(file, Some(Finding { claim: claim.to_string(), ..found("AUDIT", 0.9, None) }))
        };
        let entries = vec![said("a", "3 frames leak"), said("b", "17 frames leak"), said("c", "3 frames are shared")];
        let groups = groups(entries, Order::Count);
        assert_eq!(groups.into_iter().map(|(_, files)| files).collect::<Vec<_>>(), [files(&["a", "b"]), files(&["c"])]);
    }

    #[test]
    fn a_log_and_a_dump_of_one_death_count_once_and_each_dump_has_one_log() {
        let at = |file: &str, source: &str, ms: u64, finding| CatalogueEntry {
            source: source.to_string(),
            process: "exam[2]".to_string(),
            pid: Some(2),
            cpu: Some(0),
            mono_ns: Some(ms * 1_000_000),
            signature: format!("{source:0>8}"),
            ..crash(file, finding)
        };
        let dump = at("dump", "kernel", 5_400, Some(found("NULL", 0.9, Some("read"))));
        let (log, late) = (at("log", "log", 5_100, None), at("late", "log", 9_000, None));
        let entries = vec![log.clone(), dump.clone(), late.clone()];
        let catalogue = Catalogue::of(entries, Order::Count);
        let shown: Vec<(usize, usize)> =
            catalogue.groups.iter().map(|group| (group.count, group.dumps.len())).collect();
        assert_eq!(shown, [(1, 2), (1, 1)]);
        assert_eq!(catalogue.groups[0].signatures.len(), 2);
        // A second log of the same moment is another boot's.
        let again = CatalogueEntry { file: "again".to_string(), ..log.clone() };
        let counts = Catalogue::of(vec![dump, log, again], Order::Count).groups;
        assert_eq!(counts.iter().map(|group| group.count).collect::<Vec<_>>(), [1, 1]);
    }

    #[test]
    fn groups_stand_in_the_order_asked_for_and_what_did_not_die_last() {
        let with = |file: &str, wall, process: &str, finding| CatalogueEntry {
            wall_ns: Some(wall),
            process: process.to_string(),
            sound: true,
            ..crash(file, finding)
        };
        let entries = || {
            vec![
                CatalogueEntry { kind: "recording".to_string(), ..with("r", 0, "a", None) },
                CatalogueEntry { sound: false, ..with("x", 3, "b[1]", Some(found("ZERO", 0.6, Some("beta")))) },
                with("y", 1, "", Some(found("ALPHA", 0.9, Some("gamma")))),
                with("z", 2, "a[9]", Some(found("MID", 0.8, Some("alpha")))),
                with("z2", 9, "a[9]", Some(found("MID", 0.7, Some("alpha")))),
                unreadable("u", "not a dump"),
            ]
        };
        let of =
            |order| -> String { groups(entries(), order).into_iter().map(|(_, files)| files[0].clone()).collect() };
        assert_eq!(of(Order::Count), "zyxru");
        assert_eq!(of(Order::Score), "yzxru");
        assert_eq!(of(Order::First), "yzxru");
        assert_eq!(of(Order::Last), "zxyru");
        assert_eq!(of(Order::Finding), "yzxru");
        assert_eq!(of(Order::Place), "zxyru");
        assert_eq!(of(Order::Process), "zxyru");
        assert_eq!(of(Order::Completeness), "xzyru");
    }
}
