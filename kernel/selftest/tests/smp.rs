//! Other processors: they start, they answer calls, and none keeps a translation that was taken away.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use machine::addr::{PAGE_SIZE, PageRange, UserAddr};
use machine::frame::Frame;
use machine::sync::SpinLock;
use machine::{cpu, user};

use crate::program::{self, DATA, READ, WRITE, page};
use crate::{START, say};

/// Whether the other processors should be hammering.
static HAMMER: AtomicU32 = AtomicU32::new(0);
static SPACE: SpinLock<Option<alloc::sync::Arc<machine::space::UserSpace>>> = SpinLock::new(None);
static STALE: AtomicU32 = AtomicU32::new(0);
static ROUNDS: AtomicU64 = AtomicU64::new(0);
static ACTIVE: AtomicU32 = AtomicU32::new(0);

/// All processors found start, count as online, and run what they are told, exactly once each.
pub(super) fn processors() {
    let online = cpu::start_others();
    assert_eq!(online, machine::boot::info().cpus);
    say!("online {online}");
    for mask in [cpu::online(), cpu::online() & !1, 1, 0] {
        let ran = AtomicU64::new(0);
        for _ in 0..100 {
            ran.store(0, Ordering::SeqCst);
            cpu::call(mask, &|| {
                let bit = 1 << cpu::id().0;
                assert_eq!(ran.fetch_or(bit, Ordering::SeqCst) & bit, 0, "twice on one processor");
            });
            assert_eq!(ran.load(Ordering::SeqCst), mask);
        }
    }
    say!("calls arrive");
    let counter = SpinLock::new(0u64);
    cpu::call(cpu::online(), &|| {
        for _ in 0..10_000 {
            *counter.lock() += 1;
        }
    });
    assert_eq!(*counter.lock(), 10_000 * u64::from(online));
    say!("locks exclude");
}

/// A page with tables of its own, far from the program's.
const FAR: u64 = 5 << 39;

/// While other processors read two pages of a shared space, this one exchanges one and maps the other, whose tables
/// come and go with it: afterwards no processor may see the old frame, which is written with another value at once.
pub(super) fn shootdown() {
    let online = cpu::start_others();
    let space = program::space(&[0xf4]);
    *SPACE.lock() = Some(space.clone());
    HAMMER.store(1, Ordering::SeqCst);
    (1..online).for_each(|c| cpu::kick(cpu::CpuId(c)));
    while ACTIVE.load(Ordering::SeqCst) < online - 1 {
        cpu::relax();
    }
    for round in 0..300u64 {
        let new = Frame::alloc_zeroed().expect("a frame");
        let old = space.lookup(page(DATA)).expect("mapped").frame;
        match round % 3 {
            0 => {
                assert!(space.replace(page(DATA), old, new, WRITE).is_ok());
            }
            1 => {
                let (old, _) = space.take(page(DATA)).expect("mapped");
                old.store_u32(0, 1);
                assert!(space.map(page(DATA), new, READ).is_ok());
            }
            _ => {
                let range = PageRange::new(DATA, DATA + PAGE_SIZE as u64).expect("a page");
                let (kept, _) = space.frame(page(DATA)).expect("mapped");
                assert_eq!(space.unmap(range).expect("small").pages, 1);
                kept.store_u32(0, 1);
                assert!(space.map(page(DATA), new, WRITE).is_ok());
            }
        }
        let tables = space.table_frames();
        let far = Frame::alloc_zeroed().expect("a frame");
        assert!(space.map(page(FAR), far.clone(), READ).is_ok());
        assert_eq!(space.table_frames(), tables + 3);
        (0..1000).for_each(|_| cpu::relax());
        let whole = PageRange::new(FAR, FAR + (2 << 20)).expect("a table's worth");
        assert_eq!(space.unmap(whole).expect("small").pages, 1);
        far.store_u32(0, 1);
        assert_eq!(space.table_frames(), tables);
    }
    HAMMER.store(0, Ordering::SeqCst);
    while ACTIVE.load(Ordering::SeqCst) > 0 {
        cpu::relax();
    }
    say!("stale reads {}", STALE.load(Ordering::SeqCst));
    assert!(online == 1 || ROUNDS.load(Ordering::SeqCst) > 0, "no other processor read");
    assert_eq!(STALE.load(Ordering::SeqCst), 0);
}

/// What other processors do when woken.
pub(super) fn work() {
    if HAMMER.load(Ordering::SeqCst) == 0 {
        return;
    }
    START.current().set_space(SPACE.lock().clone());
    ACTIVE.fetch_add(1, Ordering::SeqCst);
    while HAMMER.load(Ordering::SeqCst) == 1 {
        // A frame is 0 as long as it is mapped.
        for at in [DATA, FAR] {
            if user::read::<u32>(UserAddr(at)) == Ok(1) {
                STALE.fetch_add(1, Ordering::SeqCst);
            }
        }
        ROUNDS.fetch_add(1, Ordering::Relaxed);
    }
    START.current().set_space(None);
    ACTIVE.fetch_sub(1, Ordering::SeqCst);
}
