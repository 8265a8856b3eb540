//! Tests of the recorders with concurrent readers and writers.

use std::sync::atomic::{AtomicBool, Ordering};
use std::vec::Vec;

use super::Recorder;
use super::calls::{CALLS, CallRing, Cycles, Open};
use super::texts::{KEPT_BYTES, TextRing};

type Small = Recorder<3, 8>;

/// A cycle count that rises with `n` and often changes its upper half.
fn tick(n: u64) -> u64 {
    n << 30
}

fn at(n: u64) -> Cycles {
    [tick(n) as u32, (tick(n) >> 32) as u32]
}

fn begin(ring: &CallRing, nr: u32, cpu: u32, now: Cycles, args: [u64; 3]) -> Open<'_> {
    let draft = ring.begin();
    draft.call(nr, cpu);
    draft.entry(now);
    draft.args::<0, 3>(args);
    draft.publish()
}

fn numbers(ring: &Small) -> Vec<u64> {
    let mut seen = Vec::new();
    assert_eq!(ring.for_each(|entry| seen.push(entry.words[0])), 0);
    seen
}

#[test]
fn a_ring_that_was_never_written_has_nothing_to_say() {
    let ring = Small::new();
    assert_eq!(ring.for_each(|_| panic!("nothing was recorded")), 0);
    assert_eq!(ring.get(0), None);
    assert_eq!((ring.counts().total, ring.counts().held()), (0, 0));
}

#[test]
fn the_oldest_entries_make_room_and_are_counted() {
    let ring = Small::new();
    for n in 0..11 {
        ring.put(7, [n]);
    }
    assert_eq!(numbers(&ring), (3..11).collect::<Vec<_>>());
    let counts = ring.counts();
    assert_eq!((counts.total, counts.overwritten, counts.capacity), (11, 3, 8));
    assert_eq!(ring.get(2), None, "entry 2 was overwritten by entry 10");
    assert_eq!(ring.get(10).map(|entry| (entry.tag, entry.words[0])), Some((7, 10)));
}

#[test]
fn a_repeat_of_the_newest_entry_is_counted_and_takes_no_slot() {
    let ring = Recorder::<5, 4>::new();
    assert!(!ring.repeat(3, [9, 1], 11), "an empty ring has nothing to repeat");
    ring.put(3, [10, 9, 1, 0, 0]);
    assert!((11..100).all(|at| ring.repeat(3, [9, 1], at)));
    assert_eq!(ring.get(0).map(|entry| entry.words), Some([10, 9, 1, 89, 99]));
    assert!(!ring.repeat(2, [9, 1], 100), "another tag");
    assert!(!ring.repeat(3, [8, 1], 100), "another thread");
    ring.put(2, [100]);
    assert!(!ring.repeat(3, [9, 1], 101), "something happened between");
    assert_eq!(ring.counts().total, 2);
}

#[test]
fn words_not_given_stay_what_an_older_entry_left() {
    let ring = Recorder::<3, 1>::new();
    ring.put(1, [1, 2, 3]);
    ring.put(2, [4]);
    assert_eq!(ring.get(1).map(|entry| (entry.tag, entry.words)), Some((2, [4, 2, 3])));
}

/// One writer as fast as it can, two readers: whatever a reader accepts is one whole entry of the number it asked for.
#[test]
fn readers_never_see_a_mixture_while_the_ring_is_overwritten() {
    let ring = Small::new();
    let done = AtomicBool::new(false);
    let mix = |n: u64| n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let accepted: usize = std::thread::scope(|scope| {
        let reader = || {
            let mut accepted = 0;
            while !done.load(Ordering::Relaxed) {
                let mut before = None;
                ring.for_each(|entry| {
                    let n = entry.number;
                    assert_eq!(entry.words, [n, mix(n), !n], "entry {n} is torn");
                    assert_eq!(u64::from(entry.tag), n % 60 + 1);
                    assert!(before.is_none_or(|before| before < entry.number), "out of order");
                    before = Some(entry.number);
                    accepted += 1;
                });
            }
            accepted
        };
        let readers = [scope.spawn(reader), scope.spawn(reader)];
        for n in 0..400_000u64 {
            ring.put((n % 60) as u8 + 1, [n, mix(n), !n]);
            // Alone on a processor the writer would let readers see full laps only.
            if n % 1024 == 0 {
                std::thread::yield_now();
            }
        }
        done.store(true, Ordering::Relaxed);
        readers.into_iter().map(|reader| reader.join().expect("a reader met a torn entry")).sum()
    });
    assert!(accepted > 0, "no reader ever accepted an entry");
    assert_eq!(ring.counts().total, 400_000);
}

