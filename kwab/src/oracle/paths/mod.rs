//! Where the paths of two runs through the kernel part: which code ran in which call of either build.
//!
//! ```text
//!  Paths (blocks per call) + image ─▶ places (function, line) ─┐
//!                                                              ├─▶ partings, suspects
//!  pairs of calls that the comparison aligned ─────────────────┘
//! ```
//!
//! A deterministic machine takes the same path until the first line that the change decides. Of each pair of calls that
//! ended before the first difference the places are compared as sets, and where these differ in the order of all their
//! turns; what also differs between two runs of the good build is noise. The function that holds the first place of one
//! run only is where the paths part. Code without a branch cannot part, so functions that ran just before it are
//! suspected too, and after them functions by how few calls with right answers they ran in. Where the order of turns
//! was recorded and no interrupt turned it, those that made the tested value come first ([`mod@slice`]).

mod file;
mod flows;
mod left;
mod part;
mod places;
mod slice;
mod state;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::rc::Rc;

use file::Visit;
pub use file::{NoPaths, Paths};
use part::{Parted, part, turns_part};
use places::{CodeLine, Functions, Resolver, Way};
use slice::Brought;

use super::report::{OracleReport, Parting, Verdict};
use crate::decode::exception_name;
use crate::report::align::{align, fingerprint};
use crate::symbols::Image;

/// Where the functions lie that answer system calls.
const HANDLERS: &str = "kernel::syscalls::";
/// Functions that are named.
const MOST: usize = 20;
/// Partings that are reported: the first ones in time, and that of the call which differs.
const MOST_PARTINGS: usize = 3;
/// Functions before a parting, and functions of few calls, that are named before its consequences.
const BEFORE: usize = 2;
const RARE: usize = 6;
/// Functions that are named since they made a value in a call, and of those that made it in earlier ones.
const BROUGHT: usize = 4;
const LEFT: usize = 3;
/// How many times as often as the function that asked it the one that answered may run in calls with right answers.
const MOST_OFTEN: usize = 4;
/// Calls of a thread that are looked at where no event says which they are.
const MOST_CALLS: usize = 64;
/// Calls with right answers whose functions are counted.
const MOST_RIGHT: usize = 4096;

/// The recording of a run and the kernel that made it.
#[derive(Clone, Copy, Debug)]
pub struct Recorded<'a> {
    /// The blocks that ran in each call.
    pub paths: &'a Paths,
    /// The image of the kernel.
    pub image: &'a Image,
}

impl OracleReport {
    /// Says where the paths of the compared runs part, and names the functions that the first difference can come from
    /// by them. `again` are paths of further runs of the good build: what differs there is noise.
    pub fn follow_paths(&mut self, good: Recorded<'_>, bad: Recorded<'_>, again: &[Paths]) {
        self.good.gaps.extend(good.paths.gaps.iter().cloned());
        self.bad.gaps.extend(bad.paths.gaps.iter().cloned());
        let mut search = PathSearch::new(self, good, bad);
        search.add_noise(good, again);
        let mut found = search.partings();
        if found.is_empty() {
            found = search.starts();
        }
        let behind = search.ranked(&found);
        let spent = [search.good.is_spent(), search.bad.is_spent()];
        for (side, _) in [&mut self.good, &mut self.bad].into_iter().zip(spent).filter(|(_, spent)| *spent) {
            side.gaps.push("its paths list more code than a recording of that length has: some were cut".to_owned());
        }
        self.partings = found.into_iter().map(|parting| parting.told).collect();
        self.behind = behind;
    }
}

/// The paths of a run's calls in their order, each with what says which system call it is.
fn handlers(run: &mut Resolver<'_>, functions: &mut Functions) -> Vec<(u32, u64)> {
    let paths = run.paths;
    let call = |visit: &Visit| {
        let way = run.way(visit.path, functions);
        let mut own: Vec<&str> = way.functions.iter().map(|function| functions.name(*function)).collect();
        own.retain(|name| name.starts_with(HANDLERS));
        own.sort_unstable();
        (visit.path, fingerprint(&own.join(" ")))
    };
    paths.calls.values().map(call).collect()
}

