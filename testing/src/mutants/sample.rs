//! Draws a sample of mutants that the same seed always draws again.
//!
//! Stratified by file, so that no large file dominates: files come in random order, round after round, and in its turn
//! a file gives a mutant of its next function, functions in random order too. The sample of any size is the beginning
//! of one order of all mutants: a longer run contains the shorter one.

use std::collections::BTreeMap;

use super::list::Mutant;
use crate::second::random::Random;

/// Mutants with their numbers, by the first line and the name of their function.
type Functions = BTreeMap<(usize, String), Vec<(u32, Mutant)>>;

/// All mutants, each with its number, in the order of a seed.
#[must_use]
pub fn order(mutants: Vec<(u32, Mutant)>, seed: u64) -> Vec<(u32, Mutant)> {
    let mut random = Random::new(seed);
    let mut files: BTreeMap<String, Functions> = BTreeMap::new();
    for (number, mutant) in mutants {
        let function = mutant.function.as_ref().map_or((0, String::new()), |f| (f.span.start.line, f.name.clone()));
        files.entry(mutant.file.clone()).or_default().entry(function).or_default().push((number, mutant));
    }
    // What each file gives, last first.
    let mut queues: Vec<Vec<(u32, Mutant)>> =
        files.into_values().map(|functions| of_file(functions, &mut random)).collect();
    let mut ordered = Vec::new();
    while !queues.is_empty() {
        shuffle(&mut queues, &mut random);
        ordered.extend(queues.iter_mut().filter_map(Vec::pop));
        queues.retain(|queue| !queue.is_empty());
    }
    ordered
}

/// A file's mutants, to be taken from the end: one of each function, then the second of each.
fn of_file<K, M>(functions: BTreeMap<K, Vec<M>>, random: &mut Random) -> Vec<M> {
    let mut functions: Vec<Vec<M>> = functions.into_values().collect();
    functions.iter_mut().for_each(|mutants| shuffle(mutants, random));
    let mut rounds = Vec::new();
    while !functions.is_empty() {
        shuffle(&mut functions, random);
        rounds.extend(functions.iter_mut().filter_map(Vec::pop));
        functions.retain(|mutants| !mutants.is_empty());
    }
    rounds.reverse();
    rounds
}

/// Fisher and Yates.
fn shuffle<T>(items: &mut [T], random: &mut Random) {
    for last in (1..items.len()).rev() {
        items.swap(last, random.below(last + 1));
    }
}

#[cfg(test)]
mod tests {
    use super::super::list::{Function, Position, Span};
    use super::*;

    fn mutant(file: &str, function: &str, replacement: &str) -> Mutant {
        let at = Position { line: 1, column: 1 };
        let span = Span { start: at, end: at };
        Mutant {
            name: format!("{file}: {function} {replacement}"),
            package: "kernel".into(),
            file: file.into(),
            function: Some(Function { name: function.into(), span }),
            span,
            replacement: replacement.into(),
            genre: "FnValue".into(),
            diff: String::new(),
        }
    }

    fn all() -> Vec<(u32, Mutant)> {
        let large = (0..100).map(|number| mutant("large", &format!("f{}", number / 50), &number.to_string()));
        let others = [mutant("small", "f", "1"), mutant("other", "g", "1"), mutant("other", "h", "1")];
        (0..).zip(large.chain(others)).collect()
    }

    #[test]
    fn a_large_file_gives_one_mutant_per_round_and_each_function_its_turn() {
        let ordered = order(all(), 7);
        let mut files: Vec<&str> = ordered[..3].iter().map(|(_, mutant)| mutant.file.as_str()).collect();
        files.sort_unstable();
        assert_eq!(files, ["large", "other", "small"]);
        let large: Vec<_> =
            ordered.iter().map(|(_, mutant)| mutant).filter(|mutant| mutant.file == "large").take(2).collect();
        assert_ne!(large[0].function, large[1].function);
        assert_eq!(ordered.len(), 103);
    }

    #[test]
    fn a_seed_gives_one_order_and_another_seed_another() {
        assert_eq!(order(all(), 1), order(all(), 1));
        assert_ne!(order(all(), 1), order(all(), 2));
    }
}