#[test]
fn a_call_reads_as_in_progress_until_its_result_is_there() {
    let ring = CallRing::new(Some(TextRing::boxed()));
    let draft = ring.begin();
    draft.call(7, 3);
    draft.entry([1000, 0]);
    draft.args::<0, 3>([1, 2, 3]);
    draft.args::<3, 3>([4, 5, 6]);
    assert_eq!(ring.counts().total, 0, "a draft is visible");
    let open = draft.publish();
    let mut seen = Vec::new();
    ring.for_each(|call| seen.push(call));
    assert_eq!((seen[0].nr, seen[0].cpu, seen[0].entry, seen[0].done), (7, 3, 1000, None));
    assert_eq!(seen[0].args, [1, 2, 3, 4, 5, 6]);
    open.end(-4, [1500, 0]);
    ring.for_each(|call| assert_eq!(call.done, Some((1500, -4))));
}

#[test]
fn a_ring_keeps_the_last_calls_and_forgets_those_of_its_former_owner() {
    let ring = CallRing::new(Some(TextRing::boxed()));
    for n in 0..CALLS as u64 + 5 {
        begin(&ring, n as u32, 0, at(n + 1), [n; 3]).end(n as i64, at(n + 2));
    }
    let mut seen = Vec::new();
    assert_eq!(ring.for_each(|call| seen.push((call.index, call.nr))), 0);
    assert_eq!(seen.len(), CALLS - 1);
    assert_eq!((seen[0], seen[CALLS - 2]), ((6, 6), (CALLS as u32 + 4, CALLS as u32 + 4)));
    ring.brief(39);
    assert_eq!(ring.last_brief().map(|brief| (brief.before, brief.nr)), Some((CALLS as u32 + 5, 39)));

    ring.hand_over();
    assert_eq!(ring.for_each(|call| panic!("{call:?} is another's")), 0);
    assert_eq!((ring.last_brief(), ring.counts().total), (None, 0));
    begin(&ring, 60, 1, at(900), [0; 3]).end(0, at(901));
    let mut seen = Vec::new();
    ring.for_each(|call| seen.push((call.index, call.nr)));
    assert_eq!(seen, [(0, 60)]);
}

/// The strings of a call at these addresses, those that are cut with an ellipsis.
fn texts<const N: usize>(ring: &CallRing, index: u32, addrs: [u64; N]) -> [std::string::String; N] {
    let found = ring.texts_at(index, core::array::from_fn(|at| addrs.get(at).copied()));
    assert!(found[N..].iter().all(Option::is_none), "a string for no address");
    core::array::from_fn(|at| {
        let Some(text) = found[at] else { return "-".into() };
        let end = if text.is_cut() { "..." } else { "" };
        std::string::String::from_utf8_lossy(text.bytes()).into_owned() + end
    })
}

/// Records that the call in progress was given a string of `len` bytes that begins like this.
fn given(ring: &CallRing, addr: u64, text: &str, len: usize) {
    let mut start = [b'?'; KEPT_BYTES];
    start[..text.len()].copy_from_slice(text.as_bytes());
    ring.text(addr, &start, len);
}

#[test]
fn a_call_has_its_own_strings_and_no_other_calls() {
    let ring = CallRing::new(Some(TextRing::boxed()));
    begin(&ring, 1, 0, at(1), [0; 3]).end(0, at(2));
    assert_eq!(texts(&ring, 0, [0, 0x1000]), ["-", "-"], "a fresh ring has no strings");
    let open = begin(&ring, 82, 0, at(3), [0; 3]);
    given(&ring, 0x1000, "/from", 5);
    given(&ring, 0x2000, "/to", 3);
    open.end(0, at(4));
    let open = begin(&ring, 2, 0, at(5), [0; 3]);
    given(&ring, 0x1000, &"/".repeat(KEPT_BYTES), 4000);
    open.end(0, at(6));
    assert_eq!(texts(&ring, 1, [0x1000, 0x3000, 0x2000]), ["/from", "-", "/to"]);
    assert_eq!(texts(&ring, 2, [0x1000, 0x2000]), ["/".repeat(KEPT_BYTES) + "...", "-".into()]);
    ring.hand_over();
    begin(&ring, 3, 0, at(7), [0; 3]).end(0, at(8));
    assert_eq!(texts(&ring, 0, [0x1000, 0x2000]), ["-", "-"], "strings of the former owner");
    assert_eq!(texts(&ring, 1, [0x1000, 0x2000]), ["-", "-"]);
}

