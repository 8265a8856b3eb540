//! What the answer of a call was made of, and who wrote in the good run what the bad one read from others.
//!
//! A wrong value need not change a branch. The answer of a call, or what it wrote to the program's memory, is followed
//! back through the code that ran; and where an instruction reads memory that another visit wrote, both runs are
//! compared by who that was.

use std::collections::{HashMap, HashSet};

use super::file::Visit;
use super::flows::Flow;
use super::places::{CodeLine, Functions, Resolver};
use super::slice::{self, Brought};
use super::{BROUGHT, FoundParting, LEFT, PathSearch};
use crate::oracle::report::DivergenceKind;

/// Calls before a difference whose answers in memory are followed.
const MOST_SUSPECTS: usize = 2;
/// Writers of the good run that are named.
const MOST_MISSED: usize = 3;
/// In how many calls with right answers those may have run.
const MOST_CALLS: usize = 8;
/// Flows of a visit that are looked at: the recorder keeps as many.
const MOST_FLOWS: usize = 1 << 16;

/// The functions that wrote what a place reads, of places in the order in which they read first.
type WrittenBy = (Vec<CodeLine>, HashMap<CodeLine, HashSet<u32>>);

impl PathSearch<'_> {
    /// The functions that wrote in the good run what the differing call reads, and did not in the bad one; and those
    /// that made the values in its answer, the rarest first.
    pub(super) fn values(&mut self, found: &[FoundParting], often: &dyn Fn(u32) -> usize) -> (Vec<u32>, Vec<u32>) {
        let (of_good, of_bad) = (self.good.paths, self.bad.paths);
        let beside = self.report.aligned.first.0.zip(self.report.aligned.first.1);
        let beside = beside.and_then(|(good, bad)| of_good.calls.get(&good).zip(of_bad.calls.get(&bad)));
        let parted = found.iter().find(|parting| !parting.told.alike).map(|parting| parting.visits);
        let beside = beside.map(|(good, bad)| (*good, *bad)).or(parted);
        let missed = beside.map_or_else(Vec::new, |(good, bad)| self.missed(good, bad, often));
        let mut values = Vec::new();
        for brought in self.answers() {
            for (mut list, most) in [(brought.functions, BROUGHT), (brought.left_by, LEFT)] {
                list.sort_by_key(|function| often(*function));
                values.extend(list.into_iter().take(most));
            }
        }
        (missed, values)
    }

    /// Where the values come from that the differing call answered, or that earlier ones may have misled the program
    /// with.
    fn answers(&mut self) -> Vec<Brought> {
        let kind = self.report.first.as_ref().map(|first| first.kind);
        let aligned = &self.report.aligned;
        let (calls, in_memory): (Vec<u32>, bool) = match kind {
            Some(DivergenceKind::Answer) => (aligned.first.1.into_iter().collect(), false),
            Some(DivergenceKind::Memory) => (aligned.first.1.into_iter().collect(), true),
            _ => (aligned.suspects.iter().copied().take(MOST_SUSPECTS).collect(), true),
        };
        let visits: Vec<Visit> = calls.iter().filter_map(|call| self.bad.paths.calls.get(call).copied()).collect();
        let answered = |visit| slice::answered(&mut self.bad, visit, in_memory, &mut self.functions);
        visits.into_iter().map(answered).collect()
    }

    /// The rare ones of the functions that wrote in the good run only what both calls read.
    fn missed(&mut self, good: Visit, bad: Visit, often: &dyn Fn(u32) -> usize) -> Vec<u32> {
        let good = written_by(&mut self.good, good, &mut self.functions);
        let bad = written_by(&mut self.bad, bad, &mut self.functions);
        let mut missed = of_first_only(&good, &bad);
        missed.retain(|function| self.functions.tells(*function) && often(*function) <= MOST_CALLS);
        missed.truncate(MOST_MISSED);
        missed
    }
}

