//! Tests of the signal rules.

use super::*;

/// A queue of `limit` entries at most.
struct Queue {
    pending: Pending<()>,
    limit: usize,
}

impl Queue {
    fn of(limit: usize) -> Self {
        Self { pending: Pending::new(), limit }
    }

    fn push(&mut self, info: SigInfo) -> bool {
        let room = self.pending.len() < self.limit;
        self.pending.push(info, |limit| (room || limit == Limit::Lifted).then_some(()))
    }
}

fn info(signal: u8, value: u64) -> SigInfo {
    SigInfo { signal, code: code::QUEUE, errno: 0, cause: Cause::Value { pid: 1, uid: 0, value } }
}

#[test]
fn ordinary_signals_merge_and_real_time_ones_queue_in_order() {
    let mut pending = Queue::of(100);
    for value in 0..3 {
        assert!(pending.push(info(sig::USR1, value)));
        assert!(pending.push(info(40, value)));
    }
    assert_eq!(pending.pending.take(SigSet(!0)), Some(info(sig::USR1, 0)));
    for value in 0..3 {
        assert_eq!(pending.pending.take(SigSet(!0)), Some(info(40, value)));
    }
    assert_eq!(pending.pending.take(SigSet(!0)), None);
    assert!(pending.pending.is_empty());
    assert_eq!(pending.pending.take(SigSet(!0)), None);
}

#[test]
fn a_full_queue_refuses_real_time_signals_but_never_loses_an_ordinary_one() {
    let mut pending = Queue::of(1);
    assert!(pending.push(info(40, 0)));
    assert!(!pending.push(info(40, 1)));
    assert!(pending.push(info(sig::TERM, 0)));
    assert_eq!(pending.pending.take(SigSet(!0)).unwrap().signal, sig::TERM);
    assert_eq!(pending.pending.take(SigSet(!0)), Some(info(40, 0)));
}

#[test]
fn signals_of_timers_go_with_their_timers_and_others_stay() {
    let timer = |signal| SigInfo {
        signal,
        code: code::TIMER,
        errno: 0,
        cause: Cause::Timer { id: 1, overrun: 0, value: 0, setting: 0 },
    };
    let mut pending = Queue::of(100);
    for info in [timer(sig::USR1), timer(40), info(40, 7), info(sig::TERM, 0)] {
        assert!(pending.push(info));
    }
    pending.pending.discard_timers();
    assert_eq!(pending.pending.set(), SigSet::only(40).with(SigSet::only(sig::TERM)));
    assert_eq!(pending.pending.take(SigSet::only(40)), Some(info(40, 7)));
    assert_eq!(pending.pending.len(), 1);
}

#[test]
fn a_real_time_signal_of_kill_is_pending_even_without_room_for_its_info() {
    let mut pending = Queue::of(0);
    assert!(pending.push(SigInfo { code: code::USER, ..info(40, 0) }));
    assert!(!pending.push(info(41, 0)));
    assert_eq!(pending.pending.take(SigSet(!0)).map(|info| info.signal), Some(40));
}

#[test]
fn an_ordinary_signal_of_the_kernel_keeps_its_info_however_many_wait() {
    let mut pending = Queue::of(0);
    let fault = SigInfo::fault(sig::SEGV, code::SEGV_MAPERR, 16);
    assert!(pending.push(fault.clone()) && pending.push(info(sig::USR1, 7)));
    assert_eq!(pending.pending.len(), 1, "sigqueue's is only a bit");
    assert_eq!(pending.pending.take(SigSet(!0)), Some(fault));
    assert_eq!(pending.pending.take(SigSet(!0)).map(|info| info.cause), Some(Cause::None));
}

#[test]
fn a_fault_is_delivered_before_an_earlier_hangup() {
    let mut pending = Queue::of(100);
    pending.push(SigInfo::kernel(sig::HUP));
    pending.push(SigInfo::fault(sig::SEGV, code::SEGV_MAPERR, 16));
    assert_eq!(pending.pending.take(SigSet(!0)).unwrap().signal, sig::SEGV);
    assert_eq!(pending.pending.take(SigSet::only(sig::INT)), None);
}

#[test]
fn init_survives_what_it_did_not_ask_for() {
    let default = Disposition::default();
    for signal in 1..=MAX_SIGNAL {
        assert_eq!(deliver(signal, &default, true), Delivery::Drop, "signal {signal}");
    }
    let handled = Disposition { handler: 0x1000, ..default };
    assert_eq!(deliver(sig::TERM, &handled, true), Delivery::Handle(handled));
    assert_eq!(deliver(sig::KILL, &handled, false), Delivery::Kill { core: false });
}

#[test]
fn interrupted_calls_restart_only_where_linux_restarts_them() {
    assert_eq!(resume(Interrupted::Restart, Some(sa::RESTART)), Resume::Again);
    assert_eq!(resume(Interrupted::Restart, Some(0)), Resume::Fail);
    assert_eq!(resume(Interrupted::UnlessHandled, Some(sa::RESTART)), Resume::Fail);
    assert_eq!(resume(Interrupted::Block, Some(sa::RESTART)), Resume::Fail);
    assert_eq!(resume(Interrupted::Block, None), Resume::RestartBlock);
    assert_eq!(resume(Interrupted::Always, Some(0)), Resume::Again);
}

