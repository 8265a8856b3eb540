//! Families, types, levels, options and message flags of sockets; events of poll and epoll.

use super::{Field, FlagSet, flag_set, optional_name};

flag_set! {
    /// Address families, the first argument of socket(2).
    FAMILY from "linux/socket.h, socket(2)" {
        field 0xffff_ffff {
            AF_UNSPEC = 0,
            AF_UNIX = 1,
            AF_INET = 2,
            AF_AX25 = 3,
            AF_IPX = 4,
            AF_APPLETALK = 5,
            AF_X25 = 9,
            AF_INET6 = 10,
            AF_KEY = 15,
            AF_NETLINK = 16,
            AF_PACKET = 17,
            AF_RDS = 21,
            AF_PPPOX = 24,
            AF_CAN = 29,
            AF_TIPC = 30,
            AF_BLUETOOTH = 31,
            AF_ALG = 38,
            AF_VSOCK = 40,
            AF_XDP = 44,
        }
        bits {
        }
        also {}
    }
}

flag_set! {
    /// Type and flags of a socket.
    SOCKET_TYPE from "linux/net.h, socket(2)" {
        field 0xf {
            SOCK_STREAM = 0x1,
            SOCK_DGRAM = 0x2,
            SOCK_RAW = 0x3,
            SOCK_RDM = 0x4,
            SOCK_SEQPACKET = 0x5,
            SOCK_DCCP = 0x6,
            SOCK_PACKET = 0xa,
        }
        bits {
            SOCK_CLOEXEC = 0x8_0000,
            SOCK_NONBLOCK = 0x800,
        }
        also {}
    }
}

flag_set! {
    /// Flags of `accept4`.
    ACCEPT4 from "accept(2)" {
        bits {
        }
        also {SOCK_CLOEXEC, SOCK_NONBLOCK}
    }
}

flag_set! {
    /// Which half is shut down.
    SHUTDOWN from "linux/net.h, shutdown(2)" {
        field 0xffff_ffff {
            SHUT_RD = 0,
            SHUT_WR = 1,
            SHUT_RDWR = 2,
        }
        bits {
        }
        also {}
    }
}

flag_set! {
    /// Flags of sending and receiving.
    MESSAGE from "linux/socket.h, send(2), recv(2)" {
        bits {
            MSG_OOB = 0x1,
            MSG_PEEK = 0x2,
            MSG_DONTROUTE = 0x4,
            MSG_CTRUNC = 0x8,
            MSG_PROXY = 0x10,
            MSG_TRUNC = 0x20,
            MSG_DONTWAIT = 0x40,
            MSG_EOR = 0x80,
            MSG_WAITALL = 0x100,
            MSG_FIN = 0x200,
            MSG_SYN = 0x400,
            MSG_CONFIRM = 0x800,
            MSG_RST = 0x1000,
            MSG_ERRQUEUE = 0x2000,
            MSG_NOSIGNAL = 0x4000,
            MSG_MORE = 0x8000,
            MSG_WAITFORONE = 0x1_0000,
            MSG_BATCH = 0x4_0000,
            MSG_ZEROCOPY = 0x400_0000,
            MSG_FASTOPEN = 0x2000_0000,
            MSG_CMSG_CLOEXEC = 0x4000_0000,
        }
        also {}
    }
}

flag_set! {
    /// Levels of socket options.
    SOCKET_LEVEL from "linux/socket.h, getsockopt(2)" {
        field 0xffff_ffff {
            SOL_IP = 0,
            SOL_SOCKET = 1,
            SOL_TCP = 6,
            SOL_IPV6 = 41,
            SOL_RAW = 255,
            SOL_PACKET = 263,
            SOL_NETLINK = 270,
            SOL_UDP = 17,
        }
        bits {
        }
        also {}
    }
}

