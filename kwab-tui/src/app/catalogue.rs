//! The dumps that were found, what is known of each, and which of them have to be read again.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kwab::report::catalogue::CatalogueEntry;

use super::pace::Pace;
use crate::dump_name;
use crate::list::ListState;
use crate::load::{Found, Job};
use crate::view::View as _;
use crate::view::catalogue::{CatalogueView, Folds, Listed};

/// Dumps that one job reads.
const AT_ONCE: usize = 64;

/// What is known of a dump.
struct Known {
    found: Found,
    /// What each of its dumps says; absent until the file has been read.
    entries: Option<Vec<Arc<CatalogueEntry>>>,
    /// Whether they say what triage concludes.
    judged: bool,
    /// The scan that saw it last.
    seen: u64,
    /// Whether it has to be read once it stays as it is.
    stale: bool,
}

impl Known {
    /// The dumps of the file: their names, and what they say. A file that has not been read counts as one.
    fn dumps(&self, file: &Path) -> impl Iterator<Item = (PathBuf, Option<Arc<CatalogueEntry>>)> {
        let entries = self.entries.as_deref().unwrap_or_default();
        let count = entries.len().max(1);
        (1..=count).map(move |number| (dump_name::named(file, number, count), entries.get(number - 1).cloned()))
    }
}

/// What choosing a dump has come to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Choice {
    /// It is the first of two.
    First,
    /// It was the first already, and is no longer chosen.
    Forgotten,
    /// It is the second: both, in their order.
    Pair(PathBuf, PathBuf),
}

/// The dumps and logs that were found, as the list of dumps shows them.
pub struct Catalogue {
    paths: Vec<PathBuf>,
    list: ListState,
    grouped: bool,
    folds: Folds,
    chosen: Option<PathBuf>,
    /// Files that are selected to be deleted or archived.
    picked: BTreeSet<PathBuf>,
    known: BTreeMap<PathBuf, Known>,
    logs: BTreeSet<PathBuf>,
    view: Arc<CatalogueView>,
    dirty: bool,
    generation: u64,
    scans: u64,
    pace: Pace,
}

impl Catalogue {
    pub(super) fn new(paths: Vec<PathBuf>) -> Self {
        let view = Arc::new(CatalogueView::new(Vec::new(), Vec::new(), Some(&Folds::default()), true));
        Self {
            paths,
            list: ListState::default(),
            grouped: true,
            folds: Folds::default(),
            chosen: None,
            picked: BTreeSet::new(),
            known: BTreeMap::new(),
            logs: BTreeSet::new(),
            view,
            dirty: false,
            generation: 1,
            scans: 0,
            pace: Pace::default(),
        }
    }

    /// Files and directories that were named.
    #[must_use]
    pub fn paths(&self) -> &[PathBuf] {
        &self.paths
    }

    /// How the list is looked at.
    #[must_use]
    pub const fn list(&self) -> &ListState {
        &self.list
    }

    /// The same, to be changed.
    pub(super) const fn list_mut(&mut self) -> &mut ListState {
        &mut self.list
    }

    /// The first of two dumps to compare.
    #[must_use]
    pub fn chosen(&self) -> Option<&Path> {
        self.chosen.as_deref()
    }

    /// Chooses a dump to compare: the first of two, or the second, which ends the choice.
    pub(super) fn choose(&mut self, path: PathBuf) -> Choice {
        match self.chosen.take() {
            None => {
                self.chosen = Some(path);
                Choice::First
            }
            Some(first) if first == path => Choice::Forgotten,
            Some(first) => Choice::Pair(first, path),
        }
    }

    /// Chooses the first of two dumps, whatever was chosen before.
    pub(super) fn choose_first(&mut self, path: PathBuf) {
        self.chosen = Some(path);
    }

    /// Forgets the chosen dump; says whether there was one.
    pub(super) fn forget_choice(&mut self) -> bool {
        self.chosen.take().is_some()
    }

    /// The list, as it was laid out last.
    #[must_use]
    pub fn view(&self) -> Arc<CatalogueView> {
        Arc::clone(&self.view)
    }

    /// The generation that its jobs carry.
    #[must_use]
    pub const fn generation(&self) -> u64 {
        self.generation
    }

