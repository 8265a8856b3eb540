//! Decides where two ways through the kernel part.
//!
//! Both ways are walked to the first place that the other has not. Before it they did the same, so that the decision
//! was made there or by what ran just before. Functions that only one run came to behind it are consequences.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use super::places::{CodeLine, Functions, Resolver, Way};
use crate::oracle::report::{Parting, PathPart};

/// Functions before a parting that are named.
const BEFORE: usize = 10;
/// Functions of a parting that are reported for each run.
const PARTS: usize = 6;
/// Lines of a function that are reported.
const LINES: usize = 16;

/// Where two ways part.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Parted {
    /// The function of the first place that one of the ways has alone.
    pub function: u32,
    /// The first place that only one of the ways has, and whether that is the good one.
    pub first: (bool, CodeLine),
    /// Whether both ways have the same places, and only how often they ran differs.
    pub is_of_times: bool,
    /// The function that it is in, when only one of the ways has that: [`Self::function`] ran last before it.
    pub entered: Option<u32>,
    /// The function that ran last before the order of the ways differs, when one of them goes on in it.
    pub decided: Option<u32>,
    /// The function that [`Self::function`] had called last, when it ran no further line of its own before the ways
    /// parted: what that answered decided.
    pub asked: Option<u32>,
    /// Functions that ran before that, the last first.
    pub before: Vec<u32>,
    /// Further functions with places of one way: first those that both ways came to, each in order.
    pub others: Vec<u32>,
}

/// Where two ways part; `None` where they are the same but for noise. `turns` are the places of both in the order of
/// all their turns, where that was recorded.
pub(super) fn part(
    good: &Way,
    bad: &Way,
    turns: Option<(&[CodeLine], &[CodeLine])>,
    functions: &Functions,
    noise: &HashSet<CodeLine>,
) -> Option<Parted> {
    let alone = |way: &Way, other: &Way, is_other: &dyn Fn(u8, u8) -> bool| -> Vec<(usize, CodeLine)> {
        let times = |way: &Way, place: &CodeLine| way.times.get(place).copied().unwrap_or_default();
        let is_alone = |place: &CodeLine| {
            is_other(times(way, place), times(other, place))
                && functions.tells(place.function)
                && !noise.contains(place)
        };
        way.list.iter().enumerate().filter(|(_, place)| is_alone(place)).map(|(at, place)| (at, *place)).collect()
    };
    let never = |_: u8, there: u8| there == 0;
    let (mut of_good, of_bad) = (alone(good, bad, &never), alone(bad, good, &never));
    let is_of_times = of_good.is_empty() && of_bad.is_empty();
    if is_of_times {
        of_good = alone(good, bad, &|here, there| here != there);
    }
    let firsts = (of_good.first().copied(), of_bad.first().copied());
    let is_of_good = match firsts {
        (Some(here), Some(there)) => here.0 <= there.0,
        (here, there) => here.or(there).map(|_| here.is_some())?,
    };
    let (way, first) = if is_of_good { (good, firsts.0?) } else { (bad, firsts.1?) };
    let in_both = |function: u32| good.functions.contains(&function) && bad.functions.contains(&function);
    // A function that only one of the runs came to was called by one that both came to, which decided it.
    let other = if is_of_good { bad } else { good };
    let both_ran = |place: &&CodeLine| functions.tells(place.function) && other.times.contains_key(place);
    let ran = &way.list[..first.0];
    let last = ran.iter().rfind(both_ran).or(ran.last()).filter(|_| !in_both(first.1.function));
    let function = last.map_or(first.1.function, |place| place.function);
    let asked = last.is_none().then(|| asked(ran, function)).flatten();
    let asked = asked.filter(|asked| !is_of_times && functions.tells(*asked));
    let told = |place: &CodeLine| is_told(place, functions, noise);
    // An exception or a cut block may turn the order, where neither run has a place alone: that decided nothing.
    let full = turns.and_then(|(good, bad)| in_turns(good, bad, &told));
    let is_alone = |next: &CodeLine| of_good.iter().chain(&of_bad).any(|(_, place)| place == next);
    let full = full.filter(|full| is_of_times || full.next.iter().any(is_alone));
    let (at, decided) = in_order(good, bad, noise);
    let (asked, decided) = match &full {
        Some(full) => (full.asked, full.decided),
        None => (asked, decided.filter(|_| !is_of_times)),
    };
    // Until there both did the same, one by one.
    let ran = match (&full, turns) {
        (Some(full), Some((good, _))) => &good[..full.at],
        _ if is_of_times || at == 0 => ran,
        _ => &good.list[..at],
    };
    let mut before = Vec::new();
    for place in ran.iter().rev() {
        if place.function != function && !before.contains(&place.function) {
            before.push(place.function);
        }
        if before.len() == BEFORE {
            break;
        }
    }
    let mut order: Vec<(usize, CodeLine)> = of_good.into_iter().chain(of_bad).collect();
    order.sort_by_key(|(at, place)| (*at, *place));
    let mut others: Vec<u32> = Vec::new();
    for (_, place) in &order {
        if place.function != function && !others.contains(&place.function) {
            others.push(place.function);
        }
    }
    let entered = last.map(|_| first.1.function);
    others.sort_by_key(|function| (Some(*function) != entered, !in_both(*function)));
    Some(Parted { function, first: (is_of_good, first.1), is_of_times, entered, decided, asked, before, others })
}