#[test]
fn a_siginfo_survives_its_wire_form() {
    let encoded = SigInfo::fault(sig::SEGV, code::SEGV_ACCERR, 0x1234_5678_9abc).words();
    assert_eq!(encoded[..3], [11, 2, 0x1234_5678_9abc]);
    let again = SigInfo::decode(&encoded, sig::SEGV).words();
    assert_eq!(encoded, again);
}

#[test]
fn default_actions_end_stop_or_do_nothing_and_ignoring_beats_them() {
    let default = Disposition::default();
    let ignored = Disposition { handler: SIG_IGN, ..default };
    let handled = Disposition { handler: 0x1000, ..default };
    assert_eq!(deliver(sig::TERM, &default, false), Delivery::Kill { core: false });
    assert_eq!(deliver(sig::SEGV, &default, false), Delivery::Kill { core: true });
    assert_eq!(deliver(sig::TSTP, &default, false), Delivery::Stop);
    assert_eq!(deliver(sig::STOP, &handled, false), Delivery::Stop);
    assert_eq!(deliver(sig::CHLD, &default, false), Delivery::Drop);
    assert_eq!(deliver(sig::SEGV, &ignored, false), Delivery::Drop);
    assert!(default.ignores(sig::CHLD) && !default.ignores(sig::TERM));
    assert!(ignored.ignores(sig::TERM) && !handled.ignores(sig::CHLD));
}

#[test]
fn discarded_signals_are_gone_and_the_others_stay_in_order() {
    let mut pending = Queue::of(100);
    for signal in [sig::TSTP, 40, sig::CONT, 40] {
        assert!(pending.push(info(signal, u64::from(signal))));
    }
    pending.pending.discard(SigSet::only(sig::CONT));
    assert!(!pending.pending.set().has(sig::CONT) && pending.pending.set().has(sig::TSTP));
    pending.pending.discard(SigSet::only(50));
    assert_eq!(pending.pending.len(), 3);
    assert_eq!(pending.pending.take(SigSet::only(40)).map(|info| info.signal), Some(40));
    assert_eq!(pending.pending.len(), 2);
}

#[test]
fn a_timers_signal_waits_once_beside_an_ordinary_one_and_counts_for_its_last_setting() {
    let timer = |id, setting| SigInfo {
        signal: sig::USR1,
        code: code::TIMER,
        errno: 0,
        cause: Cause::Timer { id, overrun: 0, value: 7, setting },
    };
    let wanted = SigSet::only(sig::USR1);
    let mut pending = Queue::of(1);
    assert!(pending.push(info(sig::USR1, 0)));
    assert!(pending.push(timer(1, 1)) && pending.push(timer(2, 1)) && pending.push(timer(1, 2)));
    assert_eq!(pending.pending.take(wanted).map(|info| info.cause), Some(info(sig::USR1, 0).cause));
    assert!(pending.pending.set().has(sig::USR1), "the timers' signals still wait");
    let first = Cause::Timer { id: 1, overrun: 1, value: 7, setting: 2 };
    assert_eq!(pending.pending.take(wanted).map(|info| info.cause), Some(first));
    assert_eq!(pending.pending.take(wanted).map(|info| info.cause), Some(timer(2, 1).cause));
    assert!(pending.pending.is_empty());
}

/// Offsets of the union's members in siginfo_t (asm-generic/siginfo.h, 64 bit).
#[test]
fn every_cause_has_its_fields_where_programs_look() {
    let bytes = |cause| {
        let info = SigInfo { signal: sig::USR1, code: -1, errno: 5, cause };
        info.words().map(u64::to_le_bytes).as_flattened().to_vec()
    };
    let word = |bytes: &[u8], at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    let long = |bytes: &[u8], at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
    let none = bytes(Cause::None);
    assert_eq!((word(&none, 0), word(&none, 4), word(&none, 8)), (u32::from(sig::USR1), 5, u32::MAX));
    assert!(none[16..].iter().all(|byte| *byte == 0));
    let sender = bytes(Cause::Sender { pid: 7, uid: 1000 });
    assert_eq!((word(&sender, 16), word(&sender, 20)), (7, 1000));
    let value = bytes(Cause::Value { pid: 7, uid: 1000, value: 1 << 40 });
    assert_eq!((word(&value, 16), word(&value, 20), long(&value, 24)), (7, 1000, 1 << 40));
    let timer = bytes(Cause::Timer { id: 3, overrun: 9, value: 11, setting: u64::MAX });
    assert_eq!((word(&timer, 16), word(&timer, 20), long(&timer, 24)), (3, 9, 11));
    let child = bytes(Cause::Child { pid: 7, uid: 1, status: 2, utime: 3, stime: 4 });
    assert_eq!((word(&child, 24), long(&child, 32), long(&child, 40)), (2, 3, 4));
    let poll = bytes(Cause::Poll { band: 1, fd: -2 });
    assert_eq!((long(&poll, 16), word(&poll, 24)), (1, -2i32 as u32));
}
