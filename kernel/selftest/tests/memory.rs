//! Frames, the heap and page tables, judged by what they give back and what programs see.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use machine::addr::{HUGE_PAGES, PAGE_SIZE, PageRange};
use machine::frame::{self, Frame};
use machine::space::{ForkMode, Prot, UserSpace};

use crate::program::{EXEC, READ, WRITE, page};
use crate::{frames, say};

const AT: u64 = 0x1000_0000;

fn range(pages: u64) -> PageRange {
    PageRange::new(AT, AT + pages * PAGE_SIZE as u64).expect("a range of the user half")
}

/// Free frames once the heap and the stack cache have what they want.
fn settled_count() -> usize {
    frames::count()
}

/// Every operation on tables, counting references before and after.
pub(super) fn tables() {
    drop(UserSpace::new());
    let before = settled_count();
    let space = UserSpace::new().expect("a root");
    let shared = Frame::alloc_zeroed().expect("a frame");
    assert!(space.map(page(AT), shared.clone(), READ).is_ok());
    assert_eq!(shared.references(), 2);
    let (_, back) = space.map(page(AT), shared.clone(), READ).expect_err("mapped twice");
    drop(back);
    let leaf = space.lookup(page(AT)).expect("just mapped");
    assert_eq!((leaf.frame, leaf.prot, leaf.huge), (shared.number(), READ, false));
    let mapped = space.map_run(range(700), WRITE, &mut |i| if i % 7 == 3 { None } else { Frame::alloc().ok() });
    say!("mapped {mapped} of 700 pages in {} tables", space.table_frames());
    space.protect(range(700), &mut |_| Prot::default()).expect("small pages");
    assert!(!space.lookup(page(AT)).expect("held").prot.read, "held pages grant nothing");
    space.protect(range(700), &mut |leaf| Prot { tag: leaf.prot.tag, ..EXEC }).expect("small pages");
    let to = PageRange::new(AT + (1 << 30), AT + (1 << 30) + 700 * PAGE_SIZE as u64).expect("a range");
    space.move_range(range(700), to).expect("the target is free");
    assert!(space.lookup(page(AT)).is_none());
    assert_eq!(space.lookup(page(to.start())).map(|l| (l.frame, l.prot.exec)), Some((shared.number(), true)));
    let walk = machine::crash::walk(space.root(), to.start());
    assert_eq!((walk.depth, walk.entries[3] & 0x000f_ffff_ffff_f000), (4, shared.addr().0));
    let (frame, _) = space.take(page(to.start())).expect("mapped");
    assert_eq!(frame.references(), 2);
    let removed = space.unmap(to).expect("small pages");
    say!("removed {} pages, by tag {:?}", removed.pages, removed.by_tag);
    drop((frame, shared, space));
    assert_eq!(settled_count(), before, "frames are lost");
}

/// Copy-on-write: counts, who copies, who may keep.
pub(super) fn fork() {
    drop(UserSpace::new());
    let before = settled_count();
    let parent = UserSpace::new().expect("a root");
    let word = |space: &Arc<UserSpace>| space.frame(page(AT)).expect("mapped").0.load_u32(0);
    parent.map_run(range(3), WRITE, &mut |_| Frame::alloc_zeroed().ok());
    let child = UserSpace::new().expect("a root");
    let shared = parent.fork_range(&child, range(3), ForkMode::CopyOnWrite).expect("table frames");
    parent.flush();
    say!("forked {} pages, by tag {:?}", shared.pages, shared.by_tag);
    assert!(!parent.lookup(page(AT)).expect("mapped").prot.write, "the parent could still write");
    let number = parent.lookup(page(AT)).expect("mapped").frame;
    assert_eq!(child.make_private(page(AT), WRITE), Ok(true));
    child.frame(page(AT)).expect("mapped").0.store_u32(0, 7);
    assert_eq!((word(&parent), word(&child)), (0, 7));
    assert_eq!(parent.make_private(page(AT), WRITE), Ok(true));
    assert_eq!(parent.lookup(page(AT)).expect("mapped").frame, number, "the last owner copied for nothing");
    let third = UserSpace::new().expect("a root");
    parent.fork_range(&third, range(3), ForkMode::Share).expect("table frames");
    assert!(third.lookup(page(AT)).expect("mapped").prot.write);
    drop((parent, child, third));
    assert_eq!(settled_count(), before, "frames are lost");
}

