//! What calls read from programs and write to them, beside the addresses in their arguments: structures, and how
//! buffers begin. Recorded in the thread's ring while the category `buffers` is on, for dumps and for the event at a
//! call's end.
//!
//! Memory is read as a tracer reads it: what goes in before the call, what comes out when it has returned without an
//! error. A page that is not there is left alone, and its bytes are not recorded then.

use kernel_logic::recorder::calls::CallRing;
use kernel_logic::recorder::texts::{JOINED_BYTES, KEPT_BYTES};
use linux_abi::syscalls::pointee::{Layout, Pointee, Way};
use linux_abi::syscalls::{self, ArgKind};
use machine::addr::UserAddr;
use machine::user;

use super::Traced as _;
use crate::upper::current;

/// What the call that begins now reads.
#[cold]
pub fn before(nr: u64, args: &[u64; 6]) {
    each(nr, args, |pointee| pointee.way != Way::Out, None, CallRing::text_ahead);
}

/// What the call that ended with this result wrote.
#[cold]
pub fn after(nr: u64, args: &[u64; 6], result: i64) {
    if let Ok(returned) = u64::try_from(result) {
        each(nr, args, |pointee| pointee.way != Way::In, Some(returned), CallRing::text);
    }
}

/// Puts an address, how the bytes there begin and how many they are.
type Put = fn(&CallRing, u64, &[u8; KEPT_BYTES], usize);

fn each(nr: u64, args: &[u64; 6], wanted: impl Fn(&Pointee) -> bool, returned: Option<u64>, put: Put) {
    let Some(call) = syscalls::by_number(nr) else { return };
    let known = args.map(Some);
    for (at, arg) in call.args.iter().enumerate() {
        if args[at] == 0 || !matches!(arg.kind, ArgKind::Ptr) {
            continue;
        }
        let Some(pointee) = Pointee::of(call.name, at, &known).filter(&wanted) else { continue };
        if let Some(size) = size(&pointee, args, returned) {
            record(args[at], size, pointee.layout, put);
        }
    }
}

/// How many bytes lie there.
fn size(pointee: &Pointee, args: &[u64; 6], returned: Option<u64>) -> Option<usize> {
    let known = args.map(Some);
    pointee.size(&known, returned).or_else(|| {
        let length = pointee.length_at(&known)?;
        let length = user::without_faulting(|| user::read::<u32>(UserAddr(length))).ok()?;
        Some((length as usize).min(pointee.layout.size())).filter(|length| *length > 0)
    })
}

fn record(addr: u64, size: usize, layout: Layout, put: Put) {
    let mut bytes = [0; JOINED_BYTES];
    let most = if layout == Layout::Buffer { KEPT_BYTES } else { JOINED_BYTES };
    let held = &mut bytes[..size.min(most)];
    if user::without_faulting(|| user::read_bytes(UserAddr(addr), held)).is_err() {
        return;
    }
    let task = current();
    let calls = task.calls();
    let (first, second) = bytes.split_at(KEPT_BYTES);
    // The second piece first: who finds the first looks for it.
    if let (true, Some(second)) = (size.min(most) > KEPT_BYTES, second.first_chunk()) {
        put(calls, addr.wrapping_add(KEPT_BYTES as u64), second, size - KEPT_BYTES);
    }
    if let Some(first) = first.first_chunk() {
        put(calls, addr, first, size);
    }
}
