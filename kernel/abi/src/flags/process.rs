//! Flags of processes, threads, signals, scheduling and waiting.

use super::{Field, FlagSet, flag_set, optional_name};

flag_set! {
    /// Flags of `clone`, `unshare`, `setns`; the low byte of `clone`'s word is the exit signal.
    CLONE from "linux/sched.h, clone(2)" {
        bits {
            CLONE_VM = 0x100,
            CLONE_FS = 0x200,
            CLONE_FILES = 0x400,
            CLONE_SIGHAND = 0x800,
            CLONE_PIDFD = 0x1000,
            CLONE_PTRACE = 0x2000,
            CLONE_VFORK = 0x4000,
            CLONE_PARENT = 0x8000,
            CLONE_THREAD = 0x1_0000,
            CLONE_NEWNS = 0x2_0000,
            CLONE_SYSVSEM = 0x4_0000,
            CLONE_SETTLS = 0x8_0000,
            CLONE_PARENT_SETTID = 0x10_0000,
            CLONE_CHILD_CLEARTID = 0x20_0000,
            CLONE_DETACHED = 0x40_0000,
            CLONE_UNTRACED = 0x80_0000,
            CLONE_CHILD_SETTID = 0x100_0000,
            CLONE_NEWCGROUP = 0x200_0000,
            CLONE_NEWUTS = 0x400_0000,
            CLONE_NEWIPC = 0x800_0000,
            CLONE_NEWUSER = 0x1000_0000,
            CLONE_NEWPID = 0x2000_0000,
            CLONE_NEWNET = 0x4000_0000,
            CLONE_IO = 0x8000_0000,
        }
        also {}
    }
}

flag_set! {
    /// Options of `wait4` and `waitid`.
    WAIT from "linux/wait.h, wait(2)" {
        bits {
            WNOHANG = 0x1,
            WUNTRACED = 0x2,
            WEXITED = 0x4,
            WCONTINUED = 0x8,
            WNOWAIT = 0x100_0000,
            __WNOTHREAD = 0x2000_0000,
            __WALL = 0x4000_0000,
            __WCLONE = 0x8000_0000,
        }
        also {}
    }
}

flag_set! {
    /// What `waitid` waits for.
    IDTYPE from "linux/wait.h, waitid(2)" {
        field 0xffff_ffff {
            P_ALL = 0,
            P_PID = 1,
            P_PGID = 2,
            P_PIDFD = 3,
        }
        bits {
        }
        also {}
    }
}

flag_set! {
    /// Operation of `futex`.
    FUTEX from "linux/futex.h, futex(2)" {
        field 0x7f {
            FUTEX_WAIT = 0x0,
            FUTEX_WAKE = 0x1,
            FUTEX_FD = 0x2,
            FUTEX_REQUEUE = 0x3,
            FUTEX_CMP_REQUEUE = 0x4,
            FUTEX_WAKE_OP = 0x5,
            FUTEX_LOCK_PI = 0x6,
            FUTEX_UNLOCK_PI = 0x7,
            FUTEX_TRYLOCK_PI = 0x8,
            FUTEX_WAIT_BITSET = 0x9,
            FUTEX_WAKE_BITSET = 0xa,
            FUTEX_WAIT_REQUEUE_PI = 0xb,
            FUTEX_CMP_REQUEUE_PI = 0xc,
            FUTEX_LOCK_PI2 = 0xd,
        }
        bits {
            FUTEX_PRIVATE_FLAG = 0x80,
            FUTEX_CLOCK_REALTIME = 0x100,
        }
        also {}
    }
}

flag_set! {
    /// How a signal mask changes.
    SIG_HOW from "asm-generic/signal-defs.h, sigprocmask(2)" {
        field 0xffff_ffff {
            SIG_BLOCK = 0,
            SIG_UNBLOCK = 1,
            SIG_SETMASK = 2,
        }
        bits {
        }
        also {}
    }
}