/// A 2 MiB page: mapped whole, forked, split by a partial unmap, freed when the last piece goes.
pub(super) fn huge() {
    let block = Frame::alloc_block(9).expect("2 MiB");
    let head = block.number();
    block.store_u32(5 * PAGE_SIZE, 55);
    let space = UserSpace::new().expect("a root");
    assert!(space.map_huge(page(AT), block, WRITE).is_ok());
    let leaf = space.lookup(page(AT + 5 * PAGE_SIZE as u64)).expect("inside");
    assert!(leaf.huge && leaf.frame.0 == head.0 + 5);
    let child = UserSpace::new().expect("a root");
    let all = range(HUGE_PAGES as u64);
    assert_eq!(space.fork_range(&child, all, ForkMode::CopyOnWrite).expect("tables").pages, HUGE_PAGES);
    drop(child);
    let part = PageRange::new(AT, AT + 5 * PAGE_SIZE as u64).expect("a range");
    assert_eq!(space.unmap(part).expect("a table").pages, 5);
    let (piece, leaf) = space.frame(page(AT + 5 * PAGE_SIZE as u64)).expect("the rest stays");
    assert_eq!((piece.load_u32(0), leaf.huge), (55, false));
    say!("state {:?}", matches!(frame::state(head), frame::FrameState::Used { order: 9, count: 508, .. }));
    drop(space);
    assert!(matches!(frame::state(head), frame::FrameState::Used { count: 1, .. }), "{:?}", frame::state(head));
    drop(piece);
    assert_eq!(frame::state(head), frame::FrameState::Free);
}

/// Sizes from one byte to a megabyte, kept distinct and given back.
pub(super) fn heap() {
    let mut kept: Vec<Box<[u8]>> = Vec::new();
    let before = machine::heap::usage().held;
    for round in 0..3 {
        for size in (1..2048).step_by(37).chain([4096, 5000, 16384, 65536, 100_000, 1 << 20]) {
            let mut block = alloc::vec![0u8; size].into_boxed_slice();
            block.fill(size as u8);
            kept.push(block);
        }
        assert!(kept.iter().all(|b| b.iter().all(|byte| *byte == b.len() as u8)), "round {round}: blocks overlap");
        kept.clear();
    }
    let grown = machine::heap::usage().held.saturating_sub(before);
    assert!(grown < 1 << 20, "{grown} bytes stay with the heap");
    assert!(Vec::<u8>::new().try_reserve(1 << 40).is_err(), "a terabyte was allocated");
    // The first time makes the tables for such addresses, which stay.
    let (mut free, mut used) = (0, 0);
    for round in 0..3 {
        let mut large: Vec<u64> = (0..9 << 17).collect();
        assert!(
            large.iter().enumerate().all(|(index, value)| *value == index as u64),
            "a span is not what was written"
        );
        large.push(7);
        assert_eq!((large[5], large.last()), (5, Some(&7)), "a span that grew lost its contents");
        drop(large);
        if round > 0 {
            assert_eq!((settled_count(), machine::heap::usage().used), (free, used), "a span was not given back whole");
        }
        (free, used) = (settled_count(), machine::heap::usage().used);
    }
    arenas_are_given_back();
}

/// Small objects that are freed together are the last ones of many arenas: all of those go back.
fn arenas_are_given_back() {
    const ROUNDS: usize = 64;
    let before = machine::heap::usage().held;
    let (mut filling, mut first, mut second) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        filling.extend((0..28).map(|_| alloc::vec![0u8; 8 << 10].into_boxed_slice()));
        first.push(alloc::vec![0u8; 1500].into_boxed_slice());
        second.push(alloc::vec![0u8; 1500].into_boxed_slice());
    }
    let most = machine::heap::usage().held - before;
    assert!(most > ROUNDS * (224 << 10), "only {most} bytes were taken");
    drop(filling);
    drop(first);
    drop(second);
    let kept = machine::heap::usage().held.saturating_sub(before);
    assert!(kept < 3 << 20, "{kept} bytes of {most} stay with the heap");
}
