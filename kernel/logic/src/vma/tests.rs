//! What the VMA set must survive: every edit against a page-by-page model.

extern crate std;
use super::*;
use std::collections::BTreeMap;
use std::vec::Vec;

/// Anonymous, or a file at an offset.
#[derive(Clone, Debug, PartialEq)]
enum Back {
    Anon,
    File(u64),
}

impl Backing for Back {
    fn advanced(&self, bytes: u64) -> Self {
        match self {
            Back::Anon => Back::Anon,
            Back::File(at) => Back::File(at + bytes),
        }
    }
    fn continues_as(&self, bytes: u64, next: &Self) -> bool {
        self.advanced(bytes) == *next
    }
}

fn vma(start: u64, end: u64, prot: Prot, backing: Back) -> Vma<Back> {
    Vma { start: start * PAGE, end: end * PAGE, prot, flags: VmaFlags::default(), backing }
}

fn shape(set: &VmaSet<Back>) -> Vec<(u64, u64, u8)> {
    set.iter().map(|v| (v.start / PAGE, v.end / PAGE, v.prot.0)).collect()
}

const RW: Prot = Prot(3);

#[test]
fn neighbours_with_equal_attributes_become_one() {
    let mut set = VmaSet::new();
    set.insert(vma(1, 2, RW, Back::Anon)).unwrap();
    set.insert(vma(3, 4, RW, Back::Anon)).unwrap();
    set.insert(vma(2, 3, RW, Back::Anon)).unwrap();
    assert_eq!(shape(&set), [(1, 4, 3)]);
    set.insert(vma(4, 5, RW, Back::File(0))).unwrap();
    set.insert(vma(5, 6, RW, Back::File(PAGE))).unwrap();
    set.insert(vma(6, 7, RW, Back::File(0))).unwrap();
    assert_eq!(shape(&set), [(1, 4, 3), (4, 6, 3), (6, 7, 3)]);
}

#[test]
fn nothing_is_placed_in_the_guard_of_a_range_that_grows_down() {
    const GUARD: u64 = STACK_GUARD / PAGE;
    let mut set = VmaSet::new();
    let stack = vma(5000, 5010, RW, Back::Anon);
    set.insert(Vma { flags: VmaFlags::GROWS_DOWN, ..stack }).unwrap();
    let below = (5000 - GUARD) * PAGE;
    let mut gap = |pages: u64, ceiling: u64| set.find_gap(pages * PAGE, 16 * PAGE, ceiling * PAGE);
    assert_eq!(gap(1, 5010), Some(below - PAGE));
    assert_eq!(gap(1, 5000), Some(below - PAGE), "also where the search ends at the range");
    assert_eq!(gap(1, 4999), Some(below - PAGE), "or inside of its guard");
    assert_eq!(gap(1, 4000), Some(3999 * PAGE));
    assert_eq!(gap(1, 5020), Some(5019 * PAGE), "above it there is none");
    assert_eq!(gap(5000 - GUARD, 5010), None);
    assert!(set.is_clear(below - PAGE, below) && !set.is_clear(below - PAGE, below + PAGE));
    assert!(set.is_free(below, below + PAGE), "who asks for a place by force gets it");
    set.insert(vma(10, 20, RW, Back::Anon)).unwrap();
    assert!(set.is_clear(5, 10 * PAGE) && !set.is_clear(5, 11 * PAGE));
}

#[test]
fn a_hole_punched_in_a_file_keeps_the_upper_offset() {
    let mut set = VmaSet::new();
    set.insert(vma(10, 20, RW, Back::File(0))).unwrap();
    let mut gone = Vec::new();
    set.remove(12 * PAGE, 15 * PAGE, |v| gone.push((v.start / PAGE, v.end / PAGE))).unwrap();
    assert_eq!(gone, [(12, 15)]);
    assert_eq!(set.find(15 * PAGE).unwrap().backing, Back::File(5 * PAGE));
    assert!(set.find(14 * PAGE).is_none());
    assert_eq!(set.pages(), 7);
}