flag_set! {
    /// Flags of a signal action.
    SIGACTION from "asm/signal.h, sigaction(2)" {
        bits {
            SA_NOCLDSTOP = 0x1,
            SA_NOCLDWAIT = 0x2,
            SA_SIGINFO = 0x4,
            SA_RESTORER = 0x400_0000,
            SA_ONSTACK = 0x800_0000,
            SA_RESTART = 0x1000_0000,
            SA_NODEFER = 0x4000_0000,
            SA_RESETHAND = 0x8000_0000,
        }
        also {}
    }
}

flag_set! {
    /// Scheduling policies, and the flag that resets the policy on fork.
    SCHED_POLICY from "linux/sched.h, sched(7)" {
        field 0xfff_ffff {
            SCHED_OTHER = 0x0,
            SCHED_FIFO = 0x1,
            SCHED_RR = 0x2,
            SCHED_BATCH = 0x3,
            SCHED_IDLE = 0x5,
            SCHED_DEADLINE = 0x6,
        }
        bits {
            SCHED_RESET_ON_FORK = 0x4000_0000,
        }
        also {}
    }
}

flag_set! {
    /// What `who` identifies in getpriority(2): a process, a process group or a user.
    PRIO from "linux/resource.h, getpriority(2)" {
        field 0xffff_ffff {
            PRIO_PROCESS = 0,
            PRIO_PGRP = 1,
            PRIO_USER = 2,
        }
        bits {
        }
        also {}
    }
}

flag_set! {
    /// Resources with a limit.
    RLIMIT from "asm-generic/resource.h, getrlimit(2)" {
        field 0xffff_ffff {
            RLIMIT_CPU = 0,
            RLIMIT_FSIZE = 1,
            RLIMIT_DATA = 2,
            RLIMIT_STACK = 3,
            RLIMIT_CORE = 4,
            RLIMIT_RSS = 5,
            RLIMIT_NPROC = 6,
            RLIMIT_NOFILE = 7,
            RLIMIT_MEMLOCK = 8,
            RLIMIT_AS = 9,
            RLIMIT_LOCKS = 10,
            RLIMIT_SIGPENDING = 11,
            RLIMIT_MSGQUEUE = 12,
            RLIMIT_NICE = 13,
            RLIMIT_RTPRIO = 14,
            RLIMIT_RTTIME = 15,
        }
        bits {
        }
        also {}
    }
}

flag_set! {
    /// Whose resource use.
    RUSAGE from "linux/resource.h, getrusage(2)" {
        field 0xffff_ffff {
            RUSAGE_SELF = 0,
            RUSAGE_CHILDREN = 0xffff_ffff,
            RUSAGE_THREAD = 1,
        }
        bits {
        }
        also {}
    }
}

flag_set! {
    /// Operations of `prctl`.
    PRCTL from "linux/prctl.h, prctl(2)" {
        field 0xffff_ffff {
            PR_SET_PDEATHSIG = 1,
            PR_GET_PDEATHSIG = 2,
            PR_GET_DUMPABLE = 3,
            PR_SET_DUMPABLE = 4,
            PR_GET_KEEPCAPS = 7,
            PR_SET_KEEPCAPS = 8,
            PR_GET_TIMING = 13,
            PR_SET_TIMING = 14,
            PR_SET_NAME = 15,
            PR_GET_NAME = 16,
            PR_GET_SECCOMP = 21,
            PR_SET_SECCOMP = 22,
            PR_CAPBSET_READ = 23,
            PR_CAPBSET_DROP = 24,
            PR_GET_TSC = 25,
            PR_SET_TSC = 26,
            PR_GET_SECUREBITS = 27,
            PR_SET_SECUREBITS = 28,
            PR_SET_TIMERSLACK = 29,
            PR_GET_TIMERSLACK = 30,
            PR_MCE_KILL = 33,
            PR_MCE_KILL_GET = 34,
            PR_SET_MM = 35,
            PR_SET_CHILD_SUBREAPER = 36,
            PR_GET_CHILD_SUBREAPER = 37,
            PR_SET_NO_NEW_PRIVS = 38,
            PR_GET_NO_NEW_PRIVS = 39,
            PR_GET_TID_ADDRESS = 40,
            PR_SET_THP_DISABLE = 41,
            PR_GET_THP_DISABLE = 42,
            PR_CAP_AMBIENT = 47,
            PR_GET_SPECULATION_CTRL = 52,
            PR_SET_SPECULATION_CTRL = 53,
            PR_SET_VMA = 0x5356_4d41,
            PR_SET_PTRACER = 0x5961_6d61,
        }
        bits {
        }
        also {}
    }
}

