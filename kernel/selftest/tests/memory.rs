//! Frames, the heap and page tables, judged by what they give back and what programs see.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use machine::addr::{HUGE_PAGES, PAGE_SIZE, PageRange, UserAddr};
use machine::frame::{self, Frame};
use machine::space::{ForkMode, Prot, UserSpace, losses_here};
use machine::user;

use crate::program::{EXEC, READ, WRITE, page};
use crate::{START, frames, say};

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
    assert_eq!(space.table_frames(), 1, "empty tables of every level are given back");
    scattered(&space, &shared);
    drop((frame, shared, space));
    assert_eq!(settled_count(), before, "frames are lost");
}

/// Pages far from each other, unmapped and moved one by one: of the empty tables only a few stay.
fn scattered(space: &UserSpace, shared: &Frame) {
    const FAR: u64 = 1 << 31;
    for far in 1..=40 {
        assert!(space.map(page(AT + far * FAR), shared.clone(), READ).is_ok());
    }
    let most = space.table_frames();
    for far in 1..=40 {
        let (from, to) = (AT + far * FAR, AT + far * FAR + (1 << 30));
        let one = |at| PageRange::new(at, at + PAGE_SIZE as u64).expect("a page");
        space.move_range(one(from), one(to)).expect("the target is free");
        assert!(space.table_frames() <= most + 2, "the tables it came from are given back");
        assert_eq!(space.unmap(one(to)).expect("small").pages, 1);
    }
    say!("{} tables of {most} stay", space.table_frames());
    assert!(space.table_frames() <= 32);
    space.unmap(PageRange::ALL).expect("no large leaf");
    assert_eq!(space.table_frames(), 1);
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

/// Tables of a space that is gone serve the next one, which finds nothing of the old one in them.
pub(super) fn reused() {
    let before = settled_count();
    let first = UserSpace::new().expect("a root");
    let mapped = first.map_run(range(500), WRITE, &mut |i| if i % 5 == 0 { Frame::alloc().ok() } else { None });
    let tables = |space: &UserSpace| (space.root(), machine::crash::walk(space.root(), AT).entries.map(|e| e >> 12));
    let old = tables(&first);
    drop(first);
    let second = UserSpace::new().expect("a root");
    let used = page(AT + 3 * PAGE_SIZE as u64);
    assert!(second.map(used, Frame::alloc_zeroed().expect("a frame"), READ).is_ok());
    assert_eq!(tables(&second).0, old.0, "the old tables are not used again");
    let inner = |tables: (_, [u64; 5])| tables.1[..3].to_vec();
    assert_eq!(inner(tables(&second)), inner(old), "the old tables are not used again");
    let found = (0..1024).filter(|i| second.lookup(page(AT + i * PAGE_SIZE as u64)).is_some()).count();
    say!("of {mapped} pages of another space {} are seen", found - 1);
    drop(second);
    assert_eq!(settled_count(), before, "frames are lost");
}

/// A 2 MiB page: mapped whole, split by a fork and by a partial unmap, each piece freed when its last user goes; and
/// made again of small ones.
pub(super) fn huge() {
    let before = settled_count();
    let (leaves, splits) = machine::space::huge_leaves();
    let block = Frame::alloc_block(9).expect("2 MiB");
    let head = block.number();
    (0..HUGE_PAGES).for_each(|index| block.store_u32(index * PAGE_SIZE, index as u32));
    let space = UserSpace::new().expect("a root");
    assert!(space.is_vacant(page(AT)) && space.map_huge(page(AT), block, WRITE).is_ok() && !space.is_vacant(page(AT)));
    let fifth = page(AT + 5 * PAGE_SIZE as u64);
    let leaf = space.lookup(fifth).expect("inside");
    assert!(leaf.huge && leaf.frame.0 == head.0 + 5);
    let child = UserSpace::new().expect("a root");
    let all = range(HUGE_PAGES as u64);
    assert_eq!(space.fork_range(&child, all, ForkMode::CopyOnWrite).expect("tables").pages, HUGE_PAGES);
    assert!((0..HUGE_PAGES as u32).all(|index| {
        let state = frame::state(machine::addr::FrameNumber(head.0 + index));
        matches!(state, frame::FrameState::Used { order: 0, count: 2, .. })
    }));
    drop(child);
    let part = PageRange::new(AT, AT + 5 * PAGE_SIZE as u64).expect("a range");
    assert_eq!(space.unmap(part).expect("a table").pages, 5);
    assert_eq!(frame::state(head), frame::FrameState::Free, "a piece stays that is not mapped");
    let (piece, leaf) = space.frame(fifth).expect("the rest stays");
    assert_eq!((piece.load_u32(0), leaf.huge), (5, false));
    drop(piece);
    say!("made of {} pages", collapsed(&space, HUGE_PAGES - 5));
    let (piece, leaf) = space.frame(fifth).expect("still there");
    assert_eq!((piece.load_u32(0), leaf.huge), (5, false), "a reference to a part of it splits a huge page");
    let first = space.frame(page(AT)).expect("the hole is filled").0;
    assert_eq!(first.load_u32(0), 0, "what was not mapped is not zeros");
    drop((piece, first));
    // The last word: nothing of a split page is left over.
    say!("splits {}", machine::space::huge_leaves().1 - splits);
    drop(space);
    assert_eq!((settled_count(), machine::space::huge_leaves().0), (before, leaves), "frames are lost");
}

/// Huge pages of a running space are flushed before tables replace them: once for a run, once for a part of one.
pub(super) fn splits() {
    const BLOCKS: u64 = 3;
    let before = settled_count();
    let (space, child) = (UserSpace::new().expect("a root"), UserSpace::new().expect("a root"));
    START.current().set_space(Some(space.clone()));
    for at in (0..BLOCKS).map(|index| AT + index * (HUGE_PAGES * PAGE_SIZE) as u64) {
        let block = Frame::alloc_zeroed_block(9).expect("2 MiB");
        assert!(space.map_huge(page(at), block, WRITE).is_ok());
        // Cached by this processor as a huge page.
        assert_eq!(user::write(UserAddr(at), 1u32), Ok(()));
    }
    let all = range(BLOCKS * HUGE_PAGES as u64);
    let flushes = losses_here();
    assert!(space.fork_range(&child, all, ForkMode::CopyOnWrite).is_ok());
    say!("flushes {} for {BLOCKS} huge pages", losses_here() - flushes);
    space.flush();
    assert_eq!(collapsed(&space, HUGE_PAGES), HUGE_PAGES);
    let flushes = losses_here();
    assert_eq!(user::read::<u32>(UserAddr(AT)), Ok(1));
    assert!(space.frame(page(AT + PAGE_SIZE as u64)).is_some());
    say!("flushes {} for a part of one", losses_here() - flushes);
    assert_eq!(user::read::<u32>(UserAddr(AT)), Ok(1));
    START.current().set_space(None);
    drop((space, child));
    assert_eq!(settled_count(), before, "frames are lost");
}

/// A block that others keep, shown for reading: a fork shares it, a write copies one page of it, a partial unmap splits
/// it, and each reference goes with its leaf.
pub(super) fn blocks() {
    let before = settled_count();
    let (leaves, splits) = machine::space::huge_leaves();
    let block = Frame::alloc_zeroed_block(9).expect("2 MiB");
    (0..HUGE_PAGES).for_each(|index| block.store_u32(index * PAGE_SIZE, index as u32));
    let kept: Vec<Frame> = (0..HUGE_PAGES).filter_map(|index| block.sub(index)).collect();
    let others = kept.len() as u32 + 1;
    let (space, child) = (UserSpace::new().expect("a root"), UserSpace::new().expect("a root"));
    assert!(!space.map_block(page(AT), &block, WRITE), "a block that others show may be written");
    assert!(space.map_block(page(AT), &block, EXEC));
    let all = range(HUGE_PAGES as u64);
    assert_eq!(space.fork_range(&child, all, ForkMode::CopyOnWrite).expect("tables").by_tag[2], HUGE_PAGES);
    assert_eq!(block.references(), others + 2);
    say!("splits of a fork {}", machine::space::huge_leaves().1 - splits);
    let sixth = page(AT + 6 * PAGE_SIZE as u64);
    assert_eq!(child.make_private(sixth, WRITE), Ok(true));
    let (own, leaf) = child.frame(sixth).expect("a copy");
    assert!(own.load_u32(0) == 6 && leaf.prot.write && own.number() != kept[6].number());
    assert!(child.lookup(page(AT)).is_some_and(|leaf| leaf.frame == block.number() && !leaf.huge && !leaf.prot.write));
    assert_eq!(block.references(), others + 1 + 511);
    let part = PageRange::new(AT, AT + 5 * PAGE_SIZE as u64).expect("a range");
    assert_eq!(space.unmap(part).expect("a table").pages, 5);
    assert_eq!(block.references(), others + 507 + 511);
    drop((own, child));
    assert_eq!(block.references(), others + 507);
    drop((block, kept));
    let (seventh, _) = space.frame(page(AT + 7 * PAGE_SIZE as u64)).expect("the rest stays");
    assert_eq!((seventh.load_u32(0), seventh.references()), (7, 507 + 1));
    say!("splits {}", machine::space::huge_leaves().1 - splits);
    drop((seventh, space));
    assert_eq!((settled_count(), machine::space::huge_leaves().0), (before, leaves), "frames are lost");
}

/// Makes one huge page of the small ones at [`AT`], and counts those it replaced.
fn collapsed(space: &UserSpace, expected: usize) -> usize {
    let block = Frame::alloc_zeroed_block(9).expect("2 MiB");
    let made = space.collapse(page(AT), block, WRITE).expect("small pages");
    assert_eq!(made.pages, expected);
    let leaf = space.lookup(page(AT)).expect("mapped");
    assert!(leaf.huge && leaf.prot.write);
    let refused = space.collapse(page(AT), Frame::alloc_block(9).expect("2 MiB"), WRITE);
    assert!(refused.is_err(), "a huge page was collapsed");
    made.pages
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