fn vector_name(vector: u32) -> String {
    exception_name(vector).map_or_else(|| vector.to_string(), |(name, _)| name.to_owned())
}

/// A parting of two ways, and how it is told.
struct FoundParting {
    parted: Parted,
    told: Parting,
    /// Whether another thread ran meanwhile.
    sleeps: bool,
    /// Whether an interrupt fell into one of the ways.
    is_interrupted: bool,
    /// The functions that ran in the bad run.
    ran: HashSet<u32>,
    /// The visit of the good run and that of the bad one.
    visits: (Visit, Visit),
}

/// Whether the calls before the one that differs did the same: a parting that time may have made is told beside it, and
/// is not before it.
fn nothing_parted_before(found: &[FoundParting]) -> bool {
    found.iter().all(|parting| !parting.told.alike || parting.sleeps || parting.is_interrupted)
}

struct PathSearch<'a> {
    report: &'a OracleReport,
    functions: Functions,
    good: Resolver<'a>,
    bad: Resolver<'a>,
    traps: (BTreeMap<u32, Vec<file::Trap>>, BTreeMap<u32, Vec<file::Trap>>),
    noise: HashSet<CodeLine>,
    /// The pairs of calls that ended before the first difference, in the order of time.
    earlier: Vec<(u32, u32)>,
}

impl<'a> PathSearch<'a> {
    fn new(report: &'a OracleReport, good: Recorded<'a>, bad: Recorded<'a>) -> Self {
        let mut functions = Functions::default();
        let mut of_good = Resolver::new(good.image, good.paths);
        let mut of_bad = Resolver::new(bad.image, bad.paths);
        of_bad.moved_since(&mut of_good, &mut functions);
        let traps = (good.paths.traps_behind(), bad.paths.traps_behind());
        Self { report, functions, good: of_good, bad: of_bad, traps, noise: HashSet::new(), earlier: Vec::new() }
    }

    /// Collects the places that differ between two runs of the good build.
    fn add_noise(&mut self, good: Recorded<'_>, again: &[Paths]) {
        for paths in again {
            let mut other = Resolver::new(good.image, paths);
            let (ours, theirs) =
                (handlers(&mut self.good, &mut self.functions), handlers(&mut other, &mut self.functions));
            let prints = |calls: &[(u32, u64)]| calls.iter().map(|call| call.1).collect::<Vec<_>>();
            let beside = align(&prints(&ours), &prints(&theirs), &mut || true).unwrap_or_default();
            for (here, there) in beside.iter().filter_map(|row| row.left.zip(row.right)) {
                self.differs(ours[here as usize].0, &mut other, theirs[there as usize].0);
            }
            for (number, start) in &self.good.paths.starts {
                if let Some(there) = paths.starts.get(number) {
                    self.differs(start.visit.path, &mut other, there.visit.path);
                }
            }
            let first = paths.traps_first();
            for (number, traps) in self.good.paths.traps_first() {
                for (here, there) in traps.iter().zip(first.get(&number).into_iter().flatten()) {
                    self.differs(here.visit.path, &mut other, there.visit.path);
                }
            }
        }
    }

    /// Adds the places that differ between a path of the good run and one of another.
    fn differs(&mut self, here: u32, other: &mut Resolver<'_>, there: u32) {
        let (one, two) = (self.good.way(here, &mut self.functions), other.way(there, &mut self.functions));
        let differs = |place: &&CodeLine| one.times.get(place) != two.times.get(place);
        self.noise.extend(one.list.iter().chain(&two.list).filter(differs));
    }

