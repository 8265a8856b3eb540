//! Decides on which stack a signal's handler runs, where its frame lies, and which alternate stack is refused.
//!
//! A frame is, from high to low, the floating-point state as the processor writes it, 64-byte aligned, and the words of
//! the frame proper. Its size is the processor's: with AVX-512 it is more than an alternate stack must have. Source:
//! sigaltstack(2), the System V ABI's stack alignment and red zone.

use linux_abi::Errno;
use linux_abi::flags::process::{SS_AUTODISARM, SS_DISABLE, SS_ONSTACK};

/// An alternate signal stack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AltStack {
    /// Lowest user address.
    pub base: u64,
    /// Bytes; 0 when there is none.
    pub size: u64,
    /// The entry of a handler disables it (`SS_AUTODISARM`).
    pub auto_disarm: bool,
}

/// Least bytes of an alternate stack (`MINSIGSTKSZ`).
pub const LEAST: u64 = 2048;
/// Bytes below the stack pointer that belong to the interrupted function.
const RED_ZONE: u64 = 128;

impl AltStack {
    /// The stack that replaces this one by the words of a `stack_t` (base, flags and size), set with the stack pointer
    /// at `sp`. EPERM while this one is used, EINVAL for unknown flags, ENOMEM for fewer bytes than [`LEAST`]: as on
    /// Linux whatever the processor's registers need.
    pub fn replaced_by(&self, [base, flags, size]: [u64; 3], sp: u64) -> Result<Self, Errno> {
        if self.is_used_at(sp) {
            return Err(Errno::EPERM);
        }
        let flags = flags & 0xffff_ffff;
        match (flags & !SS_AUTODISARM, size) {
            (SS_DISABLE, _) => Ok(Self::default()),
            (0 | SS_ONSTACK, ..LEAST) => Err(Errno::ENOMEM),
            (0 | SS_ONSTACK, _) => Ok(Self { base, size, auto_disarm: flags & SS_AUTODISARM != 0 }),
            _ => Err(Errno::EINVAL),
        }
    }

    /// Whether a program with the stack pointer `sp` uses it. One that disarms itself never counts as used.
    pub fn is_used_at(&self, sp: u64) -> bool {
        !self.auto_disarm && self.holds(sp)
    }

    /// `ss_flags` as `sigaltstack` reports them.
    pub fn flags(&self, sp: u64) -> u64 {
        let on = if self.size == 0 {
            SS_DISABLE
        } else if self.is_used_at(sp) {
            SS_ONSTACK
        } else {
            0
        };
        on | if self.auto_disarm { SS_AUTODISARM } else { 0 }
    }

    /// Where the frame of a handler lies that interrupts a program with the stack pointer `sp`; `wanted` if the handler
    /// is to run on this stack (`SA_ONSTACK`). `None` if it would reach below this stack, whose end the program did not
    /// say may be passed.
    pub fn fit(&self, sp: u64, wanted: bool, size: FrameSize) -> Option<FrameAddress> {
        let below = sp.wrapping_sub(RED_ZONE);
        let enters = wanted && self.size != 0 && !self.is_used_at(below);
        let top = if enters { self.base.wrapping_add(self.size) } else { below };
        let fpu = top.wrapping_sub(size.fpu) & !63;
        // As after a call: the return address is 8 below a multiple of 16.
        let frame = (fpu.wrapping_sub(size.words) & !15).wrapping_sub(8);
        let bound = enters || self.is_used_at(sp);
        (!bound || self.holds(frame)).then_some(FrameAddress { fpu, sp: frame })
    }

    fn holds(&self, sp: u64) -> bool {
        self.size != 0 && sp.wrapping_sub(1).wrapping_sub(self.base) < self.size
    }
}

/// Bytes of the two parts of a signal frame.
#[derive(Clone, Copy, Debug)]
pub struct FrameSize {
    /// The floating-point state.
    pub fpu: u64,
    /// The words: return address, `struct ucontext` and `siginfo_t`.
    pub words: u64,
}

/// Where a signal frame lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameAddress {
    /// User address of the floating-point state.
    pub fpu: u64,
    /// User address of the rest; the handler's stack pointer.
    pub sp: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    const AVX: FrameSize = FrameSize { fpu: 836, words: 440 };
    const AVX_512: FrameSize = FrameSize { fpu: 2700, words: 440 };
    const ELSEWHERE: u64 = 0x7fff_0000;

    fn stack(size: u64) -> AltStack {
        AltStack { base: 0x10000, size, auto_disarm: false }
    }

    #[test]
    fn a_frame_with_wide_registers_is_not_written_below_a_stack_of_the_least_size() {
        for auto_disarm in [false, true] {
            let least = AltStack { auto_disarm, ..stack(LEAST) };
            assert!(least.fit(ELSEWHERE, true, AVX).is_some_and(|frame| frame.sp > least.base));
            assert_eq!(least.fit(ELSEWHERE, true, AVX_512), None);
            assert!(least.fit(ELSEWHERE, false, AVX_512).is_some_and(|frame| frame.sp > ELSEWHERE - 4096));
        }
        let enough = stack(LEAST + 2048).fit(ELSEWHERE, true, AVX_512);
        assert!(enough.is_some_and(|frame| frame.sp > 0x10000 && frame.fpu + AVX_512.fpu <= 0x10000 + LEAST + 2048));
    }

    #[test]
    fn frames_on_a_stack_follow_each_other_to_its_end_and_no_further() {
        let stack = stack(8192);
        let mut sp = ELSEWHERE;
        let mut frames = 0;
        while let Some(frame) = stack.fit(sp, true, AVX) {
            assert!(frame.sp > stack.base && frame.sp % 16 == 8 && frame.fpu % 64 == 0);
            sp = frame.sp;
            frames += 1;
        }
        assert_eq!(frames, 5);
        assert_eq!(stack.fit(sp, false, AVX), None, "without SA_ONSTACK it goes on where it is");
    }

    #[test]
    fn a_stack_is_refused_in_the_order_of_sigaltstack() {
        let used = stack(8192);
        assert_eq!(used.replaced_by([0, 77, 0], 0x11000), Err(Errno::EPERM));
        assert_eq!(used.replaced_by([0, 77, 0], ELSEWHERE), Err(Errno::EINVAL));
        assert_eq!(used.replaced_by([0, SS_ONSTACK, LEAST - 1], ELSEWHERE), Err(Errno::ENOMEM));
        assert_eq!(used.replaced_by([0, SS_DISABLE, 1], ELSEWHERE), Ok(AltStack::default()));
        let disarms = used.replaced_by([5, SS_AUTODISARM, LEAST], ELSEWHERE).unwrap();
        assert_eq!((disarms.size, disarms.flags(6)), (LEAST, SS_AUTODISARM));
        assert!(disarms.replaced_by([0, SS_DISABLE, 0], 6).is_ok(), "one that disarms itself is never in use");
    }
}