flag_set! {
    /// Operations of `arch_prctl` on x86_64.
    ARCH_PRCTL from "asm/prctl.h, arch_prctl(2)" {
        field 0xffff_ffff {
            ARCH_SET_GS = 0x1001,
            ARCH_SET_FS = 0x1002,
            ARCH_GET_FS = 0x1003,
            ARCH_GET_GS = 0x1004,
            ARCH_GET_CPUID = 0x1011,
            ARCH_SET_CPUID = 0x1012,
            ARCH_CET_STATUS = 0x3001,
        }
        bits {
        }
        also {}
    }
}

flag_set! {
    /// Requests of `ptrace`.
    PTRACE from "linux/ptrace.h, ptrace(2)" {
        field 0xffff_ffff {
            PTRACE_TRACEME = 0,
            PTRACE_PEEKTEXT = 1,
            PTRACE_PEEKDATA = 2,
            PTRACE_PEEKUSER = 3,
            PTRACE_POKETEXT = 4,
            PTRACE_POKEDATA = 5,
            PTRACE_POKEUSER = 6,
            PTRACE_CONT = 7,
            PTRACE_KILL = 8,
            PTRACE_SINGLESTEP = 9,
            PTRACE_GETREGS = 12,
            PTRACE_SETREGS = 13,
            PTRACE_GETFPREGS = 14,
            PTRACE_SETFPREGS = 15,
            PTRACE_ATTACH = 16,
            PTRACE_DETACH = 17,
            PTRACE_SYSCALL = 24,
            PTRACE_SETOPTIONS = 16896,
            PTRACE_GETEVENTMSG = 16897,
            PTRACE_GETSIGINFO = 16898,
            PTRACE_SETSIGINFO = 16899,
            PTRACE_GETREGSET = 16900,
            PTRACE_SETREGSET = 16901,
            PTRACE_SEIZE = 16902,
            PTRACE_INTERRUPT = 16903,
            PTRACE_LISTEN = 16904,
        }
        bits {
        }
        also {}
    }
}

flag_set! {
    /// Operations of `seccomp`.
    SECCOMP from "linux/seccomp.h, seccomp(2)" {
        field 0xffff_ffff {
            SECCOMP_SET_MODE_STRICT = 0,
            SECCOMP_SET_MODE_FILTER = 1,
            SECCOMP_GET_ACTION_AVAIL = 2,
            SECCOMP_GET_NOTIF_SIZES = 3,
        }
        bits {
        }
        also {}
    }
}

flag_set! {
    /// Flags of `rseq`.
    RSEQ from "linux/rseq.h" {
        bits {
            RSEQ_FLAG_UNREGISTER = 0x1,
        }
        also {}
    }
}

flag_set! {
    /// Flags of `pidfd_open`.
    PIDFD from "linux/pidfd.h, pidfd_open(2)" {
        bits {
            PIDFD_NONBLOCK = 0x800,
        }
        also {}
    }
}

flag_set! {
    /// Flags of an alternate signal stack.
    SIGSTACK from "linux/signal.h, sigaltstack(2)" {
        bits {
            SS_ONSTACK = 0x1,
            SS_DISABLE = 0x2,
            SS_AUTODISARM = 0x8000_0000,
        }
        also {}
    }
}

/// Every set of this file, for lookups by name and for the test against the headers.
pub static ALL: &[&FlagSet] = &[
    &CLONE,
    &WAIT,
    &IDTYPE,
    &FUTEX,
    &SIG_HOW,
    &SIGACTION,
    &SCHED_POLICY,
    &PRIO,
    &RLIMIT,
    &RUSAGE,
    &PRCTL,
    &ARCH_PRCTL,
    &PTRACE,
    &SECCOMP,
    &RSEQ,
    &PIDFD,
    &SIGSTACK,
];