    /// Whether everything has been found, read and judged.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.scans > 0 && !self.pace.is_looking() && self.known.values().all(|known| known.judged)
    }

    /// The dumps and logs that were found.
    pub(super) fn files(&self) -> impl Iterator<Item = &PathBuf> {
        self.known.keys().chain(&self.logs)
    }

    pub(super) fn scan(&mut self) -> Job {
        self.pace.begin();
        Job::Scan { generation: self.generation, paths: self.paths.clone() }
    }

    /// Looks again when it is time: `now` is in ms since the start.
    pub(super) fn tick(&mut self, now: u64) -> Option<Job> {
        self.pace.is_due(now).then(|| self.scan())
    }

    /// How long, in ms, nothing has to be done if nothing happens.
    pub(super) fn patience(&self, now: u64) -> u64 {
        self.pace.patience(now)
    }

    /// When the directories are looked at, to be changed.
    pub(super) const fn pace_mut(&mut self) -> &mut Pace {
        &mut self.pace
    }

    /// A file as the last look found it.
    pub(super) fn found_as(&self, path: &Path) -> Option<&Found> {
        self.known.get(path).map(|known| &known.found)
    }

    /// Reads everything again.
    pub(super) fn reload(&mut self) -> Job {
        self.generation += 1;
        self.list.placed = true;
        for known in self.known.values_mut() {
            known.stale = true;
        }
        self.scan()
    }

    /// Takes what a scan found; gives what has to be read. A dump that appears or changes later is read when two looks
    /// found it the same: until then it may still be written to.
    pub(super) fn found(&mut self, dumps: Vec<Found>, logs: Vec<PathBuf>, done: bool) -> Vec<Job> {
        let first_scan = self.scans == 0;
        let mut read = Vec::new();
        for found in dumps {
            let seen = self.scans;
            match self.known.get_mut(&found.path) {
                Some(known) => {
                    known.seen = seen;
                    if known.found != found {
                        known.found = found;
                        known.stale = true;
                    } else if known.stale {
                        known.stale = false;
                        read.push(known.found.path.clone());
                    }
                }
                None => {
                    if first_scan {
                        read.push(found.path.clone());
                    }
                    let path = found.path.clone();
                    let known = Known { found, entries: None, judged: false, seen, stale: !first_scan };
                    self.known.insert(path, known);
                    self.dirty = true;
                }
            }
        }
        self.dirty |= logs.iter().any(|log| self.logs.insert(log.clone()));
        if done {
            let scan = self.scans;
            let before = self.known.len();
            self.known.retain(|_, known| known.seen == scan);
            self.picked.retain(|file| self.known.contains_key(file));
            self.dirty |= self.known.len() != before || first_scan;
            self.scans += 1;
            self.pace.end(self.known.values().any(|known| known.stale));
        }
        let generation = self.generation;
        let jobs = read.chunks(AT_ONCE).map(|files| Job::Read { generation, files: files.to_vec() });
        jobs.collect()
    }

    /// Takes what dumps say, and with `judged` what triage concludes.
    pub(super) fn entries(&mut self, entries: Vec<(PathBuf, Vec<CatalogueEntry>)>, judged: bool) {
        for (path, entries) in entries {
            if let Some(known) = self.known.get_mut(&path) {
                known.entries = Some(entries.into_iter().map(Arc::new).collect());
                known.judged = judged;
                self.dirty = true;
            }
        }
    }

    /// Dumps to compare one with, those of the same crash first: what each says, and its path.
    pub(super) fn others(&self, path: &Path, signature: Option<&str>) -> Vec<(String, PathBuf)> {
        let known = self.known.iter().flat_map(|(file, known)| known.dumps(file));
        let mut others: Vec<(bool, String, PathBuf)> = known
            .filter(|(other, _)| other.as_path() != path)
            .filter_map(|(other, entry)| {
                let entry = entry.filter(|entry| entry.kind != "unreadable")?;
                let name = other.file_name().unwrap_or(other.as_os_str()).to_string_lossy();
                let label = format!("{name}  {}", entry.cause);
                Some((Some(entry.signature.as_str()) != signature, label, other.clone()))
            })
            .collect();
        others.sort();
        others.into_iter().map(|(_, label, path)| (label, path)).collect()
    }

    /// Puts dumps of the same crash together, or lists each alone.
    pub(super) fn toggle_groups(&mut self) {
        self.grouped = !self.grouped;
        self.lay_out_again();
    }

    /// Folds the group of a row, or shows its dumps; the heading is selected then.
    pub(super) fn fold(&mut self, row: usize) {
        let Some((key, heading)) = self.view.group_of(row) else { return };
        self.folds.toggle(key);
        self.list.selected = heading;
        self.lay_out_again();
    }

    /// Folds all groups, or none.
    pub(super) fn fold_all(&mut self) {
        self.folds.toggle_all();
        self.lay_out_again();
    }

    /// The file of a dump as the list names it.
    fn file_of(&self, name: &str) -> Option<&PathBuf> {
        let known = |name: &str| self.known.get_key_value(Path::new(name)).map(|(file, _)| file);
        known(name).or_else(|| known(name.rsplit_once('#')?.0))
    }

    fn files_of(&self, row: usize) -> Vec<PathBuf> {
        self.view.paths(row).into_iter().filter_map(|name| self.file_of(name)).cloned().collect()
    }

    /// Selects the dumps of a row, or ends that if all of them are selected; gives how many files are selected then.
    pub(super) fn pick(&mut self, row: usize) -> Option<usize> {
        let files = self.files_of(row);
        if files.is_empty() {
            return None;
        }
        if files.iter().all(|file| self.picked.contains(file)) {
            files.iter().for_each(|file| drop(self.picked.take(file)));
        } else {
            self.picked.extend(files);
        }
        Some(self.picked.len())
    }

    /// Whether a dump is selected to be deleted or archived.
    #[must_use]
    pub fn is_picked(&self, name: &str) -> bool {
        !self.picked.is_empty() && self.file_of(name).is_some_and(|file| self.picked.contains(file))
    }

    /// How many files are selected to be deleted or archived.
    #[must_use]
    pub fn picked(&self) -> usize {
        self.picked.len()
    }

    /// Ends the selection; says whether there was one.
    pub(super) fn forget_picks(&mut self) -> bool {
        !std::mem::take(&mut self.picked).is_empty()
    }

    /// The files that are selected, else those of a row, as the last look found them.
    pub(super) fn to_tidy(&self, row: Option<usize>) -> Vec<Found> {
        let own = || row.map(|row| self.files_of(row)).unwrap_or_default().into_iter().collect();
        let files: BTreeSet<PathBuf> = if self.picked.is_empty() { own() } else { self.picked.clone() };
        files.iter().filter_map(|file| self.found_as(file)).cloned().collect()
    }

    /// Looks at the directories again at once; what has been read stays.
    pub(super) fn look_again(&mut self) -> Job {
        self.generation += 1;
        for known in self.known.values_mut().filter(|known| !known.judged) {
            known.stale = true;
        }
        self.scan()
    }

    fn lay_out_again(&mut self) {
        self.list.placed = true;
        self.dirty = true;
    }

    /// Lays the list out when something has changed; the selection stays on its dump. Says whether it has.
    pub(super) fn settle(&mut self) -> bool {
        if !std::mem::take(&mut self.dirty) {
            return false;
        }
        let look = crate::view::Look::default();
        let target = self.view.target(self.list.selected, &look).filter(|_| self.view.len() > self.list.selected);
        let is_heading = self.view.group_of(self.list.selected).is_some_and(|(_, at)| at == self.list.selected);
        // Without a choice of the user, the selection stays at the top while dumps are being found.
        let at_top = self.list.selected == 0 && !self.list.placed;
        let dumps = self
            .known
            .iter()
            .flat_map(|(file, known)| known.dumps(file))
            .map(|(path, entry)| Listed { path: path.display().to_string(), entry });
        let imported = |log: &Path| self.known.keys().any(|dump| made_of(dump, log));
        let logs = self.logs.iter().filter(|log| self.known.len() > 1000 || !imported(log));
        let logs = logs.map(|log| log.display().to_string()).collect();
        let before = std::mem::replace(
            &mut self.view,
            Arc::new(CatalogueView::new(dumps.collect(), logs, self.grouped.then_some(&self.folds), self.scans == 0)),
        );
        if let Some(shown) = self.list.shown.take() {
            self.list.shown = Some(Arc::new(self.still_shown(&before, &shown)));
        }
        let row = target.filter(|_| !at_top).and_then(|target| self.view.find(&target));
        let heading = row.and_then(|row| self.view.group_of(row)).map(|(_, heading)| heading);
        let row = heading.filter(|_| is_heading).or(row);
        self.list.selected = row.unwrap_or(self.list.selected);
        self.list.clip(self.view.len());
        true
    }

    /// The rows that a filter had left of the list before, where they are now: until it is asked again, and for good if
    /// it cannot be understood.
    fn still_shown(&self, before: &CatalogueView, shown: &[u32]) -> Vec<u32> {
        let name = |view: &CatalogueView, row: u32| {
            let row = row as usize;
            view.path(row).or(view.log(row)).map(str::to_string)
        };
        let mut positions = HashMap::new();
        for (position, row) in shown.iter().enumerate() {
            if let Some(name) = name(before, *row) {
                positions.entry(name).or_insert(position);
            }
        }
        let rows = 0..u32::try_from(self.view.len()).unwrap_or(u32::MAX);
        let placed = rows.filter_map(|row| Some((*positions.get(&name(&self.view, row)?)?, row)));
        let mut placed: Vec<(usize, u32)> = placed.collect();
        if self.list.sort.is_some() {
            placed.sort_unstable();
        }
        placed.into_iter().map(|(_, row)| row).collect()
    }
}

