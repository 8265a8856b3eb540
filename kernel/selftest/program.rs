//! Programs of a few machine instructions, the threads that run them, and the few system calls they may make.
//!
//! Calls: 0 say(rdi), 1 yield, 2 exit(rdi), 3 nothing, 4 exchange the first vector register's image in memory,
//! 5 to 7 what [`crate::tests::guards`] says. Pages at [`CODE`] and [`DATA`]; a fault in [`LAZY`] maps a page of zeros.

use alloc::collections::VecDeque;
use alloc::sync::Arc;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use machine::addr::{USER_END, UserAddr, UserPage};
use machine::arch::UserFrame;
use machine::frame::Frame;
use machine::space::{Prot, UserSpace};
use machine::sync::SpinLock;
use machine::thread::{FpuStart, Thread, UserStart, running};
use machine::trap::{PageFault, UserTrap};
use machine::user;

use crate::tests::guards;
use crate::{START, say};

pub(crate) const CODE: u64 = 0x40_0000;
pub(crate) const DATA: u64 = 0x50_0000;
/// Pages from here on are mapped when touched.
pub(crate) const LAZY: core::ops::Range<u64> = 0x6000_0000..0x7000_0000;

pub(crate) const READ: Prot = Prot { read: true, write: false, exec: false, tag: 0 };
pub(crate) const WRITE: Prot = Prot { read: true, write: true, exec: false, tag: 1 };
pub(crate) const EXEC: Prot = Prot { read: true, write: false, exec: true, tag: 2 };

/// What this kernel knows of a thread.
pub(crate) struct Task {
    pub(crate) name: &'static str,
    pub(crate) space: Option<Arc<UserSpace>>,
}

/// The space a kernel thread runs in for the length of a test.
pub(crate) static BORROWED: SpinLock<Option<Arc<UserSpace>>> = SpinLock::new(None);

/// Programs that say something leave the time in `MARKS` instead: the last two.
pub(crate) static QUIET: AtomicBool = AtomicBool::new(false);
pub(crate) static MARKS: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];

type Handle = Arc<Thread<Task>>;

/// Threads waiting for a turn on the first processor.
static READY: SpinLock<VecDeque<Handle>> = SpinLock::new(VecDeque::new());

/// The page at an address a test made up.
pub(crate) fn page(at: u64) -> UserPage {
    UserPage::new(at).expect("a page of the user half")
}

/// A space with `code` at [`CODE`] and one page of zeros at [`DATA`].
pub(crate) fn space(code: &[u8]) -> Arc<UserSpace> {
    let space = UserSpace::new().expect("a frame for the root");
    let text = Frame::alloc_zeroed().expect("a frame");
    text.write(0, code);
    assert!(space.map(page(CODE), text, EXEC).is_ok(), "code does not map");
    assert!(space.map(page(DATA), Frame::alloc_zeroed().expect("a frame"), WRITE).is_ok(), "data does not map");
    space
}

/// Make a thread that runs the code of `space`, with `argument` in the first argument register.
pub(crate) fn spawn(name: &'static str, space: &Arc<UserSpace>, argument: u64) -> Handle {
    let mut frame = UserFrame::new(CODE, DATA + 0xff0);
    frame.call(CODE, DATA + 0xff0, [argument, 0, 0]);
    let start = UserStart { frame: &frame, tls: 0, fpu: FpuStart::Fresh, space: Some(Arc::clone(space)) };
    Thread::user(Task { name, space: Some(Arc::clone(space)) }, &start).expect("memory for a thread")
}

/// A kernel thread.
pub(crate) fn spawn_kernel(name: &'static str, entry: fn() -> !) -> Handle {
    Thread::kernel(Task { name, space: None }, entry).expect("memory for a thread")
}

/// Queue a thread.
pub(crate) fn ready(thread: Handle) {
    READY.lock_irq().push_back(thread);
}

/// Let the next thread in the queue run, this one going to its end.
pub(crate) fn yield_now() {
    let Some(next) = READY.lock_irq().pop_front() else { return };
    READY.lock_irq().push_back(START.current().to_arc());
    START.switch_to(&next).expect("threads in the queue are parked");
}

/// End this thread.
pub(crate) fn exit() -> ! {
    let next = READY.lock_irq().pop_front().expect("the test itself waits in the queue");
    START.exit_to(next)
}

/// The system calls.
pub(crate) fn syscall(frame: &mut UserFrame) {
    let [first, ..] = frame.args();
    match frame.syscall_number() {
        0 if QUIET.load(Ordering::Relaxed) => {
            MARKS[0].store(MARKS[1].load(Ordering::Relaxed), Ordering::Relaxed);
            MARKS[1].store(machine::time::cycles(), Ordering::Relaxed);
        }
        0 => say!("{}: says {first:#x}", START.current().name),
        1 => yield_now(),
        2 => {
            if !QUIET.load(Ordering::Relaxed) {
                say!("{}: exits with {first:#x}", START.current().name);
            }
            exit();
        }
        4 => exchange_vector(),
        5 => guards::note_flags(),
        6 => guards::moves(),
        7 => guards::compare(),
        _ => {}
    }
    frame.set_result(frame.syscall_number() + 0x100);
}

/// What a signal frame does: the FPU state goes to user memory, is changed there, and comes back; an unsound image is
/// refused, and the state is the initial one then.
fn exchange_vector() {
    const XMM0: usize = 160;
    const HEADER_RESERVED: usize = 512 + 16;
    let at = UserAddr(DATA + 0x400);
    running::save_fpu(at).expect("the page is there");
    say!("{}: saved {:#x}", START.current().name, user::read::<u64>(at.add(XMM0)).unwrap_or(0));
    assert_eq!(user::write(at.add(XMM0), 0x5555u64), Ok(()));
    assert_eq!(user::write(at.add(HEADER_RESERVED), 1u64), Ok(()));
    say!("unsound refused: {}", running::load_fpu(at).is_err());
    assert_eq!(user::write(at.add(HEADER_RESERVED), 0u64), Ok(()));
    assert!(
        running::load_fpu(UserAddr(8)).is_err() && running::save_fpu(UserAddr(8)).is_err(),
        "nothing is mapped there"
    );
    assert!(running::save_fpu(UserAddr(LAZY.start)).is_ok(), "the page could have been mapped");
    let found =
        running::save_fpu(UserAddr(LAZY.start)).and_then(|()| user::read::<u64>(UserAddr(LAZY.start).add(XMM0)));
    say!("state after a refusal: {:#x}", found.unwrap_or(1));
    assert!(running::load_fpu(at).is_ok());
}

/// Name the trap and end the thread.
pub(crate) fn trap(frame: &mut UserFrame, trap: UserTrap) {
    say!("{}: trapped at +{:#x}: {trap:?}", START.current().name, frame.ip().wrapping_sub(CODE));
    exit();
}

/// Map a page of zeros where laziness is allowed.
pub(crate) fn fault(fault: &PageFault) -> bool {
    if fault.present || fault.addr.0 >= USER_END || !LAZY.contains(&fault.addr.0) {
        return false;
    }
    let (Some(page), Ok(frame)) = (fault.addr.page(), Frame::alloc_zeroed()) else { return false };
    let current = START.current();
    let borrowed = BORROWED.lock().clone();
    current.space.as_ref().or(borrowed.as_ref()).is_some_and(|space| space.map(page, frame, WRITE).is_ok())
}