    /// The partings of threads that were never in user mode, when the bad run ended before its program began or in such
    /// a thread. Of a thread that only the end of the machine cut short, what it did not come to says nothing.
    fn starts(&mut self) -> Vec<FoundParting> {
        let (of_good, of_bad) = (self.good.paths, self.bad.paths);
        let deadly = of_bad.last_start();
        if deadly.is_none() && self.report.verdict != Verdict::CannotTell {
            return Vec::new();
        }
        let mut found = Vec::new();
        let (first_good, first_bad) = (of_good.traps_first(), of_bad.traps_first());
        for (number, start) in &of_bad.starts {
            let Some(good) = of_good.starts.get(number) else { continue };
            let name = if *number == 0 { "the boot".to_owned() } else { format!("the start of thread {number}") };
            // A start is long, and interrupted: the order of its turns differs before it parts.
            let parting = self.ways_by(good.visit, start.visit, name, (false, false));
            let is_cut_only = |told: &Parting| told.times_only || told.only_bad.is_empty();
            let parting =
                parting.filter(|found| deadly == Some(*number) || !(start.is_cut && is_cut_only(&found.told)));
            found.extend(parting.map(|mut found| {
                // Where no call was answered right, what decides is not told from what is asked everywhere.
                (found.parted.asked, found.told.asked) = (None, None);
                found
            }));
            let traps = first_good.get(number).zip(first_bad.get(number));
            found.extend(traps.and_then(|(good, bad)| self.first_traps(*number, good, bad)));
            if self.report.aligned.pairs.is_empty() {
                found.extend(self.first_calls(*number, good.visit.stack, start.visit.stack));
            }
        }
        found.truncate(MOST_PARTINGS);
        found
    }

    /// The first call of a thread whose paths part, where no event says which calls they are.
    fn first_calls(&mut self, thread: u32, good: u64, bad: u64) -> Option<FoundParting> {
        let of = |paths: &Paths, stack: u64| -> Vec<Visit> {
            paths.calls.values().filter(|visit| visit.stack == stack).copied().take(MOST_CALLS).collect()
        };
        let pairs: Vec<(Visit, Visit)> = of(self.good.paths, good).into_iter().zip(of(self.bad.paths, bad)).collect();
        let mut ways = pairs.into_iter().enumerate().filter_map(|(at, (here, there))| {
            self.ways(here, there, format!("call {} of thread {thread}", at + 1), false)
        });
        ways.find(|parting| !parting.sleeps)
    }

    /// The first exception of a thread in user mode, before its first call, whose paths part.
    fn first_traps(&mut self, thread: u32, good: &[file::Trap], bad: &[file::Trap]) -> Option<FoundParting> {
        let pairs = good.iter().zip(bad).take_while(|(here, there)| here.vector == there.vector);
        let mut ways = pairs.filter_map(|(here, there)| {
            let row = format!("exception {} of thread {thread} before its first call", vector_name(there.vector));
            self.ways(here.visit, there.visit, row, false)
        });
        ways.find(|parting| !parting.sleeps)
    }

    /// The partings of the calls up to the first difference, in the order of time.
    fn partings(&mut self) -> Vec<FoundParting> {
        let aligned = &self.report.aligned;
        // What another thread does while a call waits may be why that is answered otherwise.
        let ended = |paths: &Paths, number| paths.calls.get(&number).map(|visit| visit.ended);
        let is_before = |paths: &Paths, number, first| {
            let both = ended(paths, number).zip(ended(paths, first));
            number != first && both.map_or(number < first, |(this, of_first)| this < of_first)
        };
        let last_in_good = aligned.pairs.iter().find(|pair| Some(pair.1) == aligned.last).map(|pair| pair.0);
        let before = |(good, bad): &(u32, u32)| match aligned.first {
            (_, Some(first)) => is_before(self.bad.paths, *bad, first),
            (Some(first), None) => is_before(self.good.paths, *good, first),
            (None, None) => match aligned.last {
                // A signal comes at the end of a call.
                Some(last) => *bad <= last || last_in_good.is_some_and(|last| is_before(self.good.paths, *good, last)),
                None => self.report.first.is_none(),
            },
        };
        let mut earlier: Vec<(u32, u32)> = aligned.pairs.iter().copied().filter(before).collect();
        earlier.sort_by_key(|(_, bad)| ended(self.bad.paths, *bad));
        self.earlier.clone_from(&earlier);
        let (mut all, mut asleep) = (Vec::new(), None);
        let ended = self.ended();
        for (good, bad) in earlier.into_iter().filter(|pair| Some(*pair) != ended) {
            let parting = self.call(good, bad, true);
            match parting {
                Some(parting) if parting.sleeps => asleep = asleep.or(Some(parting)),
                parting => all.extend(parting),
            }
            all.extend(self.traps_behind(good, bad));
        }
        // What an interrupt leaves to be done on the way back to the program is not the fault's doing.
        let (interrupted, mut found): (Vec<_>, Vec<_>) = all.into_iter().partition(|parting| parting.is_interrupted);
        let last = match (aligned.first, ended) {
            ((Some(good), Some(bad)), _) | ((None, None), Some((good, bad))) => self.call(good, bad, false),
            ((None, Some(bad)), _) => self.beside_its_like(bad),
            _ => None,
        };
        found.truncate(MOST_PARTINGS - usize::from(last.is_some()));
        // What differs in a call that waited or was interrupted may depend on time: it is told where nothing else is.
        let asleep = asleep.or(interrupted.into_iter().next()).filter(|_| found.is_empty());
        found.extend(last);
        found.extend(asleep);
        found
    }

