//! Commands of mount, reboot, prctl, ioctl and other system-wide calls.

use super::{Field, FlagSet, flag_set, optional_name};

flag_set! {
    /// Flags of `mount`.
    MOUNT from "linux/mount.h, mount(2)" {
        bits {
            MS_RDONLY = 0x1,
            MS_NOSUID = 0x2,
            MS_NODEV = 0x4,
            MS_NOEXEC = 0x8,
            MS_SYNCHRONOUS = 0x10,
            MS_REMOUNT = 0x20,
            MS_MANDLOCK = 0x40,
            MS_DIRSYNC = 0x80,
            MS_NOSYMFOLLOW = 0x100,
            MS_NOATIME = 0x400,
            MS_NODIRATIME = 0x800,
            MS_BIND = 0x1000,
            MS_MOVE = 0x2000,
            MS_REC = 0x4000,
            MS_SILENT = 0x8000,
            MS_POSIXACL = 0x1_0000,
            MS_UNBINDABLE = 0x2_0000,
            MS_PRIVATE = 0x4_0000,
            MS_SLAVE = 0x8_0000,
            MS_SHARED = 0x10_0000,
            MS_RELATIME = 0x20_0000,
            MS_KERNMOUNT = 0x40_0000,
            MS_I_VERSION = 0x80_0000,
            MS_STRICTATIME = 0x100_0000,
            MS_LAZYTIME = 0x200_0000,
        }
        also {}
    }
}

flag_set! {
    /// Flags of `umount2`.
    UMOUNT from "linux/fs.h, umount(2)" {
        bits {
            MNT_FORCE = 0x1,
            MNT_DETACH = 0x2,
            MNT_EXPIRE = 0x4,
            UMOUNT_NOFOLLOW = 0x8,
        }
        also {}
    }
}

flag_set! {
    /// The numbers that guard `reboot`.
    REBOOT_MAGIC from "linux/reboot.h, reboot(2)" {
        field 0xffff_ffff {
            LINUX_REBOOT_MAGIC1 = 0xfee1_dead,
            LINUX_REBOOT_MAGIC2 = 0x2812_1969,
            LINUX_REBOOT_MAGIC2A = 0x512_1996,
            LINUX_REBOOT_MAGIC2B = 0x1604_1998,
            LINUX_REBOOT_MAGIC2C = 0x2011_2000,
        }
        bits {
        }
        also {}
    }
}

flag_set! {
    /// Commands of `reboot`.
    REBOOT from "linux/reboot.h, reboot(2)" {
        field 0xffff_ffff {
            LINUX_REBOOT_CMD_CAD_OFF = 0x0,
            LINUX_REBOOT_CMD_CAD_ON = 0x89ab_cdef,
            LINUX_REBOOT_CMD_HALT = 0xcdef_0123,
            LINUX_REBOOT_CMD_KEXEC = 0x4558_4543,
            LINUX_REBOOT_CMD_POWER_OFF = 0x4321_fedc,
            LINUX_REBOOT_CMD_RESTART = 0x123_4567,
            LINUX_REBOOT_CMD_RESTART2 = 0xa1b2_c3d4,
            LINUX_REBOOT_CMD_SW_SUSPEND = 0xd000_fce2,
        }
        bits {
        }
        also {}
    }
}

flag_set! {
    /// Flags of `getrandom`.
    GETRANDOM from "linux/random.h, getrandom(2)" {
        bits {
            GRND_NONBLOCK = 0x1,
            GRND_RANDOM = 0x2,
            GRND_INSECURE = 0x4,
        }
        also {}
    }
}

flag_set! {
    /// Requests of `ioctl` that programs make of terminals and sockets.
    IOCTL from "asm-generic/ioctls.h, ioctl_tty(2)" {
        field 0xffff_ffff {
            TCGETS = 0x5401,
            TCSETS = 0x5402,
            TCSETSW = 0x5403,
            TCSETSF = 0x5404,
            TCGETA = 0x5405,
            TCSETA = 0x5406,
            TCSETAW = 0x5407,
            TCSETAF = 0x5408,
            TCSBRK = 0x5409,
            TCXONC = 0x540a,
            TCFLSH = 0x540b,
            TIOCEXCL = 0x540c,
            TIOCNXCL = 0x540d,
            TIOCSCTTY = 0x540e,
            TIOCGPGRP = 0x540f,
            TIOCSPGRP = 0x5410,
            TIOCOUTQ = 0x5411,
            TIOCSTI = 0x5412,
            TIOCGWINSZ = 0x5413,
            TIOCSWINSZ = 0x5414,
            TIOCMGET = 0x5415,
            FIONREAD = 0x541b,
            TIOCCONS = 0x541d,
            TIOCNOTTY = 0x5422,
            TIOCSETD = 0x5423,
            TIOCGETD = 0x5424,
            TCSBRKP = 0x5425,
            TIOCGSID = 0x5429,
            TCGETS2 = 0x802c_542a,
            TCSETS2 = 0x402c_542b,
            TCSETSW2 = 0x402c_542c,
            TCSETSF2 = 0x402c_542d,
            TIOCGPTN = 0x8004_5430,
            TIOCSPTLCK = 0x4004_5431,
            TIOCGDEV = 0x8004_5432,
            TIOCSIG = 0x4004_5436,
            TIOCGPTLCK = 0x8004_5439,
            TIOCGEXCL = 0x8004_5440,
            TIOCGPTPEER = 0x5441,
            FIONBIO = 0x5421,
            FIOASYNC = 0x5452,
            FIOCLEX = 0x5451,
            FIONCLEX = 0x5450,
            RNDGETENTCNT = 0x8004_5200,
        }
        bits {
        }
        also {}
    }
}

flag_set! {
    /// Flags of `personality`.
    PERSONALITY from "linux/personality.h, personality(2)" {
        bits {
            UNAME26 = 0x2_0000,
            ADDR_NO_RANDOMIZE = 0x4_0000,
            FDPIC_FUNCPTRS = 0x8_0000,
            MMAP_PAGE_ZERO = 0x10_0000,
            ADDR_COMPAT_LAYOUT = 0x20_0000,
            READ_IMPLIES_EXEC = 0x40_0000,
            ADDR_LIMIT_32BIT = 0x80_0000,
            SHORT_INODE = 0x100_0000,
            WHOLE_SECONDS = 0x200_0000,
            STICKY_TIMEOUTS = 0x400_0000,
            ADDR_LIMIT_3GB = 0x800_0000,
        }
        also {}
    }
}

flag_set! {
    /// Actions of `syslog`.
    SYSLOG from "syslog(2)" {
        field 0xffff_ffff {
            SYSLOG_ACTION_CLOSE = 0,
            SYSLOG_ACTION_OPEN = 1,
            SYSLOG_ACTION_READ = 2,
            SYSLOG_ACTION_READ_ALL = 3,
            SYSLOG_ACTION_READ_CLEAR = 4,
            SYSLOG_ACTION_CLEAR = 5,
            SYSLOG_ACTION_CONSOLE_OFF = 6,
            SYSLOG_ACTION_CONSOLE_ON = 7,
            SYSLOG_ACTION_CONSOLE_LEVEL = 8,
            SYSLOG_ACTION_SIZE_UNREAD = 9,
            SYSLOG_ACTION_SIZE_BUFFER = 10,
        }
        bits {
        }
        also {}
    }
}

/// Every set of this file, for lookups by name and for the test against the headers.
pub static ALL: &[&FlagSet] = &[&MOUNT, &UMOUNT, &REBOOT_MAGIC, &REBOOT, &GETRANDOM, &IOCTL, &PERSONALITY, &SYSLOG];
