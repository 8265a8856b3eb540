//! Flags and commands of files, directories, paths and descriptors.

use super::{Field, FlagSet, flag_set, optional_name};

flag_set! {
    /// Flags of `open` and `openat`.
    OPEN from "asm-generic/fcntl.h, open(2)" {
        field 0x3 {
            O_RDONLY = 0o0,
            O_WRONLY = 0o1,
            O_RDWR = 0o2,
        }
        bits {
            O_TMPFILE = 0o20200000,
            O_SYNC = 0o4010000,
            O_CREAT = 0o100,
            O_EXCL = 0o200,
            O_NOCTTY = 0o400,
            O_TRUNC = 0o1000,
            O_APPEND = 0o2000,
            O_NONBLOCK = 0o4000,
            O_DSYNC = 0o10000,
            O_ASYNC = 0o20000,
            O_DIRECT = 0o40000,
            O_LARGEFILE = 0o100000,
            O_DIRECTORY = 0o200000,
            O_NOFOLLOW = 0o400000,
            O_NOATIME = 0o1000000,
            O_CLOEXEC = 0o2000000,
            O_PATH = 0o10000000,
        }
        also {}
    }
}

flag_set! {
    /// Flags of `pipe2`.
    PIPE2 from "pipe(2)" {
        bits {
        }
        also {O_CLOEXEC, O_NONBLOCK, O_DIRECT}
    }
}

flag_set! {
    /// Flags of `dup3`.
    CLOEXEC_ONLY from "dup(2)" {
        bits {
        }
        also {O_CLOEXEC}
    }
}

flag_set! {
    /// Resolution flags of `openat2`.
    RESOLVE from "linux/openat2.h" {
        bits {
            RESOLVE_NO_XDEV = 0x1,
            RESOLVE_NO_MAGICLINKS = 0x2,
            RESOLVE_NO_SYMLINKS = 0x4,
            RESOLVE_BENEATH = 0x8,
            RESOLVE_IN_ROOT = 0x10,
            RESOLVE_CACHED = 0x20,
        }
        also {}
    }
}

flag_set! {
    /// Flags of `newfstatat`, `fchownat`, `utimensat`, `execveat`, `name_to_handle_at`.
    AT_STAT from "linux/fcntl.h, stat(2)" {
        bits {
            AT_SYMLINK_NOFOLLOW = 0x100,
            AT_NO_AUTOMOUNT = 0x800,
            AT_EMPTY_PATH = 0x1000,
        }
        also {}
    }
}

flag_set! {
    /// Flags of `statx`.
    AT_STATX from "linux/fcntl.h, statx(2)" {
        field 0x6000 {
            AT_STATX_FORCE_SYNC = 0x2000,
            AT_STATX_DONT_SYNC = 0x4000,
        }
        bits {
        }
        also {AT_SYMLINK_NOFOLLOW, AT_NO_AUTOMOUNT, AT_EMPTY_PATH}
    }
}

flag_set! {
    /// Flags of `unlinkat`.
    AT_UNLINK from "linux/fcntl.h, unlink(2)" {
        bits {
            AT_REMOVEDIR = 0x200,
        }
        also {}
    }
}

flag_set! {
    /// Flags of `faccessat2`.
    AT_ACCESS from "linux/fcntl.h, access(2)" {
        bits {
            AT_EACCESS = 0x200,
        }
        also {AT_SYMLINK_NOFOLLOW, AT_EMPTY_PATH}
    }
}

flag_set! {
    /// Flags of `linkat`.
    AT_LINK from "linux/fcntl.h, link(2)" {
        bits {
            AT_SYMLINK_FOLLOW = 0x400,
        }
        also {AT_EMPTY_PATH}
    }
}

flag_set! {
    /// Flags of `renameat2`.
    RENAME from "linux/fs.h, rename(2)" {
        bits {
            RENAME_NOREPLACE = 0x1,
            RENAME_EXCHANGE = 0x2,
            RENAME_WHITEOUT = 0x4,
        }
        also {}
    }
}

flag_set! {
    /// What `access` asks for.
    ACCESS from "unistd.h, access(2)" {
        zero F_OK,
        bits {
            R_OK = 0x4,
            W_OK = 0x2,
            X_OK = 0x1,
        }
        also {}
    }
}

flag_set! {
    /// Origin of a seek.
    SEEK from "unistd.h, lseek(2)" {
        field 0xffff_ffff {
            SEEK_SET = 0,
            SEEK_CUR = 1,
            SEEK_END = 2,
            SEEK_DATA = 3,
            SEEK_HOLE = 4,
        }
        bits {
        }
        also {}
    }
}