#[test]
fn mprotect_over_a_hole_changes_what_came_before_it() {
    let mut set = VmaSet::new();
    set.insert(vma(1, 3, RW, Back::Anon)).unwrap();
    set.insert(vma(4, 6, RW, Back::Anon)).unwrap();
    assert_eq!(set.protect(2 * PAGE, 5 * PAGE, Prot::READ, |_, _| ()), Err(VmaError::NoMemory));
    assert_eq!(shape(&set), [(1, 2, 3), (2, 3, 1), (4, 6, 3)]);
    set.protect(2 * PAGE, 3 * PAGE, RW, |_, _| ()).unwrap();
    assert_eq!(shape(&set), [(1, 3, 3), (4, 6, 3)]);
}

#[test]
fn a_shared_mapping_of_a_read_only_file_never_becomes_writable() {
    let mut set = VmaSet::new();
    let mut v = vma(1, 3, Prot::READ, Back::File(0));
    v.flags = VmaFlags::SHARED.with(VmaFlags::NO_WRITE);
    set.insert(v).unwrap();
    assert_eq!(set.protect(PAGE, 3 * PAGE, RW, |_, _| ()), Err(VmaError::Access));
    assert_eq!(shape(&set), [(1, 3, 1)]);
}

#[test]
fn gaps_are_found_from_the_top_and_the_hint_never_hides_one() {
    let mut set = VmaSet::new();
    let top = 100 * PAGE;
    let a = set.find_gap(2 * PAGE, PAGE, top).unwrap();
    assert_eq!(a, 98 * PAGE);
    set.insert(vma(98, 100, RW, Back::Anon)).unwrap();
    set.insert(vma(90, 95, RW, Back::Anon)).unwrap();
    assert_eq!(set.find_gap(4 * PAGE, PAGE, top), Some(86 * PAGE));
    assert_eq!(set.find_gap(3 * PAGE, PAGE, top), Some(95 * PAGE));
    assert_eq!(set.find_gap(4 * PAGE, PAGE, top), Some(86 * PAGE));
    set.remove(98 * PAGE, 100 * PAGE, |_| ()).unwrap();
    assert_eq!(set.find_gap(4 * PAGE, PAGE, top), Some(96 * PAGE));
    assert_eq!(set.find_gap(90 * PAGE, PAGE, top), None);
    assert_eq!(set.find_gap(89 * PAGE, PAGE, top), Some(PAGE));
}

#[test]
fn the_stack_grows_to_its_limit_and_keeps_away_from_what_lies_below() {
    let mut set = VmaSet::new();
    let mut stack = vma(90, 100, RW, Back::Anon);
    stack.flags = VmaFlags::GROWS_DOWN;
    set.insert(stack).unwrap();
    set.insert(vma(50, 60, RW, Back::Anon)).unwrap();
    assert_eq!(set.grow_down(80 * PAGE + 5, 30 * PAGE, 8 * PAGE), Some(80 * PAGE));
    assert_eq!(set.pages(), 30);
    assert_eq!(set.grow_down(69 * PAGE, 30 * PAGE, 8 * PAGE), None);
    assert_eq!(set.grow_down(66 * PAGE, 90 * PAGE, 8 * PAGE), None);
    assert_eq!(set.grow_down(61 * PAGE, 90 * PAGE, PAGE), Some(61 * PAGE));
    assert!(set.grow_down(40 * PAGE, 90 * PAGE, PAGE).is_none());
}

/// Few pages, so that every edit meets others.
#[test]
fn ten_thousand_random_edits_agree_with_a_page_by_page_model() {
    random_edits(10_000, 60, 8);
}

/// Enough pages for ranges to lie in several pieces, and edits that span them.
#[test]
fn edits_across_many_ranges_agree_with_the_model_too() {
    random_edits(1500, 1500, 3);
    random_edits(800, 900, 200);
}