#[test]
fn a_structure_of_two_pieces_is_joined_and_a_neighbour_is_not() {
    let ring = CallRing::new(Some(TextRing::boxed()));
    let at_half = 0x1000 + KEPT_BYTES as u64;
    let open = begin(&ring, 5, 0, at(1), [0; 3]);
    given(&ring, at_half, "second", 6);
    given(&ring, 0x1000, &"1".repeat(KEPT_BYTES), KEPT_BYTES + 6);
    open.end(0, at(2));
    let open = begin(&ring, 5, 0, at(3), [0; 3]);
    given(&ring, at_half, "another's", 9);
    given(&ring, 0x1000, &"1".repeat(KEPT_BYTES), KEPT_BYTES + 6);
    open.end(0, at(4));
    ring.text_ahead(0x1000, &[b'n'; KEPT_BYTES], 4);
    begin(&ring, 5, 0, at(5), [0; 3]).end(0, at(6));
    assert_eq!(texts(&ring, 0, [0x1000]), ["1".repeat(KEPT_BYTES) + "second"]);
    assert_eq!(texts(&ring, 1, [0x1000]), ["1".repeat(KEPT_BYTES) + "..."]);
    assert_eq!(texts(&ring, 2, [0x1000]), ["nnnn"]);
}

#[test]
fn of_two_reads_of_one_address_the_later_counts() {
    let ring = CallRing::new(Some(TextRing::boxed()));
    let open = begin(&ring, 59, 0, at(1), [0; 3]);
    given(&ring, 0x1000, "/as/it/was", 10);
    given(&ring, 0x1000, "/as/it/is", 9);
    open.end(0, at(2));
    assert_eq!(texts(&ring, 0, [0x1000]), ["/as/it/is"]);
}

#[test]
fn two_arguments_with_one_address_both_have_its_string() {
    let ring = CallRing::new(Some(TextRing::boxed()));
    let open = begin(&ring, 82, 0, at(1), [0; 3]);
    given(&ring, 0x1000, "/same", 5);
    open.end(0, at(2));
    assert_eq!(texts(&ring, 0, [0x1000, 0x1000, 0x2000]), ["/same", "/same", "-"]);
}

#[test]
fn a_brief_call_says_between_which_others_it_was_made() {
    let ring = CallRing::new(Some(TextRing::boxed()));
    begin(&ring, 1, 0, at(1), [0; 3]).end(0, at(2));
    ring.brief(102);
    begin(&ring, 3, 0, at(3), [0; 3]).end(0, at(4));
    assert_eq!(ring.last_brief().map(|brief| (brief.before, brief.nr)), Some((1, 102)));
    for n in 0..CALLS as u64 {
        begin(&ring, n as u32, 0, at(n + 5), [0; 3]).end(0, at(n + 6));
    }
    assert_eq!(ring.last_brief(), None, "it is older than everything kept");
}

/// The owner makes calls while another thread reads: results belong to their calls.
#[test]
fn a_running_threads_calls_can_be_read_from_elsewhere() {
    let ring = CallRing::new(Some(TextRing::boxed()));
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                ring.for_each(|call| {
                    let n = u64::from(call.nr);
                    assert_eq!(call.args[..3], [n, !n, n << 7], "call {n} is torn");
                    assert_eq!(call.entry, tick(2 * n + 1));
                    if let Some((exit, result)) = call.done {
                        assert_eq!((exit, result), (tick(2 * n + 2), -(n as i64)));
                    }
                });
            }
        });
        for n in 0..200_000u64 {
            begin(&ring, n as u32, 0, at(2 * n + 1), [n, !n, n << 7]).end(-(n as i64), at(2 * n + 2));
        }
        done.store(true, Ordering::Relaxed);
        reader.join().expect("the reader met a torn call");
    });
}