    /// The call in which the machine of the bad run ended, while the good one made further calls.
    fn ended(&self) -> Option<(u32, u32)> {
        let last = |paths: &Paths| paths.calls.last_key_value().map(|(number, _)| *number);
        let (good, bad) = *self.report.aligned.pairs.last()?;
        (last(self.bad.paths) == Some(bad) && last(self.good.paths) > Some(good)).then_some((good, bad))
    }

    fn call(&mut self, good: u32, bad: u32, alike: bool) -> Option<FoundParting> {
        let (here, there) = (*self.good.paths.calls.get(&good)?, *self.bad.paths.calls.get(&bad)?);
        let row = self.report.aligned.rows.get(&bad).cloned().unwrap_or_default();
        self.ways(here, there, row, alike)
    }

    /// A call that the good run has not, beside the one of that name whose path is most alike.
    fn beside_its_like(&mut self, bad: u32) -> Option<FoundParting> {
        let visit = *self.bad.paths.calls.get(&bad)?;
        let first = self.report.first.as_ref()?;
        let called = |row: &str| row.split('(').next().is_some_and(|name| name == first.name);
        let way = self.bad.way(visit.path, &mut self.functions);
        let mut best: Option<(usize, u32)> = None;
        for (good, other) in &self.report.aligned.pairs {
            let Some(visit) = self.good.paths.calls.get(good) else { continue };
            if self.report.aligned.rows.get(other).is_some_and(|row| called(row)) {
                let like = self.good.way(visit.path, &mut self.functions);
                let common = like.list.iter().filter(|place| way.times.contains_key(place)).count();
                best = best.max(Some((common, *good)));
            }
        }
        let like = *self.good.paths.calls.get(&best?.1)?;
        self.ways(like, visit, first.bad.clone()?, false)
    }

    fn traps_behind(&mut self, good: u32, bad: u32) -> Vec<FoundParting> {
        let of = |traps: &BTreeMap<u32, Vec<file::Trap>>, number| traps.get(&number).cloned().unwrap_or_default();
        let (here, there) = (of(&self.traps.0, good), of(&self.traps.1, bad));
        let row = self.report.aligned.rows.get(&bad).cloned().unwrap_or_default();
        let pairs = here.iter().zip(&there).filter(|(here, there)| here.vector == there.vector);
        let ways = pairs.filter_map(|(here, there)| {
            let row = format!("exception {} after {row}", vector_name(here.vector));
            self.ways(here.visit, there.visit, row, true)
        });
        ways.filter(|parting| !parting.sleeps).collect()
    }

    fn ways(&mut self, good: Visit, bad: Visit, call: String, alike: bool) -> Option<FoundParting> {
        self.ways_by(good, bad, call, (alike, true))
    }

    /// As [`Self::ways`], by the order of all turns or without.
    fn ways_by(
        &mut self,
        good: Visit,
        bad: Visit,
        call: String,
        (alike, in_turns): (bool, bool),
    ) -> Option<FoundParting> {
        let (visits, is_interrupted) = ((good, bad), good.is_interrupted || bad.is_interrupted);
        let turns = (good.path, bad.path);
        let (good, bad) = (self.good.way(turns.0, &mut self.functions), self.bad.way(turns.1, &mut self.functions));
        let sleeps = good.sleeps || bad.sleeps;
        // Most calls do the same: their order is not looked at.
        part(&good, &bad, None, &self.functions, &self.noise)?;
        let of_good = in_turns.then(|| self.good.turns(turns.0, &mut self.functions)).flatten();
        let both = of_good.zip(self.bad.turns(turns.1, &mut self.functions));
        let both = both.as_ref().map(|(good, bad)| (good.as_slice(), bad.as_slice()));
        let parted = part(&good, &bad, both, &self.functions, &self.noise)?;
        // How often something ran until another thread was done depends on time.
        if alike && sleeps && parted.is_of_times {
            return None;
        }
        let told = parted.told(call, alike, &self.functions, (&good, &bad), &self.bad);
        Some(FoundParting { parted, told, sleeps, is_interrupted, ran: bad.functions.clone(), visits })
    }

