//! The program's stack canary around every call (`debug=canary`): a call that changes it has written where it must not.
//!
//! C libraries keep it 40 bytes into the thread's control block (the x86-64 ABI of gcc's stack protector). It is read
//! without faulting anything in; a call that moves the thread pointer (`arch_prctl`) has another canary afterwards, and
//! is not compared.

use linux_abi::syscalls;
use machine::crash::probe_read;
use machine::thread::running;

use super::Traced;
use super::event::Event;
use crate::upper::try_current;

/// Offset of the canary from the thread pointer.
const CANARY_AT: u64 = 0x28;

/// The canary on the way in.
pub struct Seen {
    thread_pointer: u64,
    value: u64,
}

/// The running thread's canary; `None` without a thread pointer, or where its page is not in memory.
pub fn look() -> Option<Seen> {
    let thread_pointer = running::tls();
    let mut bytes = [0; 8];
    let there = thread_pointer != 0 && probe_read(thread_pointer.wrapping_add(CANARY_AT), &mut bytes) == bytes.len();
    there.then(|| Seen { thread_pointer, value: u64::from_le_bytes(bytes) })
}

/// On the way out of call `nr`: writes `canary_check`.
#[inline(never)]
pub fn compare(before: &Seen, nr: u64) {
    let Some(after) = look().filter(|after| after.thread_pointer == before.thread_pointer) else { return };
    let mut event = Event::new("canary_check");
    event.number("pid", try_current().map_or(0, |task| task.ids() >> 32));
    event.address("fsbase", after.thread_pointer).address("expected", before.value).address("found", after.value);
    event.flag("corrupted", after.value != before.value).string("when", b"post_syscall");
    event.string("syscall", syscalls::by_number(nr).map_or("unknown", |call| call.name).as_bytes());
    event.emit();
}
