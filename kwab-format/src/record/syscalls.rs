//! Owns the records of system calls: entry and exit events, and the rings that a kernel keeps.

fields! {
    /// Event `syscall_entry`: a system call began.
    record SyscallEntry {
        /// Process that made the call.
        1 pid: u32,
        /// Thread that made the call.
        2 tid: u32,
        /// Number of the system call.
        3 nr: i64,
        /// Name as the source printed it.
        4 name: &'a [u8],
        /// First argument, as the register held it.
        5 arg0: u64,
        /// Second argument, as the register held it.
        6 arg1: u64,
        /// Third argument, as the register held it.
        7 arg2: u64,
        /// Fourth argument, as the register held it.
        8 arg3: u64,
        /// Fifth argument, as the register held it.
        9 arg4: u64,
        /// Sixth argument, as the register held it.
        10 arg5: u64,
    }
}

fields! {
    /// Event `syscall_exit`: a system call returned.
    record SyscallExit {
        /// Process that made the call.
        1 pid: u32,
        /// Thread that made the call.
        2 tid: u32,
        /// Number of the system call.
        3 nr: i64,
        /// Name as the source printed it.
        4 name: &'a [u8],
        /// What the call returned.
        5 result: i64,
        /// Name of the error as the source printed it.
        6 errno: &'a [u8],
        /// Nanoseconds since the entry.
        7 duration_ns: u64,
        /// What the first argument pointed at, or how it begins: a path, or strings that each end with a NUL.
        8 text0: &'a [u8],
        /// What the second argument pointed at, likewise.
        9 text1: &'a [u8],
        /// What the third argument pointed at, likewise.
        10 text2: &'a [u8],
        /// What the fourth argument pointed at, likewise.
        11 text3: &'a [u8],
        /// What the fifth argument pointed at, likewise.
        12 text4: &'a [u8],
        /// What the sixth argument pointed at, likewise.
        13 text5: &'a [u8],
        /// Bit n: what argument n pointed at goes on behind its text.
        14 texts_cut: u32,
    }
}

fields! {
    /// An entry of a ring of recent calls; the stamp is that of the call's entry.
    record SyscallRecord {
        /// Process that made the call.
        1 pid: u32,
        /// Thread that made the call.
        2 tid: u32,
        /// Number of the system call.
        3 nr: i64,
        /// Name as the source printed it.
        4 name: &'a [u8],
        /// First argument, as the register held it.
        5 arg0: u64,
        /// Second argument, as the register held it.
        6 arg1: u64,
        /// Third argument, as the register held it.
        7 arg2: u64,
        /// Fourth argument, as the register held it.
        8 arg3: u64,
        /// Fifth argument, as the register held it.
        9 arg4: u64,
        /// Sixth argument, as the register held it.
        10 arg5: u64,
        /// What the call returned; absent while it is in progress.
        11 result: i64,
        /// Nanoseconds from entry to exit.
        12 duration_ns: u64,
        /// Time-stamp counter ticks from entry to exit.
        13 duration_ticks: u64,
        /// Whether the call had not returned.
        14 in_progress: bool,
        /// Position in the ring as printed.
        15 index: u64,
        /// What the first argument points at, or how it begins: a path, or strings that each end with a NUL.
        16 text0: &'a [u8],
        /// What the second argument points at, likewise.
        17 text1: &'a [u8],
        /// What the third argument points at, likewise.
        18 text2: &'a [u8],
        /// What the fourth argument points at, likewise.
        19 text3: &'a [u8],
        /// What the fifth argument points at, likewise.
        20 text4: &'a [u8],
        /// What the sixth argument points at, likewise.
        21 text5: &'a [u8],
        /// Bit n: what argument n points at goes on behind its text.
        22 texts_cut: u32,
    }
}

fields! {
    /// Event `unimplemented_syscall`: a system call that the kernel does not have.
    record UnimplementedSyscall {
        /// Process that made the call.
        1 pid: u32,
        /// Number of the system call.
        2 nr: i64,
        /// Name as the source printed it.
        3 name: &'a [u8],
    }
}

macro_rules! args {
    ($($name:ident)*) => {$(
        impl<'a> $name<'a> {
            /// The six arguments; those that the source did not say are `None`.
            #[must_use]
            pub const fn args(&self) -> [Option<u64>; 6] {
                [self.arg0, self.arg1, self.arg2, self.arg3, self.arg4, self.arg5]
            }

            /// The same record with these arguments.
            #[must_use]
            pub const fn with_args(mut self, args: [Option<u64>; 6]) -> Self {
                [self.arg0, self.arg1, self.arg2, self.arg3, self.arg4, self.arg5] = args;
                self
            }
        }
    )*};
}
args!(SyscallEntry SyscallRecord);

macro_rules! texts {
    ($($name:ident)*) => {$(
        impl<'a> $name<'a> {
            /// What the six arguments point at, where that was recorded, and whether it goes on behind that.
            #[must_use]
            pub fn texts(&self) -> [Option<(&'a [u8], bool)>; 6] {
                let texts = [self.text0, self.text1, self.text2, self.text3, self.text4, self.text5];
                let mut cut = self.texts_cut.unwrap_or(0);
                texts.map(|text| {
                    let goes_on = cut & 1 != 0;
                    cut >>= 1;
                    text.map(|text| (text, goes_on))
                })
            }
        }
    )*};
}
texts!(SyscallExit SyscallRecord);