flag_set! {
    /// Commands of `fcntl`.
    FCNTL from "asm-generic/fcntl.h, linux/fcntl.h, fcntl(2)" {
        field 0xffff_ffff {
            F_DUPFD = 0,
            F_GETFD = 1,
            F_SETFD = 2,
            F_GETFL = 3,
            F_SETFL = 4,
            F_GETLK = 5,
            F_SETLK = 6,
            F_SETLKW = 7,
            F_SETOWN = 8,
            F_GETOWN = 9,
            F_SETSIG = 10,
            F_GETSIG = 11,
            F_SETOWN_EX = 15,
            F_GETOWN_EX = 16,
            F_OFD_GETLK = 36,
            F_OFD_SETLK = 37,
            F_OFD_SETLKW = 38,
            F_SETLEASE = 1024,
            F_GETLEASE = 1025,
            F_NOTIFY = 1026,
            F_DUPFD_CLOEXEC = 1030,
            F_SETPIPE_SZ = 1031,
            F_GETPIPE_SZ = 1032,
            F_ADD_SEALS = 1033,
            F_GET_SEALS = 1034,
        }
        bits {
        }
        also {}
    }
}

flag_set! {
    /// Descriptor flags of `F_SETFD`.
    FD_FLAGS from "fcntl(2)" {
        bits {
            FD_CLOEXEC = 0x1,
        }
        also {}
    }
}

flag_set! {
    /// Operations of `flock`.
    FLOCK from "asm-generic/fcntl.h, flock(2)" {
        field 0xb {
            LOCK_SH = 0x1,
            LOCK_EX = 0x2,
            LOCK_UN = 0x8,
        }
        bits {
            LOCK_NB = 0x4,
        }
        also {}
    }
}

flag_set! {
    /// Modes of `fallocate`.
    FALLOCATE from "linux/falloc.h, fallocate(2)" {
        bits {
            FALLOC_FL_KEEP_SIZE = 0x1,
            FALLOC_FL_PUNCH_HOLE = 0x2,
            FALLOC_FL_COLLAPSE_RANGE = 0x8,
            FALLOC_FL_ZERO_RANGE = 0x10,
            FALLOC_FL_INSERT_RANGE = 0x20,
            FALLOC_FL_UNSHARE_RANGE = 0x40,
        }
        also {}
    }
}

flag_set! {
    /// Advice of `fadvise64`.
    FADVISE from "linux/fadvise.h, posix_fadvise(2)" {
        field 0xffff_ffff {
            POSIX_FADV_NORMAL = 0,
            POSIX_FADV_RANDOM = 1,
            POSIX_FADV_SEQUENTIAL = 2,
            POSIX_FADV_WILLNEED = 3,
            POSIX_FADV_DONTNEED = 4,
            POSIX_FADV_NOREUSE = 5,
        }
        bits {
        }
        also {}
    }
}

flag_set! {
    /// Fields that `statx` is asked for.
    STATX_MASK from "linux/stat.h, statx(2)" {
        bits {
            STATX_ALL = 0xfff,
            STATX_BASIC_STATS = 0x7ff,
            STATX_TYPE = 0x1,
            STATX_MODE = 0x2,
            STATX_NLINK = 0x4,
            STATX_UID = 0x8,
            STATX_GID = 0x10,
            STATX_ATIME = 0x20,
            STATX_MTIME = 0x40,
            STATX_CTIME = 0x80,
            STATX_INO = 0x100,
            STATX_SIZE = 0x200,
            STATX_BLOCKS = 0x400,
            STATX_BTIME = 0x800,
            STATX_MNT_ID = 0x1000,
            STATX_DIOALIGN = 0x2000,
        }
        also {}
    }
}

flag_set! {
    /// Flags of `splice`, `tee`, `vmsplice`.
    SPLICE from "fcntl.h, splice(2)" {
        bits {
            SPLICE_F_MOVE = 0x1,
            SPLICE_F_NONBLOCK = 0x2,
            SPLICE_F_MORE = 0x4,
            SPLICE_F_GIFT = 0x8,
        }
        also {}
    }
}

flag_set! {
    /// Flags of `preadv2` and `pwritev2`.
    RWF from "linux/fs.h, readv(2)" {
        bits {
            RWF_HIPRI = 0x1,
            RWF_DSYNC = 0x2,
            RWF_SYNC = 0x4,
            RWF_NOWAIT = 0x8,
            RWF_APPEND = 0x10,
        }
        also {}
    }
}

