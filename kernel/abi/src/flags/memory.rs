//! Flags of mappings, advice and shared memory.

use super::{Field, FlagSet, flag_set, optional_name};

flag_set! {
    /// Protection of a mapping.
    PROT from "asm-generic/mman-common.h, mmap(2)" {
        zero PROT_NONE,
        bits {
            PROT_READ = 0x1,
            PROT_WRITE = 0x2,
            PROT_EXEC = 0x4,
            PROT_SEM = 0x8,
            PROT_GROWSDOWN = 0x100_0000,
            PROT_GROWSUP = 0x200_0000,
        }
        also {}
    }
}

flag_set! {
    /// Flags of `mmap`.
    MAP from "asm-generic/mman.h, mmap(2)" {
        field 0xf {
            MAP_SHARED = 0x1,
            MAP_PRIVATE = 0x2,
            MAP_SHARED_VALIDATE = 0x3,
        }
        bits {
            MAP_FIXED = 0x10,
            MAP_ANONYMOUS = 0x20,
            MAP_32BIT = 0x40,
            MAP_GROWSDOWN = 0x100,
            MAP_DENYWRITE = 0x800,
            MAP_EXECUTABLE = 0x1000,
            MAP_LOCKED = 0x2000,
            MAP_NORESERVE = 0x4000,
            MAP_POPULATE = 0x8000,
            MAP_NONBLOCK = 0x1_0000,
            MAP_STACK = 0x2_0000,
            MAP_HUGETLB = 0x4_0000,
            MAP_SYNC = 0x8_0000,
            MAP_FIXED_NOREPLACE = 0x10_0000,
        }
        also {}
    }
}

flag_set! {
    /// Flags of `mremap`.
    MREMAP from "linux/mman.h, mremap(2)" {
        bits {
            MREMAP_MAYMOVE = 0x1,
            MREMAP_FIXED = 0x2,
            MREMAP_DONTUNMAP = 0x4,
        }
        also {}
    }
}

flag_set! {
    /// Flags of `msync`.
    MSYNC from "asm-generic/mman-common.h, msync(2)" {
        bits {
            MS_ASYNC = 0x1,
            MS_INVALIDATE = 0x2,
            MS_SYNC = 0x4,
        }
        also {}
    }
}

flag_set! {
    /// Advice of `madvise`.
    MADVISE from "asm-generic/mman-common.h, madvise(2)" {
        field 0xffff_ffff {
            MADV_NORMAL = 0,
            MADV_RANDOM = 1,
            MADV_SEQUENTIAL = 2,
            MADV_WILLNEED = 3,
            MADV_DONTNEED = 4,
            MADV_FREE = 8,
            MADV_REMOVE = 9,
            MADV_DONTFORK = 10,
            MADV_DOFORK = 11,
            MADV_MERGEABLE = 12,
            MADV_UNMERGEABLE = 13,
            MADV_HUGEPAGE = 14,
            MADV_NOHUGEPAGE = 15,
            MADV_DONTDUMP = 16,
            MADV_DODUMP = 17,
            MADV_WIPEONFORK = 18,
            MADV_KEEPONFORK = 19,
            MADV_COLD = 20,
            MADV_PAGEOUT = 21,
            MADV_POPULATE_READ = 22,
            MADV_POPULATE_WRITE = 23,
            MADV_DONTNEED_LOCKED = 24,
            MADV_COLLAPSE = 25,
            MADV_HWPOISON = 100,
        }
        bits {
        }
        also {}
    }
}

flag_set! {
    /// Flags of `mlock2`.
    MLOCK from "linux/mman.h, mlock(2)" {
        bits {
            MLOCK_ONFAULT = 0x1,
        }
        also {}
    }
}

flag_set! {
    /// Flags of `mlockall`.
    MLOCKALL from "asm-generic/mman.h, mlock(2)" {
        bits {
            MCL_CURRENT = 0x1,
            MCL_FUTURE = 0x2,
            MCL_ONFAULT = 0x4,
        }
        also {}
    }
}

flag_set! {
    /// Creation flags of System V IPC objects; the low nine bits are a mode.
    IPC_GET from "linux/ipc.h, shmget(2)" {
        bits {
            IPC_CREAT = 0o1000,
            IPC_EXCL = 0o2000,
            IPC_NOWAIT = 0o4000,
        }
        also {}
    }
}

flag_set! {
    /// Commands of System V IPC control calls.
    IPC_CTL from "linux/ipc.h, shmctl(2)" {
        field 0xffff_ffff {
            IPC_RMID = 0,
            IPC_SET = 1,
            IPC_STAT = 2,
            IPC_INFO = 3,
        }
        bits {
        }
        also {}
    }
}

flag_set! {
    /// Flags of `shmat`.
    SHM_AT from "linux/shm.h, shmat(2)" {
        bits {
            SHM_RDONLY = 0x1000,
            SHM_RND = 0x2000,
            SHM_REMAP = 0x4000,
            SHM_EXEC = 0x8000,
        }
        also {}
    }
}

flag_set! {
    /// Commands of `membarrier`.
    MEMBARRIER from "linux/membarrier.h, membarrier(2)" {
        field 0xffff_ffff {
            MEMBARRIER_CMD_QUERY = 0,
            MEMBARRIER_CMD_GLOBAL = 1,
            MEMBARRIER_CMD_GLOBAL_EXPEDITED = 2,
            MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED = 4,
            MEMBARRIER_CMD_PRIVATE_EXPEDITED = 8,
            MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED = 16,
            MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE = 32,
            MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_SYNC_CORE = 64,
            MEMBARRIER_CMD_PRIVATE_EXPEDITED_RSEQ = 128,
            MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_RSEQ = 256,
        }
        bits {
        }
        also {}
    }
}

/// Every set of this file, for lookups by name and for the test against the headers.
pub static ALL: &[&FlagSet] =
    &[&PROT, &MAP, &MREMAP, &MSYNC, &MADVISE, &MLOCK, &MLOCKALL, &IPC_GET, &IPC_CTL, &SHM_AT, &MEMBARRIER];
