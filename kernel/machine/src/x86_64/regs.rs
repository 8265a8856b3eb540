//! The register files: what a trap saves, and what signals and dumps spell.

/// All general registers with instruction pointer, flags and segments, by their x86-64 names.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(C)]
#[expect(missing_docs, reason = "the names are the registers")]
pub struct Registers {
    pub r15: u64,
    pub r14: u64,
    pub r13: u64,
    pub r12: u64,
    pub rbp: u64,
    pub rbx: u64,
    pub r11: u64,
    pub r10: u64,
    pub r9: u64,
    pub r8: u64,
    pub rax: u64,
    pub rcx: u64,
    pub rdx: u64,
    pub rsi: u64,
    pub rdi: u64,
    /// System call number at entry, or -1 when the entry was not a system call.
    pub orig_rax: u64,
    pub rip: u64,
    pub cs: u64,
    pub rflags: u64,
    pub rsp: u64,
    pub ss: u64,
}

/// The user registers of the running thread, on its kernel stack. Whatever is stored in it, returning to user mode is safe:
/// segments and privileged flags are not the caller's to choose.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct UserFrame {
    regs: Registers,
}

impl UserFrame {
    /// A program's start: everything 0 but these.
    pub fn new(ip: u64, sp: u64) -> Self {
        let mut frame = Self { regs: Registers::default() };
        frame.set_ip(ip);
        frame.set_sp(sp);
        frame
    }

    /// The system call number at entry; `None` when the entry was a trap or interrupt.
    #[inline]
    pub fn syscall(&self) -> Option<u64> {
        if (self.regs.orig_rax as i64) < 0 { None } else { Some(self.regs.orig_rax) }
    }

    /// The six arguments, as at entry.
    #[inline]
    pub fn args(&self) -> [u64; 6] {
        [self.regs.rdi, self.regs.rsi, self.regs.rdx, self.regs.r10, self.regs.r8, self.regs.r9]
    }

    /// The result register.
    #[inline]
    pub fn result(&self) -> u64 {
        self.regs.rax
    }

    /// Set the result register.
    #[inline]
    pub fn set_result(&mut self, value: u64) {
        self.regs.rax = value;
    }

    /// Go back to the system call instruction with its number restored, to run it again.
    pub fn restart_syscall(&mut self) {
        self.regs.rax = self.regs.orig_rax;
        self.set_ip(self.regs.rip.wrapping_sub(2));
    }

    /// No longer a system call: a later check will not restart it.
    pub fn forget_syscall(&mut self) {
        self.regs.orig_rax = u64::MAX;
    }

    /// Instruction pointer.
    #[inline]
    pub fn ip(&self) -> u64 {
        self.regs.rip
    }

    /// Set it.
    pub fn set_ip(&mut self, ip: u64) {
        self.regs.rip = ip;
    }

    /// Stack pointer.
    #[inline]
    pub fn sp(&self) -> u64 {
        self.regs.rsp
    }

    /// Set it.
    pub fn set_sp(&mut self, sp: u64) {
        self.regs.rsp = sp;
    }

    /// Set the `index`th of the three function-call argument registers (signal handlers).
    pub fn set_call_arg(&mut self, index: usize, value: u64) {
        match index {
            0 => self.regs.rdi = value,
            1 => self.regs.rsi = value,
            _ => self.regs.rdx = value,
        }
    }

    /// All of them.
    pub fn registers(&self) -> &Registers {
        &self.regs
    }

    /// Replace all of them from a source a program controls: segments stay the user's, of the flags only those a program may
    /// change are taken.
    pub fn set_registers(&mut self, regs: &Registers) {
        self.regs = *regs;
    }
}