flag_set! {
    /// Flags of `sync_file_range`.
    SYNC_RANGE from "linux/fs.h, sync_file_range(2)" {
        bits {
            SYNC_FILE_RANGE_WAIT_BEFORE = 0x1,
            SYNC_FILE_RANGE_WRITE = 0x2,
            SYNC_FILE_RANGE_WAIT_AFTER = 0x4,
        }
        also {}
    }
}

flag_set! {
    /// Flags of `setxattr`.
    XATTR from "linux/xattr.h, setxattr(2)" {
        bits {
            XATTR_CREATE = 0x1,
            XATTR_REPLACE = 0x2,
        }
        also {}
    }
}

flag_set! {
    /// Flags of `close_range`.
    CLOSE_RANGE from "linux/close_range.h, close_range(2)" {
        bits {
            CLOSE_RANGE_UNSHARE = 0x2,
            CLOSE_RANGE_CLOEXEC = 0x4,
        }
        also {}
    }
}

flag_set! {
    /// Flags of `inotify_init1`.
    INOTIFY_INIT from "sys/inotify.h, inotify_init(2)" {
        bits {
            IN_CLOEXEC = 0x8_0000,
            IN_NONBLOCK = 0x800,
        }
        also {}
    }
}

flag_set! {
    /// Events of a watch.
    INOTIFY from "linux/inotify.h, inotify(7)" {
        bits {
            IN_ACCESS = 0x1,
            IN_MODIFY = 0x2,
            IN_ATTRIB = 0x4,
            IN_CLOSE_WRITE = 0x8,
            IN_CLOSE_NOWRITE = 0x10,
            IN_OPEN = 0x20,
            IN_MOVED_FROM = 0x40,
            IN_MOVED_TO = 0x80,
            IN_CREATE = 0x100,
            IN_DELETE = 0x200,
            IN_DELETE_SELF = 0x400,
            IN_MOVE_SELF = 0x800,
            IN_UNMOUNT = 0x2000,
            IN_Q_OVERFLOW = 0x4000,
            IN_IGNORED = 0x8000,
            IN_ONLYDIR = 0x100_0000,
            IN_DONT_FOLLOW = 0x200_0000,
            IN_EXCL_UNLINK = 0x400_0000,
            IN_MASK_CREATE = 0x1000_0000,
            IN_MASK_ADD = 0x2000_0000,
            IN_ISDIR = 0x4000_0000,
            IN_ONESHOT = 0x8000_0000,
        }
        also {}
    }
}

flag_set! {
    /// The type bits of a mode.
    FILE_TYPE from "linux/stat.h, inode(7)" {
        field 0o170000 {
            S_IFIFO = 0o10000,
            S_IFCHR = 0o20000,
            S_IFDIR = 0o40000,
            S_IFBLK = 0o60000,
            S_IFREG = 0o100000,
            S_IFLNK = 0o120000,
            S_IFSOCK = 0o140000,
        }
        bits {
        }
        also {}
    }
}

flag_set! {
    /// Flags of `memfd_create`.
    MEMFD from "linux/memfd.h, memfd_create(2)" {
        bits {
            MFD_CLOEXEC = 0x1,
            MFD_ALLOW_SEALING = 0x2,
            MFD_HUGETLB = 0x4,
        }
        also {}
    }
}

flag_set! {
    /// Seals of `F_ADD_SEALS`.
    SEALS from "linux/fcntl.h, fcntl(2)" {
        bits {
            F_SEAL_SEAL = 0x1,
            F_SEAL_SHRINK = 0x2,
            F_SEAL_GROW = 0x4,
            F_SEAL_WRITE = 0x8,
            F_SEAL_FUTURE_WRITE = 0x10,
        }
        also {}
    }
}

/// Every set of this file, for lookups by name and for the test against the headers.
pub static ALL: &[&FlagSet] = &[
    &OPEN,
    &PIPE2,
    &CLOEXEC_ONLY,
    &RESOLVE,
    &AT_STAT,
    &AT_STATX,
    &AT_UNLINK,
    &AT_ACCESS,
    &AT_LINK,
    &RENAME,
    &ACCESS,
    &SEEK,
    &FCNTL,
    &FD_FLAGS,
    &FLOCK,
    &FALLOCATE,
    &FADVISE,
    &STATX_MASK,
    &SPLICE,
    &RWF,
    &SYNC_RANGE,
    &XATTR,
    &CLOSE_RANGE,
    &INOTIFY_INIT,
    &INOTIFY,
    &FILE_TYPE,
    &MEMFD,
    &SEALS,
];