    /// Where the value came from by which the bad run went on.
    fn brought(&mut self, found: &FoundParting) -> Brought {
        // The time at which an interrupt comes turns the order as well.
        if found.is_interrupted {
            return Brought::default();
        }
        let (good, bad) = found.visits;
        let both = self.good.turns(good.path, &mut self.functions).zip(self.bad.turns(bad.path, &mut self.functions));
        let at = both.and_then(|(good, bad)| turns_part((&good, &bad), &self.functions, &self.noise));
        at.map_or_else(Brought::default, |at| slice::brought(&mut self.bad, bad, at, &mut self.functions))
    }

    /// The functions that the first difference can come from.
    fn ranked(&mut self, found: &[FoundParting]) -> Vec<String> {
        let wrong = self.wrong();
        let right = self.ran_in_right(&wrong);
        let often = |function: u32| right.get(&function).copied().unwrap_or_default();
        let mut numbers: Vec<u32> = Vec::new();
        let deciding = |parted: &Parted| -> Vec<u32> {
            let Parted { function, asked, decided, .. } = *parted;
            // What answers calls everywhere answered right.
            let asked = asked.filter(|asked| often(*asked) <= MOST_OFTEN * (1 + often(function)));
            let is_rarer = asked.zip(decided).is_some_and(|(asked, decided)| often(asked) <= often(decided));
            let first = if is_rarer { [asked, decided] } else { [decided, asked] };
            first.into_iter().flatten().chain([function]).collect()
        };
        let brought: Vec<Brought> = found.iter().map(|parting| self.brought(parting)).collect();
        // What brings values to calls everywhere brought right ones.
        let rare = |parted: &Parted, list: &[u32], most: usize| -> Vec<u32> {
            let is_rare = |function: &u32| often(*function) <= MOST_OFTEN * (1 + often(parted.function));
            list.iter().copied().filter(is_rare).take(most).collect()
        };
        let nearest = |parted: &Parted, brought: &Brought| rare(parted, &brought.functions, BROUGHT);
        let (missed, values) = self.values(found, &often);
        // Where nothing parted before the call that differs, an earlier one may have left what it decides by.
        if let Some((parting, value)) = found.iter().zip(&brought).find(|(parting, _)| !parting.told.alike)
            && nothing_parted_before(found)
        {
            let (nearest, writers) = (nearest(&parting.parted, value), self.writers(parting, &often));
            // A value that lay in memory was written by an earlier call, if what read it is right.
            let left = rare(&parting.parted, &value.left_by, LEFT);
            let (deciding, was_left) = (deciding(&parting.parted), value.was_left);
            let order = match was_left {
                true => [nearest, missed.clone(), left, writers, deciding],
                false => [nearest, deciding, missed.clone(), left, writers],
            };
            numbers.extend(order.into_iter().flatten());
        }
        // Where nothing parted, a value is all that differs.
        if found.iter().all(|parting| parting.told.alike) && nothing_parted_before(found) {
            numbers.extend(&missed);
            numbers.extend(&values);
        }
        for (parting, value) in found.iter().zip(&brought) {
            numbers.extend(nearest(&parting.parted, value));
            numbers.extend(deciding(&parting.parted));
            // What only the good run came to did nothing wrong: it was not called.
            let (entered, missed): (Vec<u32>, Vec<u32>) =
                parting.parted.entered.iter().partition(|_| !parting.parted.first.0);
            numbers.extend(entered);
            numbers.extend(parting.parted.before.iter().take(BEFORE));
            numbers.extend(missed);
            numbers.extend(rare(&parting.parted, &value.left_by, LEFT));
        }
        numbers.extend(missed);
        numbers.extend(values);
        let seldom = self.spectrum(&wrong, &right);
        numbers.extend(seldom.iter().take(RARE));
        for parting in found {
            numbers.extend(&parting.parted.before);
            numbers.extend(&parting.parted.others);
        }
        numbers.extend(seldom);
        let mut seen = HashSet::new();
        numbers.retain(|number| seen.insert(*number));
        numbers.truncate(MOST);
        numbers.into_iter().map(|number| self.functions.name(number).to_owned()).collect()
    }

