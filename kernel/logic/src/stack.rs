//! Decides what a new program finds on its stack: strings, argument and environment pointers, auxiliary vector.
//!
//! Layout, from high to low (System V ABI x86_64, "Initial Stack and Register State"): an 8-byte zero, the executable's
//! name, environment strings, argument strings, platform string and random bytes, padding, then what the stack pointer
//! points to: argc, argv, NULL, envp, NULL, auxv. The result is one block of bytes and the address it belongs at.

use alloc::vec::Vec;

/// Auxiliary vector keys (`getauxval(3)`).
pub mod at {
    /// Address of the program headers.
    pub const PHDR: u64 = 3;
    /// Size of one.
    pub const PHENT: u64 = 4;
    /// Number of program headers.
    pub const PHNUM: u64 = 5;
    /// Bytes of a page.
    pub const PAGESZ: u64 = 6;
    /// Base of the interpreter.
    pub const BASE: u64 = 7;
    /// Flags, always 0.
    pub const FLAGS: u64 = 8;
    /// Entry of the program itself.
    pub const ENTRY: u64 = 9;
    /// Real user id.
    pub const UID: u64 = 11;
    /// Effective user id.
    pub const EUID: u64 = 12;
    /// Real group id.
    pub const GID: u64 = 13;
    /// Effective group id.
    pub const EGID: u64 = 14;
    /// Address of the platform's name, such as `x86_64`.
    pub const PLATFORM: u64 = 15;
    /// CPU capabilities (CPUID 1 EDX on x86_64).
    pub const HWCAP: u64 = 16;
    /// Ticks per second of times(2).
    pub const CLKTCK: u64 = 17;
    /// Whether to distrust the environment.
    pub const SECURE: u64 = 23;
    /// Sixteen random bytes.
    pub const RANDOM: u64 = 25;
    /// More CPU capabilities.
    pub const HWCAP2: u64 = 26;
    /// rseq area size the kernel supports.
    pub const RSEQ_FEATURE_SIZE: u64 = 27;
    /// rseq area alignment.
    pub const RSEQ_ALIGN: u64 = 28;
    /// Name the program was executed by.
    pub const EXECFN: u64 = 31;
    /// Address of the vDSO's ELF header.
    pub const SYSINFO_EHDR: u64 = 33;
    /// Minimal signal stack size.
    pub const MINSIGSTKSZ: u64 = 51;
}

/// What goes on the stack.
#[derive(Debug)]
pub struct Contents<'a> {
    /// Arguments, without terminators.
    pub argv: &'a [Vec<u8>],
    /// Environment, without terminators.
    pub envp: &'a [Vec<u8>],
    /// The path as given to execve.
    pub execfn: &'a [u8],
    /// The string `AT_PLATFORM` points to, without terminator.
    pub platform: &'a [u8],
    /// The 16 random bytes `AT_RANDOM` points to.
    pub random: [u8; 16],
    /// Auxiliary pairs other than the ones that point into the stack and the final null.
    pub aux: &'a [(u64, u64)],
}

/// The finished block.
#[derive(Debug)]
pub struct Built {
    /// The initial stack pointer, and the address of `bytes[0]`.
    pub sp: u64,
    /// Everything from `sp` to the top.
    pub bytes: Vec<u8>,
    /// Address range of the argument strings, for `/proc/<pid>/cmdline`.
    pub args: (u64, u64),
    /// Address range of the environment strings.
    pub envs: (u64, u64),
}

/// Bytes of the longest single string, as Linux's `MAX_ARG_STRLEN`.
pub const MAX_STRING: usize = 32 * 4096;

