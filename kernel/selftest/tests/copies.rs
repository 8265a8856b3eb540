//! Copies to and from user memory: exact counts at faults, nothing of the kernel reachable, faults resolved on the way.

use alloc::vec::Vec;

use machine::addr::{PAGE_SIZE, USER_END, UserAddr};
use machine::frame::Frame;
use machine::user::{self, Fault};

use crate::program::{self, CODE, DATA, LAZY, READ, page};
use crate::{START, say};

/// Runs in the test thread with a space of its own.
pub(super) fn copies() {
    let space = program::space(&[0xf4]);
    START.current().set_space(Some(space.clone()));
    *program::BORROWED.lock() = Some(space.clone());
    let end = UserAddr(DATA + PAGE_SIZE as u64);
    for len in [1, 7, 8, 9, 31, 32, 33, 63, 64, 65, 100, 255, 256, 257, 1000, 4096] {
        let pattern: Vec<u8> = (0..len).map(|i| (i * 7 + len) as u8).collect();
        let at = UserAddr(end.0 - len as u64);
        let mut back = alloc::vec![0; len];
        assert_eq!(user::write_bytes(at, &pattern), Ok(()));
        assert_eq!(user::read_bytes(at, &mut back), Ok(()));
        assert_eq!(back, pattern);
        // More than is mapped, by little and by much: exactly the mapped part is copied.
        for beyond in [1, 45, 127, 300] {
            let long = alloc::vec![1; len + beyond];
            assert_eq!(user::write_bytes(at, &long), Err(Fault { done: len }), "write of {len}");
            let mut long = alloc::vec![0; len + beyond];
            assert_eq!(user::read_bytes(at, &mut long), Err(Fault { done: len }), "read of {len}");
            assert!(long[..len].iter().all(|byte| *byte == 1), "read of {len}");
            assert_eq!(user::zero(at, len + beyond), Err(Fault { done: len }), "zero of {len}");
            assert_eq!(user::write_bytes(at, &alloc::vec![1; len]), Ok(()));
        }
    }
    say!("counts are exact");
    let mut byte = [0; 16];
    for at in [USER_END, USER_END - 8, u64::MAX - 3, 0xffff_ffff_8010_0000, 0xffff_8000_0000_0000, 1 << 47, 0] {
        assert!(user::read_bytes(UserAddr(at), &mut byte).is_err(), "read {at:#x}");
        assert!(user::write_bytes(UserAddr(at), &byte).is_err(), "wrote {at:#x}");
        assert!(user::read::<u64>(UserAddr(at)).is_err() && user::write(UserAddr(at), 1u32).is_err(), "{at:#x}");
        assert!(user::read_str(UserAddr(at), &mut byte).is_err(), "string at {at:#x}");
    }
    assert!(user::write(UserAddr(CODE), 1u8).is_err(), "wrote to read-only memory");
    say!("the kernel is out of reach");
    let lazy = UserAddr(LAZY.start + PAGE_SIZE as u64 - 300);
    assert_eq!(user::write_bytes(lazy, &[5; 600]), Ok(()));
    assert_eq!(user::read::<u8>(lazy.add(599)), Ok(5));
    let next = UserAddr(LAZY.start + 64 * PAGE_SIZE as u64);
    assert!(user::without_faulting(|| user::read::<u8>(next)).is_err(), "resolved when told not to");
    let lock = machine::sync::SpinLock::new(());
    let held = lock.lock();
    assert!(user::read::<u8>(next).is_err(), "resolved under a lock");
    drop(held);
    assert_eq!(user::read::<u8>(next), Ok(0));
    say!("faults are resolved on the way");
    words(DATA);
    strings(end);
    let frame = Frame::alloc_zeroed().expect("a frame");
    assert!(space.map(page(0x7fff_0000), frame.clone(), READ).is_ok());
    assert_eq!(frame.copy_to_user(0, UserAddr(0x7fff_0000), 8), Err(Fault { done: 0 }));
    START.current().set_space(None);
    assert!(user::read::<u8>(UserAddr(DATA)).is_err(), "the space is still there");
}