    /// The calls that differ or that misled the program, by their numbers in the bad run.
    fn wrong(&self) -> Vec<u32> {
        let aligned = &self.report.aligned;
        let mut wrong: Vec<u32> = aligned.first.1.into_iter().collect();
        if !self.report.suspects.is_empty() || wrong.is_empty() {
            wrong = aligned.suspects.clone();
            wrong.extend(aligned.last);
        }
        wrong
    }

    /// In how many calls with right answers each function ran.
    fn ran_in_right(&mut self, wrong: &[u32]) -> HashMap<u32, usize> {
        let is_wrong: HashSet<u32> = wrong.iter().copied().collect();
        let pairs = &self.report.aligned.pairs;
        let right: Vec<u32> = pairs.iter().map(|pair| pair.1).filter(|bad| !is_wrong.contains(bad)).collect();
        let mut count: HashMap<u32, usize> = HashMap::new();
        for number in right.into_iter().take(MOST_RIGHT) {
            let Some(visit) = self.bad.paths.calls.get(&number) else { continue };
            let way = self.bad.way(visit.path, &mut self.functions);
            way.functions.iter().for_each(|function| *count.entry(*function).or_default() += 1);
        }
        count
    }

    /// The functions of these calls, by how many others they ran in.
    fn spectrum(&mut self, wrong: &[u32], right: &HashMap<u32, usize>) -> Vec<u32> {
        if self.report.first.is_none() {
            return Vec::new();
        }
        let mut in_wrong: Vec<Rc<Way>> = Vec::new();
        for number in wrong {
            let call = self.bad.paths.calls.get(number).map(|visit| visit.path);
            // The exceptions behind a call may have misled the program as well.
            let traps = if self.report.suspects.is_empty() { None } else { self.traps.1.get(number) };
            let paths: Vec<u32> =
                call.into_iter().chain(traps.into_iter().flatten().map(|trap| trap.visit.path)).collect();
            in_wrong.extend(paths.into_iter().map(|path| self.bad.way(path, &mut self.functions)));
        }
        let mut order: Vec<u32> = in_wrong.iter().flat_map(|way| way.list.iter().map(|place| place.function)).collect();
        let mut seen = HashSet::new();
        order.retain(|function| seen.insert(*function));
        let tells = |function: &u32| self.functions.tells(*function);
        order.sort_by_key(|function| (!tells(function), right.get(function).copied().unwrap_or_default()));
        order
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(alike: bool, sleeps: bool, is_interrupted: bool) -> FoundParting {
        let visit = Visit { stack: 0, path: 0, ended: 0, is_interrupted };
        let told = Parting {
            call: String::new(),
            alike,
            function: String::new(),
            place: String::new(),
            times_only: false,
            decided: None,
            asked: None,
            before: Vec::new(),
            only_good: Vec::new(),
            only_bad: Vec::new(),
        };
        let parted = Parted {
            function: 0,
            first: (false, CodeLine { function: 0, line: 1 }),
            is_of_times: false,
            entered: None,
            decided: None,
            asked: None,
            before: Vec::new(),
            others: Vec::new(),
        };
        FoundParting { parted, told, sleeps, is_interrupted, ran: HashSet::new(), visits: (visit, visit) }
    }

    #[test]
    fn a_parting_that_time_made_is_not_before_the_call_that_differs() {
        let differs = || found(false, false, false);
        assert!(nothing_parted_before(&[differs()]));
        assert!(nothing_parted_before(&[found(true, true, false), differs(), found(true, false, true)]));
        assert!(!nothing_parted_before(&[found(true, true, false), found(true, false, false), differs()]));
    }
}