/// Whether a dump has the name that importing a log gives it.
fn made_of(dump: &Path, log: &Path) -> bool {
    let stem = |path: &Path| path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let (Some(dump_stem), Some(log_stem)) = (stem(dump), stem(log)) else { return false };
    let numbered = dump_stem.strip_prefix(&log_stem).and_then(|rest| rest.strip_prefix('-'));
    let same = dump_stem == log_stem || numbered.is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()));
    same && dump.parent() == log.parent()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::Watched;

    fn dump(name: &str) -> Found {
        Found { path: PathBuf::from(name), ..Found::default() }
    }

    #[test]
    fn the_second_chosen_dump_makes_the_pair_and_the_same_one_ends_the_choice() {
        let mut catalogue = Catalogue::new(Vec::new());
        let (a, b) = (PathBuf::from("a"), PathBuf::from("b"));
        assert_eq!(catalogue.choose(a.clone()), Choice::First);
        assert_eq!(catalogue.choose(a.clone()), Choice::Forgotten);
        assert_eq!(catalogue.choose(a.clone()), Choice::First);
        assert_eq!(catalogue.choose(b.clone()), Choice::Pair(a, b));
        assert_eq!(catalogue.chosen(), None);
        assert!(!catalogue.forget_choice());
    }

    #[test]
    fn a_dump_that_appears_later_is_read_once_two_scans_found_it_the_same() {
        let mut catalogue = Catalogue::new(Vec::new());
        assert_eq!(catalogue.found(vec![dump("a")], Vec::new(), true).len(), 1, "what is there first is read at once");
        assert!(catalogue.found(vec![dump("a"), dump("b")], Vec::new(), true).is_empty());
        assert_eq!(catalogue.found(vec![dump("a"), dump("b")], Vec::new(), true).len(), 1);
        assert!(catalogue.found(vec![dump("a"), dump("b")], Vec::new(), true).is_empty());
    }

    #[test]
    fn the_list_is_complete_once_every_dump_is_judged_and_not_when_it_is_only_read() {
        let mut catalogue = Catalogue::new(Vec::new());
        let said = || vec![(PathBuf::from("a"), vec![kwab::report::catalogue::unreadable("a", "")])];
        catalogue.found(vec![dump("a")], Vec::new(), true);
        catalogue.entries(said(), false);
        assert!(!catalogue.is_complete());
        catalogue.entries(said(), true);
        assert!(catalogue.is_complete());
    }

    #[test]
    fn directories_are_looked_at_again_two_seconds_after_the_last_scan() {
        let mut catalogue = Catalogue::new(Vec::new());
        assert!(catalogue.tick(0).is_some());
        assert!(catalogue.tick(9_000).is_none(), "the first scan is still running");
        catalogue.found(Vec::new(), Vec::new(), true);
        assert!(catalogue.tick(10_999).is_none());
        assert!(catalogue.tick(11_000).is_some());
    }

    #[test]
    fn a_dump_that_may_still_be_written_to_is_looked_at_again_soon_although_directories_are_watched() {
        let mut catalogue = Catalogue::new(Vec::new());
        assert!(catalogue.tick(0).is_some());
        catalogue.pace_mut().watch(Watched::All);
        catalogue.found(vec![dump("a")], Vec::new(), true);
        assert_eq!(catalogue.patience(0), 60_000);
        catalogue.pace_mut().change();
        assert!(catalogue.tick(500).is_some());
        catalogue.found(vec![dump("a"), dump("b")], Vec::new(), true);
        assert_eq!(catalogue.patience(500), 2_000);
    }
}