fn is_told(place: &CodeLine, functions: &Functions, noise: &HashSet<CodeLine>) -> bool {
    functions.tells(place.function) && !noise.contains(place)
}

/// Behind how many places of its turns the bad way goes on otherwise: the last that both have, and the next that tells.
pub(super) fn turns_part(
    (good, bad): (&[CodeLine], &[CodeLine]),
    functions: &Functions,
    noise: &HashSet<CodeLine>,
) -> Option<(usize, usize)> {
    Some(in_turns(good, bad, &|place| is_told(place, functions, noise))?.in_bad)
}

/// Where two ways part in the order of their turns.
struct InTurns {
    /// Behind how many places of the good way.
    at: usize,
    /// Behind how many places of the bad way: the last that both have, and what it goes on with.
    in_bad: (usize, usize),
    /// The function in which they part.
    decided: Option<u32>,
    /// What that had called on the line on which they part, last.
    asked: Option<u32>,
    /// The places with which either goes on.
    next: [CodeLine; 2],
}

/// Where the order of two ways differs first, of the places that tell; `None` where it does not, or one is the
/// beginning of the other.
fn in_turns(good: &[CodeLine], bad: &[CodeLine], told: &dyn Fn(&CodeLine) -> bool) -> Option<InTurns> {
    let list = |way: &[CodeLine]| -> Vec<(usize, CodeLine)> {
        let mut kept: Vec<(usize, CodeLine)> = Vec::new();
        for (at, place) in way.iter().enumerate().filter(|(_, place)| told(place)) {
            if kept.last().is_none_or(|(_, last)| last != place) {
                kept.push((at, *place));
            }
        }
        kept
    };
    let (good, bad) = (list(good), list(bad));
    let same = good.iter().zip(&bad).take_while(|(here, there)| here.1 == there.1).count();
    let ((_, next_good), (next_at, next_bad)) = (*good.get(same)?, *bad.get(same)?);
    let in_bad = (bad[..same].last()?.0 + 1, next_at);
    let common = &good[..same];
    let (at, last) = common.last().copied()?;
    let goes_on = |function: u32| next_good.function == function || next_bad.function == function;
    // It came back from what it called on the line before it went on otherwise.
    let decided = if next_good.function == next_bad.function {
        Some(next_good.function)
    } else if goes_on(last.function) {
        Some(last.function)
    } else {
        common.iter().rev().map(|(_, place)| place.function).find(|function| goes_on(*function))
    };
    let own = |place: &CodeLine| Some(place.function) == decided;
    let line = common.iter().rfind(|(_, place)| own(place)).map(|(_, place)| place.line);
    let is_on_line = |place: &CodeLine| !own(place) || Some(place.line) == line;
    let on_line: Vec<CodeLine> =
        common.iter().rev().map(|(_, place)| *place).take_while(|place| is_on_line(place)).collect();
    // What ran before the line began was not called on it.
    let begun = on_line.iter().rposition(own).unwrap_or(0);
    let asked = on_line[..begun].iter().map(|place| place.function).find(|function| Some(*function) != decided);
    Some(InTurns { at: at + 1, in_bad, decided, asked, next: [next_good, next_bad] })
}

/// Behind how many places of the good way the order of both differs first, noise left out, and the function that ran
/// last before, if one of the ways goes on in it: then it decided.
fn in_order(good: &Way, bad: &Way, noise: &HashSet<CodeLine>) -> (usize, Option<u32>) {
    let told = |way: &Way| -> Vec<(usize, CodeLine)> {
        let places = way.list.iter().copied().enumerate();
        places.filter(|(_, place)| !noise.contains(place)).collect()
    };
    let (good, bad) = (told(good), told(bad));
    let at = good.iter().zip(&bad).take_while(|(here, there)| here.1 == there.1).count();
    let last = good[..at].last();
    let decided = last.map(|(_, place)| place.function);
    let goes_on = |list: &[(usize, CodeLine)]| list.get(at).map(|(_, place)| place.function) == decided;
    (last.map_or(0, |(place, _)| place + 1), decided.filter(|_| goes_on(&good) || goes_on(&bad)))
}