fn random_edits(edits: usize, pages: u64, longest: u64) {
    let mut set = VmaSet::new();
    let mut model: BTreeMap<u64, (u8, Back)> = BTreeMap::new();
    let mut seed = 99u64;
    let mut random = |n: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % n
    };
    fill(&mut set, &mut model, if longest < 8 { pages } else { 0 });
    for _ in 0..edits {
        let start = random(pages);
        let len = 1 + random(longest);
        let end = start + len;
        match random(4) {
            0 => {
                set.remove(start * PAGE, end * PAGE, |_| ()).unwrap();
                model.retain(|page, _| *page < start || *page >= end);
            }
            1 => {
                let prot = Prot(random(4) as u8);
                let outcome = set.protect(start * PAGE, end * PAGE, prot, |_, _| ());
                let hole = (start..end).find(|page| !model.contains_key(page));
                assert_eq!(outcome.is_err(), hole.is_some());
                for page in start..hole.unwrap_or(end) {
                    model.get_mut(&page).unwrap().0 = prot.0;
                }
            }
            2 => {
                let gap = set.find_gap(len * PAGE, 0, (pages + 8) * PAGE).map(|at| at / PAGE);
                let fits = len <= pages + 8;
                let want = (0..=(pages + 8).saturating_sub(len))
                    .rev()
                    .find(|at| fits && (*at..at + len).all(|page| !model.contains_key(&page)));
                assert_eq!(gap, want, "gap of {len} in {:?}", shape(&set));
            }
            _ => {
                set.remove(start * PAGE, end * PAGE, |_| ()).unwrap();
                let backing = if random(2) == 0 { Back::Anon } else { Back::File(start * PAGE) };
                let prot = Prot(random(4) as u8);
                set.insert(vma(start, end, prot, backing.clone())).unwrap();
                for page in start..end {
                    model.insert(page, (prot.0, backing.advanced((page - start) * PAGE)));
                }
            }
        }
        assert_eq!(set.pages() as usize, model.len());
        assert_eq!(set.len(), set.iter().count());
        for (left, right) in set.iter().zip(set.iter().skip(1)) {
            assert!(left.end <= right.start);
            assert!(!joins(left, right), "unjoined neighbours in {:?}", shape(&set));
        }
        for page in 0..pages + longest {
            let found = set.find(page * PAGE).map(|v| (v.prot.0, v.backing.advanced(page * PAGE - v.start)));
            assert_eq!(found, model.get(&page).cloned());
        }
    }
    assert_eq!(shape(&set.try_clone().unwrap()), shape(&set));
}

/// Every page a range of its own.
fn fill(set: &mut VmaSet<Back>, model: &mut BTreeMap<u64, (u8, Back)>, pages: u64) {
    for page in 0..pages {
        let backing = Back::File(7 * page * PAGE);
        set.insert(vma(page, page + 1, RW, backing.clone())).unwrap();
        model.insert(page, (RW.0, backing));
    }
}

/// Once the set was one vector: the kernel's heap had no piece large enough for it, and the kernel panicked.
#[test]
fn as_many_ranges_as_linux_permits_fit_and_one_more_is_refused() {
    let mut set = VmaSet::new();
    for at in (1..=MAX_VMAS as u64).rev() {
        set.insert(vma(2 * at, 2 * at + 1, RW, Back::Anon)).unwrap();
    }
    set.insert(vma(200_001, 200_003, RW, Back::Anon)).unwrap();
    assert_eq!(set.insert(vma(0, 1, RW, Back::Anon)), Err(VmaError::NoMemory));
    let half = set.remove(200_001 * PAGE, 200_002 * PAGE, |_| ());
    assert_eq!(half, Err(VmaError::NoMemory), "half a range cannot go: that would be one more");
    assert_eq!(set.protect(200_001 * PAGE, 200_003 * PAGE, Prot::READ, |_, _| ()), Ok(()));
    set.remove(200_001 * PAGE, 200_003 * PAGE, |_| ()).unwrap();
    assert_eq!((set.len(), set.pages()), (MAX_VMAS, MAX_VMAS as u64));
    for at in (1..=MAX_VMAS as u64).step_by(2) {
        set.remove(2 * at * PAGE, (2 * at + 1) * PAGE, |_| ()).unwrap();
    }
    assert_eq!(set.len(), MAX_VMAS / 2);
    set.remove(0, USER_END, |_| ()).unwrap();
    assert!(set.is_empty() && set.pages() == 0);
}