fn words(at: u64) {
    let at = UserAddr(at);
    assert_eq!(user::write(at, 0x1122_3344_5566_7788u64), Ok(()));
    assert_eq!((user::read::<u8>(at), user::read::<u16>(at.add(1))), (Ok(0x88), Ok(0x6677)));
    assert_eq!(user::read::<i64>(at), Ok(0x1122_3344_5566_7788));
    assert_eq!(user::compare_exchange_u32(at, 0x5566_7788, 9), Ok(0x5566_7788));
    assert_eq!(user::compare_exchange_u32(at, 0x5566_7788, 10), Ok(9));
    assert_eq!(user::load_u32(at), Ok(9));
    assert!(user::load_u32(at.add(2)).is_err() && user::compare_exchange_u32(at.add(1), 0, 0).is_err());
}

fn strings(end: UserAddr) {
    let at = UserAddr(end.0 - 6);
    let mut to = [0; 16];
    assert_eq!(user::write_bytes(at, b"hello\0"), Ok(()));
    assert_eq!(user::read_str(at, &mut to), Ok(Some(5)));
    assert_eq!(&to[..5], b"hello");
    assert_eq!(user::read_str(at, &mut to[..5]), Ok(None));
    assert_eq!(user::write_bytes(at, b"endles"), Ok(()));
    assert_eq!(user::read_str(at, &mut to), Err(Fault { done: 6 }));
    // Words are looked at whole: every length, place in a word and room, with the end of what is mapped close behind.
    for len in 0..20usize {
        for gap in [0, 1, 7, 9] {
            let at = UserAddr(end.0 - (len + 1 + gap) as u64);
            let text: Vec<u8> = (0..len).map(|i| [1, 0x7f, 0x80, 0xff, b'a'][i % 5]).chain([0]).collect();
            assert_eq!(user::write_bytes(at, &text), Ok(()));
            for room in 0..28 {
                let mut to = [0xaa; 40];
                let expected = if len < room { Some(len) } else { None };
                assert_eq!(user::read_str(at, &mut to[..room]), Ok(expected), "{len} bytes into {room}");
                assert_eq!(to[..len.min(room)], text[..len.min(room)], "{len} bytes into {room}");
                assert!(to[room..].iter().all(|byte| *byte == 0xaa), "{len} bytes beyond {room}");
            }
        }
    }
    say!("strings end where they end");
}

/// The moves the compiler calls by name: every size about the thresholds, every overlap, nothing beyond the ends.
pub(super) fn moves() {
    let pattern = |i: usize| (i * 31 + 7) as u8;
    for len in (0..70).chain(120..140).chain(250..270).chain(380..400).chain([511, 512, 513, 1000, 4096]) {
        let source: Vec<u8> = (0..len + 64).map(pattern).collect();
        for shift in [0, 1, 7] {
            let mut to = alloc::vec![0xaa; len + 64];
            to[shift..shift + len].copy_from_slice(&source[3..3 + len]);
            assert!(to[..shift].iter().chain(&to[shift + len..]).all(|b| *b == 0xaa), "copy of {len} beyond its ends");
            assert_eq!(to[shift..shift + len], source[3..3 + len], "copy of {len}");
            to[shift..shift + len].fill(core::hint::black_box(0x5c));
            assert!(to[shift..shift + len].iter().all(|b| *b == 0x5c), "fill of {len}");
            assert!(to[..shift].iter().chain(&to[shift + len..]).all(|b| *b == 0xaa), "fill of {len} beyond its ends");
        }
        for distance in [1, 8, 31, 33, 60] {
            let mut up = source.clone();
            up.copy_within(..len.min(source.len() - distance), distance);
            assert!(
                (0..len.min(source.len() - distance)).all(|i| up[i + distance] == pattern(i)),
                "up {len} by {distance}"
            );
            let mut down = source.clone();
            let count = len.min(source.len() - distance);
            down.copy_within(distance..distance + count, 0);
            assert!((0..count).all(|i| down[i] == pattern(i + distance)), "down {len} by {distance}");
            assert!((count..source.len()).all(|i| down[i] == pattern(i)), "down {len} beyond its end");
        }
    }
    say!("moves are exact");
}