/// The function that ran last, if this one called it: it had begun before that did.
fn asked(ran: &[CodeLine], function: u32) -> Option<u32> {
    let last = ran.last()?.function;
    let begun = |function| ran.iter().position(|place| place.function == function);
    (last != function && begun(function)? < begun(last)?).then_some(last)
}

impl Parted {
    /// The parting in words.
    pub(super) fn told(
        &self,
        call: String,
        alike: bool,
        functions: &Functions,
        (good, bad): (&Way, &Way),
        of_bad: &Resolver<'_>,
    ) -> Parting {
        let (is_of_good, place) = self.first;
        let line = if is_of_good { place.line } else { of_bad.line(place) };
        let file = functions.file(place.function).unwrap_or("?");
        let name = |function: &u32| functions.name(*function).to_owned();
        Parting {
            call,
            alike,
            function: name(&self.function),
            place: format!("{file}:{line}"),
            decided: self.decided.as_ref().map(name),
            asked: self.asked.as_ref().map(name),
            before: self.before.iter().map(name).collect(),
            times_only: self.is_of_times,
            only_good: self.parts(functions, good, bad, &|place| place.line),
            only_bad: self.parts(functions, bad, good, &|place| of_bad.line(place)),
        }
    }

    /// What of the functions that part only one of the ways came to.
    fn parts(&self, functions: &Functions, way: &Way, other: &Way, line: &dyn Fn(CodeLine) -> u32) -> Vec<PathPart> {
        let mut lines: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
        for place in way.list.iter().filter(|place| !other.times.contains_key(place)) {
            lines.entry(place.function).or_default().insert(line(*place));
        }
        let order = std::iter::once(&self.function).chain(&self.others);
        let part = |function: &u32| {
            Some(PathPart {
                function: functions.name(*function).to_owned(),
                file: functions.file(*function).map(str::to_owned),
                lines: lines.get(function)?.iter().copied().take(LINES).collect(),
                in_both: other.functions.contains(function),
            })
        };
        order.filter_map(part).take(PARTS).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A way through lines of functions, each with how often it ran.
    fn way(places: &[(&str, u32, u8)], functions: &mut Functions) -> Way {
        let mut way = Way::default();
        for (name, line, times) in places {
            let place = CodeLine { function: functions.number((*name).to_owned(), None), line: *line };
            way.list.push(place);
            way.times.insert(place, *times);
            way.functions.insert(place.function);
        }
        way
    }

    fn parted(good: &[(&str, u32, u8)], bad: &[(&str, u32, u8)]) -> Option<(String, Vec<String>, Vec<String>, bool)> {
        let mut functions = Functions::default();
        let (good, bad) = (way(good, &mut functions), way(bad, &mut functions));
        let parted = part(&good, &bad, None, &functions, &HashSet::new())?;
        let names = |list: &[u32]| list.iter().map(|number| functions.name(*number).to_owned()).collect();
        let name = functions.name(parted.function).to_owned();
        Some((name, names(&parted.before), names(&parted.others), parted.is_of_times))
    }

    #[test]
    fn the_function_with_the_first_line_of_one_run_decides_and_what_ran_before_it_is_named() {
        let good = [("k::call", 1, 1), ("k::check", 9, 1), ("k::call", 2, 1), ("k::work", 5, 1)];
        let bad = [("k::call", 1, 1), ("k::check", 9, 1), ("k::call", 3, 1), ("k::fail", 7, 1)];
        let (name, before, others, _) = parted(&good, &bad).expect("parted");
        assert_eq!((name.as_str(), before), ("k::call", vec!["k::check".to_owned()]));
        assert_eq!(others, ["k::work", "k::fail"]);
        assert_eq!(parted(&good, &good), None);
    }

    #[test]
    fn the_function_whose_answer_decides_is_the_one_that_was_called_on_the_line_before() {
        let of = |good: &[(&str, u32, u8)], bad: &[(&str, u32, u8)]| {
            let mut functions = Functions::default();
            let (good, bad) = (way(good, &mut functions), way(bad, &mut functions));
            let parted = part(&good, &bad, None, &functions, &HashSet::new()).expect("parted");
            parted.asked.map(|asked| functions.name(asked).to_owned())
        };
        let run = |more: &[(&'static str, u32, u8)], last| {
            [&[("k::outer", 7, 1), ("k::call", 1, 1), ("k::check", 9, 1)], more, &[("k::call", last, 1)]].concat()
        };
        assert_eq!(of(&run(&[], 2), &run(&[], 3)), Some("k::check".to_owned()));
        // A line of its own came between: that may have decided as well.
        let own = [("k::call", 5, 1)];
        assert_eq!(of(&run(&own, 2), &run(&own, 3)), None);
        // The caller does not answer.
        assert_eq!(of(&[("k::outer", 7, 1), ("k::call", 2, 1)], &[("k::outer", 7, 1), ("k::call", 3, 1)]), None);
    }

    #[test]
    fn the_function_in_which_the_order_differs_decided_also_where_both_ways_have_its_lines() {
        let of = |good: &[(&str, u32, u8)], bad: &[(&str, u32, u8)]| {
            let mut functions = Functions::default();
            let (good, bad) = (way(good, &mut functions), way(bad, &mut functions));
            let parted = part(&good, &bad, None, &functions, &HashSet::new()).expect("parted");
            parted.decided.map(|decided| functions.name(decided).to_owned())
        };
        // The bad run leaves the loop at once; what only one of them has comes later, elsewhere.
        let begin = [("k::call", 1, 1), ("k::read", 4, 1)];
        let good = [&begin[..], &[("k::copy", 6, 1), ("k::read", 5, 1), ("k::call", 2, 1)]].concat();
        let bad = [&begin[..], &[("k::read", 5, 1), ("k::call", 3, 1)]].concat();
        assert_eq!(of(&good, &bad), Some("k::read".to_owned()));
        // Both leave the last function: what it answered may have decided, or what asked it.
        let good = [&begin[..], &[("k::call", 2, 1)]].concat();
        let bad = [&begin[..], &[("k::call", 3, 1)]].concat();
        assert_eq!(of(&good, &bad), None);
    }

    #[test]
    fn in_the_order_of_all_turns_what_was_called_on_the_line_that_parts_answered_wrong() {
        let mut functions = Functions::default();
        let places = [("k::read", 1, 1), ("k::left", 9, 2), ("k::put", 5, 1), ("k::read", 2, 1)];
        let good = way(&[&places[..], &[("k::read", 3, 1)]].concat(), &mut functions);
        let bad = way(&[&places[..], &[("k::read", 4, 1)]].concat(), &mut functions);
        let parted = |turns: [&Way; 2]| {
            let turns = turns.map(|way| way.list.as_slice());
            part(&good, &bad, Some((turns[0], turns[1])), &functions, &HashSet::new()).expect("parted")
        };
        let named = |number: Option<u32>| number.map(|number| functions.name(number));
        let first = parted([&good, &bad]);
        assert_eq!((named(first.decided), named(first.asked)), (Some("k::read"), None));
        // `left` ran before in the same call; only the order of all turns tells that it was asked again.
        let again = |last: &CodeLine| {
            let mut list = good.list[..4].to_vec();
            list.extend([good.list[1], good.list[3], *last]);
            Way { list, ..Way::default() }
        };
        let turns = [again(&good.list[4]), again(&bad.list[4])];
        let asked = parted([&turns[0], &turns[1]]);
        assert_eq!((named(asked.decided), named(asked.asked)), (Some("k::read"), Some("k::left")));
        assert_eq!(asked.before.first().copied(), asked.asked);
    }

    #[test]
    fn a_function_of_one_run_only_was_called_by_the_one_that_decided() {
        let good = [("k::call", 1, 1), ("k::pick", 4, 1), ("k::work", 5, 1), ("k::call", 2, 1)];
        let bad = [("k::call", 1, 1), ("k::pick", 4, 1), ("k::call", 2, 1)];
        assert_eq!(parted(&good, &bad).expect("parted").0, "k::pick");
    }

    #[test]
    fn what_only_makes_a_value_for_a_function_of_one_run_did_not_decide_to_call_it() {
        let good = [("k::call", 1, 1), ("<T as core::clone::Clone>::clone", 4, 1), ("k::work", 5, 1)];
        let bad = [("k::call", 1, 1)];
        assert_eq!(parted(&good, &bad).expect("parted").0, "k::call");
    }

    #[test]
    fn a_loop_that_ended_early_parts_and_one_that_waits_or_allocates_does_not() {
        let (long, short) = ([("k::call", 1, 1), ("k::read", 4, 9)], [("k::call", 1, 1), ("k::read", 4, 1)]);
        let (name, _, _, is_of_times) = parted(&long, &short).expect("parted");
        assert!(is_of_times && name == "k::read");
        let waits = |times| [("k::call", 1, 1), ("kernel::sched::pick", 4, times)];
        assert_eq!(parted(&waits(9), &waits(1)), None);
    }
}