/// Lays the stack out below `top` (16-byte aligned). `None` when it exceeds `limit` bytes, or memory runs out.
pub fn build(top: u64, limit: usize, what: &Contents<'_>) -> Option<Built> {
    let strings = |list: &[Vec<u8>]| list.iter().map(|s| s.len() + 1).sum::<usize>();
    let (arg_bytes, env_bytes) = (strings(what.argv), strings(what.envp));
    let upper = 8 + what.execfn.len() + 1 + env_bytes + arg_bytes;
    let extra = what.platform.len() + 1 + 16;
    let pairs = what.aux.len() + 4;
    let words = 1 + what.argv.len() + 1 + what.envp.len() + 1 + 2 * pairs;
    let total = (upper + extra + words * 8).checked_add(64)?;
    if total > limit {
        return None;
    }
    let execfn_at = top - 8 - (what.execfn.len() as u64 + 1);
    let envs_at = execfn_at - env_bytes as u64;
    let args_at = envs_at - arg_bytes as u64;
    let platform_at = args_at - (what.platform.len() as u64 + 1);
    let random_at = (platform_at - 16) & !15;
    let sp = (random_at - words as u64 * 8) & !15;
    let mut bytes = Vec::new();
    bytes.try_reserve_exact((top - sp) as usize).ok()?;
    let mut word = |w: u64| bytes.extend_from_slice(&w.to_le_bytes());
    word(what.argv.len() as u64);
    let mut at = args_at;
    for list in [what.argv, what.envp] {
        for s in list {
            word(at);
            at += s.len() as u64 + 1;
        }
        word(0);
    }
    for &(key, value) in what.aux {
        word(key);
        word(value);
    }
    for (key, value) in [(at::RANDOM, random_at), (at::EXECFN, execfn_at), (at::PLATFORM, platform_at), (0, 0)] {
        word(key);
        word(value);
    }
    bytes.resize((random_at - sp) as usize, 0);
    bytes.extend_from_slice(&what.random);
    bytes.resize((platform_at - sp) as usize, 0);
    let lists = what.argv.iter().chain(what.envp).map(Vec::as_slice);
    for s in core::iter::once(what.platform).chain(lists).chain([what.execfn]) {
        bytes.extend_from_slice(s);
        bytes.push(0);
    }
    bytes.resize((top - sp) as usize, 0);
    Some(Built { sp, bytes, args: (args_at, envs_at), envs: (envs_at, execfn_at) })
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::vec;

    fn list(items: &[&str]) -> Vec<Vec<u8>> {
        items.iter().map(|s| s.as_bytes().to_vec()).collect()
    }

    #[test]
    fn every_pointer_on_the_stack_leads_to_its_string() {
        for n in 0..40 {
            let argv: Vec<Vec<u8>> = (0..n).map(|i| vec![b'a' + (i % 26) as u8; i]).collect();
            let envp = list(&["PATH=/bin", "X="]);
            let what = Contents {
                argv: &argv,
                envp: &envp,
                execfn: b"/bin/prog",
                platform: b"x86_64",
                random: [7; 16],
                aux: &[(at::PAGESZ, 4096)],
            };
            let top = 0x7fff_ffff_e000;
            let b = build(top, 1 << 20, &what).unwrap();
            assert_eq!(b.sp % 16, 0);
            assert_eq!(b.sp + b.bytes.len() as u64, top);
            let word = |at: u64| {
                let i = (at - b.sp) as usize;
                u64::from_le_bytes(b.bytes[i..i + 8].try_into().unwrap())
            };
            let string = |at: u64| {
                let tail = &b.bytes[(at - b.sp) as usize..];
                tail[..tail.iter().position(|c| *c == 0).unwrap()].to_vec()
            };
            assert_eq!(word(b.sp), n as u64);
            for (i, arg) in argv.iter().enumerate() {
                assert_eq!(string(word(b.sp + 8 + 8 * i as u64)), *arg);
            }
            let env_at = b.sp + 8 * (n as u64 + 2);
            assert_eq!(string(word(env_at)), b"PATH=/bin");
            assert_eq!(string(word(env_at + 8)), b"X=");
            assert_eq!(word(env_at + 16), 0);
            let aux = env_at + 24;
            assert_eq!((word(aux), word(aux + 8)), (at::PAGESZ, 4096));
            assert_eq!(word(aux + 16), at::RANDOM);
            assert_eq!(b.bytes[(word(aux + 24) - b.sp) as usize], 7);
            assert_eq!(string(word(aux + 40)), b"/bin/prog");
            assert_eq!(string(word(aux + 56)), b"x86_64");
            assert_eq!((word(aux + 64), word(aux + 72)), (0, 0));
        }
    }

    #[test]
    fn arguments_beyond_the_limit_are_refused() {
        let argv = vec![vec![b'x'; 5000]];
        let what = Contents { argv: &argv, envp: &[], execfn: b"", platform: b"", random: [0; 16], aux: &[] };
        assert!(build(0x10_0000, 4096, &what).is_none());
    }
}