/// The functions that wrote what a place reads in the first of two visits and not in the other, of places that both
/// came to.
fn of_first_only((order, first): &WrittenBy, (_, other): &WrittenBy) -> Vec<u32> {
    let mut found = Vec::new();
    for place in order {
        let Some((here, there)) = first.get(place).zip(other.get(place)) else { continue };
        let mut alone: Vec<u32> = here.difference(there).copied().collect();
        alone.sort_unstable();
        alone.retain(|function| !found.contains(function));
        found.extend(alone);
    }
    found
}

fn written_by(run: &mut Resolver<'_>, visit: Visit, functions: &mut Functions) -> WrittenBy {
    let (mut order, mut by): WrittenBy = (Vec::new(), HashMap::new());
    let paths = run.paths;
    let flows = &paths.flows;
    let mut innermost: HashMap<u64, Option<CodeLine>> = HashMap::new();
    for flow in flows.of(visit.ended).unwrap_or_default().iter().take(MOST_FLOWS) {
        let (Flow::Here(load, store) | Flow::There(load, store, _)) = *flow else { continue };
        let [load, store] = [load, store].map(|used| {
            let address = flows.address(used);
            *innermost.entry(address).or_insert_with(|| run.at(address, functions).last().copied())
        });
        if let Some((load, store)) = load.zip(store) {
            let load = run.in_good(load);
            let writers = by.entry(load).or_insert_with(|| {
                order.push(load);
                HashSet::new()
            });
            writers.insert(store.function);
        }
    }
    (order, by)
}

#[cfg(test)]
mod tests {
    use object::{Object as _, ObjectSymbol as _};

    use super::*;
    use crate::oracle::paths::file::Paths;
    use crate::symbols::{Image, IndexCache};

    #[test]
    fn who_wrote_in_one_run_only_is_told_of_places_that_both_came_to() {
        let program = std::env::current_exe().expect("this program");
        let bytes = std::fs::read(&program).expect("read");
        let elf = object::File::parse(&*bytes).expect("ELF");
        let image = Image::open(&program, &IndexCache::none()).expect("an image");
        let of_ours = |symbol: &object::Symbol<'_, '_>| {
            let is_ours = |name: &str| name.contains("4kwab") && name.contains("6oracle");
            (symbol.name().is_ok_and(is_ours) && symbol.size() > 16).then(|| symbol.address())
        };
        // Some functions of this module's parents, each known by one name of its own.
        let visit = Visit { stack: 0xa1, path: 0, ended: 0, is_interrupted: false };
        let (mut functions, empty) = (Functions::default(), Paths::default());
        let resolver = Resolver::new(&image, &empty);
        let (mut known, mut addresses) = (HashSet::new(), Vec::new());
        for address in elf.symbols().filter_map(|symbol| of_ours(&symbol)) {
            let place = resolver.at(address, &mut functions).last().copied();
            addresses.extend(place.filter(|place| known.insert(place.function)).map(|_| address));
            if addresses.len() == 4 {
                break;
            }
        }
        let [load, by_call, by_interrupt, elsewhere] = addresses[..4] else { unreachable!("this program has more") };
        let head = format!(
            "kwab-paths 3\nb {load:x} 9\np 0\nc 0 a1 0\ni {load:x}\ni {by_call:x}\n\
             i {by_interrupt:x}\ni {elsewhere:x}\n"
        );
        let mut written = |flows: &str| {
            let paths = Paths::of(format!("{head}r 5 {flows}\n").as_bytes()).expect("a recording");
            written_by(&mut Resolver::new(&image, &paths), visit, &mut functions)
        };
        let good = written("0<1@2 0<2@0 3<1@2 2>");
        let bad = written("0<1@2");
        let name = |address| resolver_name(&image, address);
        let told = of_first_only(&good, &bad);
        assert_eq!(told.iter().map(|number| functions.name(*number)).collect::<Vec<_>>(), [name(by_interrupt)]);
        assert!(of_first_only(&bad, &good).is_empty());
    }

    /// The function at an address, by a numbering of its own.
    fn resolver_name(image: &Image, address: u64) -> String {
        let (paths, mut functions) = (Paths::default(), Functions::default());
        let place = Resolver::new(image, &paths).at(address, &mut functions).last().copied().expect("known");
        functions.name(place.function).to_owned()
    }
}