flag_set! {
    /// Options at `SOL_SOCKET`.
    SOCKET_OPTION from "asm-generic/socket.h, socket(7)" {
        field 0xffff_ffff {
            SO_DEBUG = 1,
            SO_REUSEADDR = 2,
            SO_TYPE = 3,
            SO_ERROR = 4,
            SO_DONTROUTE = 5,
            SO_BROADCAST = 6,
            SO_SNDBUF = 7,
            SO_RCVBUF = 8,
            SO_KEEPALIVE = 9,
            SO_OOBINLINE = 10,
            SO_NO_CHECK = 11,
            SO_PRIORITY = 12,
            SO_LINGER = 13,
            SO_REUSEPORT = 15,
            SO_PASSCRED = 16,
            SO_PEERCRED = 17,
            SO_RCVLOWAT = 18,
            SO_SNDLOWAT = 19,
            SO_RCVTIMEO = 20,
            SO_SNDTIMEO = 21,
            SO_BINDTODEVICE = 25,
            SO_ATTACH_FILTER = 26,
            SO_DETACH_FILTER = 27,
            SO_PEERNAME = 28,
            SO_TIMESTAMP = 29,
            SO_ACCEPTCONN = 30,
            SO_PEERSEC = 31,
            SO_SNDBUFFORCE = 32,
            SO_RCVBUFFORCE = 33,
            SO_PASSSEC = 34,
            SO_MARK = 36,
            SO_PROTOCOL = 38,
            SO_DOMAIN = 39,
            SO_PEEK_OFF = 42,
        }
        bits {
        }
        also {}
    }
}

flag_set! {
    /// Events of `poll`.
    POLL from "asm-generic/poll.h, poll(2)" {
        bits {
            POLLIN = 0x1,
            POLLPRI = 0x2,
            POLLOUT = 0x4,
            POLLERR = 0x8,
            POLLHUP = 0x10,
            POLLNVAL = 0x20,
            POLLRDNORM = 0x40,
            POLLRDBAND = 0x80,
            POLLWRNORM = 0x100,
            POLLWRBAND = 0x200,
            POLLMSG = 0x400,
            POLLREMOVE = 0x1000,
            POLLRDHUP = 0x2000,
        }
        also {}
    }
}

flag_set! {
    /// Events of epoll.
    EPOLL from "linux/eventpoll.h, epoll_ctl(2)" {
        bits {
            EPOLLIN = 0x1,
            EPOLLPRI = 0x2,
            EPOLLOUT = 0x4,
            EPOLLERR = 0x8,
            EPOLLHUP = 0x10,
            EPOLLRDNORM = 0x40,
            EPOLLRDBAND = 0x80,
            EPOLLWRNORM = 0x100,
            EPOLLWRBAND = 0x200,
            EPOLLMSG = 0x400,
            EPOLLRDHUP = 0x2000,
            EPOLLEXCLUSIVE = 0x1000_0000,
            EPOLLWAKEUP = 0x2000_0000,
            EPOLLONESHOT = 0x4000_0000,
            EPOLLET = 0x8000_0000,
        }
        also {}
    }
}

flag_set! {
    /// Operations of `epoll_ctl`.
    EPOLL_CTL from "linux/eventpoll.h, epoll_ctl(2)" {
        field 0xffff_ffff {
            EPOLL_CTL_ADD = 1,
            EPOLL_CTL_DEL = 2,
            EPOLL_CTL_MOD = 3,
        }
        bits {
        }
        also {}
    }
}

flag_set! {
    /// Flags of `epoll_create1`.
    EPOLL_CREATE from "linux/eventpoll.h, epoll_create(2)" {
        bits {
            EPOLL_CLOEXEC = 0x8_0000,
        }
        also {}
    }
}

flag_set! {
    /// Flags of `eventfd2`.
    EVENTFD from "linux/eventfd.h, eventfd(2)" {
        bits {
            EFD_SEMAPHORE = 0x1,
            EFD_NONBLOCK = 0x800,
            EFD_CLOEXEC = 0x8_0000,
        }
        also {}
    }
}

flag_set! {
    /// Flags of `signalfd4`.
    SIGNALFD from "linux/signalfd.h, signalfd(2)" {
        bits {
            SFD_NONBLOCK = 0x800,
            SFD_CLOEXEC = 0x8_0000,
        }
        also {}
    }
}

/// Every set of this file, for lookups by name and for the test against the headers.
pub static ALL: &[&FlagSet] = &[
    &FAMILY,
    &SOCKET_TYPE,
    &ACCEPT4,
    &SHUTDOWN,
    &MESSAGE,
    &SOCKET_LEVEL,
    &SOCKET_OPTION,
    &POLL,
    &EPOLL,
    &EPOLL_CTL,
    &EPOLL_CREATE,
    &EVENTFD,
    &SIGNALFD,
];
