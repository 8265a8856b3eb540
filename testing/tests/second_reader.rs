//! kwab-format and the reader that was written from the documents alone find the same in the same bytes.
//!
//! A slice: `cargo xtask second-reader` reads ten times as many.

use serde_json::Value;
use testing::paths;
use testing::second::{Sample, armoured, corpus, disagreements, first, mutate};

/// Mutated dumps of the slice.
const CASES: u64 = 1_000;

fn agree(samples: &[Sample]) {
    let scratch = tempfile::tempdir().expect("a folder");
    let found = disagreements(samples, scratch.path()).expect("both readers answer");
    let told: Vec<_> = found.iter().map(|found| format!("{}: {}", found.name, found.text)).collect();
    assert!(told.is_empty(), "{} of {} are read differently:\n{}", told.len(), samples.len(), told.join("\n"));
}

#[test]
fn both_readers_agree_on_every_dump_of_the_repository() {
    agree(&corpus().expect("the dumps"));
}

#[test]
fn both_readers_agree_on_mutated_dumps() {
    let samples = corpus().expect("the dumps");
    agree(&(0..CASES).map(|number| mutate::mutated(&samples, 1, number)).collect::<Vec<_>>());
}

#[test]
fn the_second_reader_puts_armoured_lines_together() {
    let vectors = paths::root().join("kwab-format/vectors");
    let whole = std::fs::read(vectors.join("dumps/smallest.kwab")).expect("the vector");
    for name in ["armour.txt", "armour-torn.txt", "armour-parity.txt"] {
        assert_eq!(armoured(&vectors.join(name)).expect("one dump"), first::report(&whole), "{name}");
    }
}

#[test]
fn a_field_that_is_read_differently_is_named() {
    // What the readers say is compared, not only whether both can read: two dumps that differ in one value differ.
    let samples = corpus().expect("the dumps");
    let smallest = samples.iter().find(|sample| sample.name.ends_with("smallest.kwab")).expect("the vector");
    let other = samples.iter().find(|sample| sample.name.ends_with("every-kind.kwab")).expect("the vector");
    let (one, two) = (&smallest.bytes, &other.bytes);
    assert_ne!(first::report(one), first::report(two));
}

#[test]
fn several_dumps_and_wrong_totals_are_among_what_is_compared() {
    let samples = corpus().expect("the dumps");
    let mutated: Vec<_> = (0..CASES).map(|number| first::file(&mutate::mutated(&samples, 1, number).bytes)).collect();
    let dumps = |file: &Value| file["dumps"].as_array().map_or(0, Vec::len);
    assert!(mutated.iter().filter(|file| dumps(file) > 1).count() > 20);
    let totals = |dump: &Value| dump["totals"].as_array().map_or(0, Vec::len);
    let wrong =
        mutated.iter().filter(|file| file["dumps"].as_array().is_some_and(|all| all.iter().any(|d| totals(d) > 0)));
    assert!(wrong.count() > 10);
    let whole = samples.iter().find(|sample| sample.name == "three dumps").expect("it is made");
    assert_eq!(dumps(&first::file(&whole.bytes)), 3);
}
