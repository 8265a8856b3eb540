//! The list of system calls; see the module above for what the columns mean.

use super::ArgKind::{
    CloneFlags, DirFd, Fd, Flags, Flags64, Hex, Id, Int, Long, Mode, Offset, Path, Pid, Ptr, Signal, Size, Str, Time,
    Uint,
};
use super::{Arg, ResultKind, Syscall, Traits};
use crate::flags::{file::*, memory::*, process::*, socket::*, system::*, time::*};

macro_rules! syscalls {
    ($($nr:literal $name:ident($($arg:ident: $kind:expr),*) -> $result:ident $([$($property:ident),*])?;)*) => {
        /// Numbers by name, to match on: `nr::openat`.
        #[expect(non_upper_case_globals, reason = "the names are the table's own")]
        pub mod nr {
            $(#[doc = concat!("`", stringify!($name), "` is call ", stringify!($nr), ".")] pub const $name: u64 = $nr;)*
        }
        /// Every call by rising number.
        pub static TABLE: &[Syscall] = &[$(Syscall {
            nr: $nr,
            name: stringify!($name),
            args: &[$(Arg { name: stringify!($arg), kind: $kind }),*],
            result: ResultKind::$result,
            traits: Traits::NONE$($(.with(Traits::$property))*)?,
        },)*];
    };
}

syscalls! {
    0 read(fd: Fd, buf: Ptr, count: Size) -> Size [FILLS_MEMORY, READS_SOURCE, AWAITS_PEER];
    1 write(fd: Fd, buf: Ptr, count: Size) -> Size [PREPARES_PEER];
    2 open(pathname: Path, flags: Flags(&OPEN), mode: Mode) -> Fd;
    3 close(fd: Fd) -> Int [PREPARES_PEER];
    4 stat(pathname: Path, statbuf: Ptr) -> Int [FILLS_MEMORY];
    5 fstat(fd: Fd, statbuf: Ptr) -> Int [FILLS_MEMORY];
    6 lstat(pathname: Path, statbuf: Ptr) -> Int [FILLS_MEMORY];
    7 poll(fds: Ptr, nfds: Uint, timeout: Time) -> Int [FILLS_MEMORY, READS_SOURCE, AWAITS_PEER];
    8 lseek(fd: Fd, offset: Offset, whence: Flags(&SEEK)) -> Int;
    9 mmap(addr: Ptr, length: Size, prot: Flags64(&PROT), flags: Flags64(&MAP), fd: Fd, offset: Hex) -> Address
        [FILLS_MEMORY, PREPARES_FUTEX];
    10 mprotect(addr: Ptr, len: Size, prot: Flags64(&PROT)) -> Int [CHANGES_RANGE, PREPARES_FUTEX];
    11 munmap(addr: Ptr, length: Size) -> Int [FILLS_MEMORY, CHANGES_RANGE];
    12 brk(addr: Ptr) -> Address [FILLS_MEMORY];
    13 rt_sigaction(signum: Signal, act: Ptr, oldact: Ptr, sigsetsize: Size) -> Int [FILLS_MEMORY, PREPARES_SIGNAL];
    14 rt_sigprocmask(how: Flags(&SIG_HOW), set: Ptr, oldset: Ptr, sigsetsize: Size) -> Int
        [FILLS_MEMORY, PREPARES_SIGNAL];
    15 rt_sigreturn() -> Int;
    16 ioctl(fd: Fd, request: Flags(&IOCTL), argp: Ptr) -> Int [FILLS_MEMORY];
    17 pread64(fd: Fd, buf: Ptr, count: Size, offset: Offset) -> Size [FILLS_MEMORY, AWAITS_PEER];
    18 pwrite64(fd: Fd, buf: Ptr, count: Size, offset: Offset) -> Size [PREPARES_PEER];
    19 readv(fd: Fd, iov: Ptr, iovcnt: Int) -> Size [FILLS_MEMORY, READS_SOURCE, AWAITS_PEER];
    20 writev(fd: Fd, iov: Ptr, iovcnt: Int) -> Size [PREPARES_PEER];
    21 access(pathname: Path, mode: Flags(&ACCESS)) -> Int;
    22 pipe(pipefd: Ptr) -> Int [FILLS_MEMORY, MAKES_SOURCE];
    23 select(nfds: Int, readfds: Ptr, writefds: Ptr, exceptfds: Ptr, timeout: Ptr) -> Int [FILLS_MEMORY, AWAITS_PEER];
    24 sched_yield() -> Int [VARIES];
    25 mremap(old_address: Ptr, old_size: Size, new_size: Size, flags: Flags64(&MREMAP), new_address: Ptr) -> Address
        [FILLS_MEMORY];
    26 msync(addr: Ptr, length: Size, flags: Flags(&MSYNC)) -> Int;
    27 mincore(addr: Ptr, length: Size, vec: Ptr) -> Int [FILLS_MEMORY];
    28 madvise(addr: Ptr, length: Size, advice: Flags(&MADVISE)) -> Int [FILLS_MEMORY, CHANGES_RANGE];
    29 shmget(key: Hex, size: Size, shmflg: Flags(&IPC_GET)) -> Int;
    30 shmat(shmid: Int, shmaddr: Ptr, shmflg: Flags(&SHM_AT)) -> Address;
    31 shmctl(shmid: Int, cmd: Flags(&IPC_CTL), buf: Ptr) -> Int [FILLS_MEMORY];
    32 dup(oldfd: Fd) -> Fd;
    33 dup2(oldfd: Fd, newfd: Fd) -> Fd [PREPARES_PEER];
    34 pause() -> Int [AWAITS_SIGNAL];
    35 nanosleep(req: Ptr, rem: Ptr) -> Int [FILLS_MEMORY];
    36 getitimer(which: Flags(&ITIMER), curr_value: Ptr) -> Int [FILLS_MEMORY];
    37 alarm(seconds: Time) -> Int [PREPARES_SIGNAL];
    38 setitimer(which: Flags(&ITIMER), new_value: Ptr, old_value: Ptr) -> Int [FILLS_MEMORY, PREPARES_SIGNAL];
    39 getpid() -> Pid;
    40 sendfile(out_fd: Fd, in_fd: Fd, offset: Ptr, count: Size) -> Size;
    41 socket(domain: Flags(&FAMILY), type_: Flags(&SOCKET_TYPE), protocol: Int) -> Fd;
    42 connect(sockfd: Fd, addr: Ptr, addrlen: Uint) -> Int [AWAITS_PEER, PREPARES_PEER];
    43 accept(sockfd: Fd, addr: Ptr, addrlen: Ptr) -> Fd [FILLS_MEMORY, MAKES_SOURCE, AWAITS_PEER];
    44 sendto(sockfd: Fd, buf: Ptr, len: Size, flags: Flags(&MESSAGE), dest_addr: Ptr, addrlen: Uint) -> Size
        [PREPARES_PEER];
    45 recvfrom(sockfd: Fd, buf: Ptr, len: Size, flags: Flags(&MESSAGE), src_addr: Ptr, addrlen: Ptr) -> Size
        [FILLS_MEMORY, READS_SOURCE, AWAITS_PEER];
    46 sendmsg(sockfd: Fd, msg: Ptr, flags: Flags(&MESSAGE)) -> Size [PREPARES_PEER];
    47 recvmsg(sockfd: Fd, msg: Ptr, flags: Flags(&MESSAGE)) -> Size [FILLS_MEMORY, READS_SOURCE, AWAITS_PEER];
    48 shutdown(sockfd: Fd, how: Flags(&SHUTDOWN)) -> Int [PREPARES_PEER];
    49 bind(sockfd: Fd, addr: Ptr, addrlen: Uint) -> Int [PREPARES_PEER];
    50 listen(sockfd: Fd, backlog: Int) -> Int [PREPARES_PEER];
    51 getsockname(sockfd: Fd, addr: Ptr, addrlen: Ptr) -> Int [FILLS_MEMORY];
    52 getpeername(sockfd: Fd, addr: Ptr, addrlen: Ptr) -> Int [FILLS_MEMORY];
    53 socketpair(domain: Flags(&FAMILY), type_: Flags(&SOCKET_TYPE), protocol: Int, sv: Ptr) -> Int
        [FILLS_MEMORY, MAKES_SOURCE];
    54 setsockopt(sockfd: Fd, level: Flags(&SOCKET_LEVEL), optname: Flags(&SOCKET_OPTION),
        optval: Ptr, optlen: Uint) -> Int;
    55 getsockopt(sockfd: Fd, level: Flags(&SOCKET_LEVEL), optname: Flags(&SOCKET_OPTION),
        optval: Ptr, optlen: Ptr) -> Int
        [FILLS_MEMORY];
    56 clone(flags: CloneFlags, stack: Ptr, parent_tid: Ptr, child_tid: Ptr, tls: Ptr) -> Pid
        [PREPARES_SIGNAL, PREPARES_PEER, PREPARES_FUTEX];
    57 fork() -> Pid [PREPARES_SIGNAL, PREPARES_PEER];
    58 vfork() -> Pid [PREPARES_SIGNAL, PREPARES_PEER];
    59 execve(pathname: Path, argv: Ptr, envp: Ptr) -> Int;
    60 exit(status: Int) -> Never;
    61 wait4(pid: Pid, wstatus: Ptr, options: Flags(&WAIT), rusage: Ptr) -> Pid [FILLS_MEMORY, AWAITS_CHILD];
    62 kill(pid: Pid, sig: Signal) -> Int [PREPARES_SIGNAL, PREPARES_PEER, PREPARES_CHILD, SENDS_SIGNAL];
    63 uname(buf: Ptr) -> Int [FILLS_MEMORY];
    64 semget(key: Hex, nsems: Int, semflg: Flags(&IPC_GET)) -> Int;
    65 semop(semid: Int, sops: Ptr, nsops: Size) -> Int [AWAITS_PEER, PREPARES_PEER];
    66 semctl(semid: Int, semnum: Int, cmd: Flags(&IPC_CTL), arg: Ptr) -> Int [FILLS_MEMORY, PREPARES_PEER];
    67 shmdt(shmaddr: Ptr) -> Int;
    68 msgget(key: Hex, msgflg: Flags(&IPC_GET)) -> Int;
    69 msgsnd(msqid: Int, msgp: Ptr, msgsz: Size, msgflg: Flags(&IPC_GET)) -> Int [PREPARES_PEER];
    70 msgrcv(msqid: Int, msgp: Ptr, msgsz: Size, msgtyp: Long, msgflg: Flags(&IPC_GET)) -> Size
        [FILLS_MEMORY, AWAITS_PEER];
    71 msgctl(msqid: Int, cmd: Flags(&IPC_CTL), buf: Ptr) -> Int [FILLS_MEMORY];
    72 fcntl(fd: Fd, cmd: Flags(&FCNTL), arg: Hex) -> Int [FILLS_MEMORY, PREPARES_SIGNAL, PREPARES_PEER];
    73 flock(fd: Fd, operation: Flags(&FLOCK)) -> Int [AWAITS_PEER, PREPARES_PEER];
    74 fsync(fd: Fd) -> Int;
    75 fdatasync(fd: Fd) -> Int;
    76 truncate(path: Path, length: Offset) -> Int;
    77 ftruncate(fd: Fd, length: Offset) -> Int;
    78 getdents(fd: Fd, dirp: Ptr, count: Uint) -> Size [FILLS_MEMORY];
    79 getcwd(buf: Ptr, size: Size) -> Size [FILLS_MEMORY];
    80 chdir(path: Path) -> Int;
    81 fchdir(fd: Fd) -> Int;
    82 rename(oldpath: Path, newpath: Path) -> Int;
    83 mkdir(pathname: Path, mode: Mode) -> Int;
    84 rmdir(pathname: Path) -> Int;
    85 creat(pathname: Path, mode: Mode) -> Fd;
    86 link(oldpath: Path, newpath: Path) -> Int;
    87 unlink(pathname: Path) -> Int;
    88 symlink(target: Path, linkpath: Path) -> Int;
    89 readlink(pathname: Path, buf: Ptr, bufsiz: Size) -> Size [FILLS_MEMORY];
    90 chmod(pathname: Path, mode: Mode) -> Int;
    91 fchmod(fd: Fd, mode: Mode) -> Int;
    92 chown(pathname: Path, owner: Id, group: Id) -> Int;
    93 fchown(fd: Fd, owner: Id, group: Id) -> Int;
    94 lchown(pathname: Path, owner: Id, group: Id) -> Int;
    95 umask(mask: Mode) -> Int;
    96 gettimeofday(tv: Ptr, tz: Ptr) -> Int [VARIES, FILLS_MEMORY];
    97 getrlimit(resource: Flags(&RLIMIT), rlim: Ptr) -> Int [FILLS_MEMORY];
    98 getrusage(who: Flags(&RUSAGE), usage: Ptr) -> Int [FILLS_MEMORY];
    99 sysinfo(info: Ptr) -> Int [FILLS_MEMORY];
    100 times(buf: Ptr) -> Int [VARIES, FILLS_MEMORY];
    101 ptrace(request: Flags64(&PTRACE), pid: Pid, addr: Ptr, data: Ptr) -> Hex [PREPARES_CHILD];
    102 getuid() -> Int;
    103 syslog(type_: Flags(&SYSLOG), bufp: Ptr, len: Int) -> Int;
    104 getgid() -> Int;
    105 setuid(uid: Id) -> Int;
    106 setgid(gid: Id) -> Int;
    107 geteuid() -> Int;
    108 getegid() -> Int;
    109 setpgid(pid: Pid, pgid: Pid) -> Int;
    110 getppid() -> Pid;
    111 getpgrp() -> Pid;
    112 setsid() -> Pid;
    113 setreuid(ruid: Id, euid: Id) -> Int;
    114 setregid(rgid: Id, egid: Id) -> Int;
    115 getgroups(size: Int, list: Ptr) -> Int [FILLS_MEMORY];
    116 setgroups(size: Size, list: Ptr) -> Int;
    117 setresuid(ruid: Id, euid: Id, suid: Id) -> Int;
    118 getresuid(ruid: Ptr, euid: Ptr, suid: Ptr) -> Int [FILLS_MEMORY];
    119 setresgid(rgid: Id, egid: Id, sgid: Id) -> Int;
    120 getresgid(rgid: Ptr, egid: Ptr, sgid: Ptr) -> Int [FILLS_MEMORY];
    121 getpgid(pid: Pid) -> Pid;
    122 setfsuid(fsuid: Id) -> Int;
    123 setfsgid(fsgid: Id) -> Int;
    124 getsid(pid: Pid) -> Pid;
    125 capget(hdrp: Ptr, datap: Ptr) -> Int [FILLS_MEMORY];
    126 capset(hdrp: Ptr, datap: Ptr) -> Int;
    127 rt_sigpending(set: Ptr, sigsetsize: Size) -> Int [FILLS_MEMORY];
    128 rt_sigtimedwait(set: Ptr, info: Ptr, timeout: Ptr, sigsetsize: Size) -> Int [FILLS_MEMORY, AWAITS_SIGNAL];
    129 rt_sigqueueinfo(tgid: Pid, sig: Signal, info: Ptr) -> Int [PREPARES_SIGNAL, SENDS_SIGNAL];
    130 rt_sigsuspend(mask: Ptr, sigsetsize: Size) -> Int [AWAITS_SIGNAL];
    131 sigaltstack(ss: Ptr, old_ss: Ptr) -> Int [FILLS_MEMORY];
    132 utime(filename: Path, times: Ptr) -> Int;
    133 mknod(pathname: Path, mode: Mode, dev: Hex) -> Int;
    134 uselib(library: Path) -> Int;
    135 personality(persona: Flags(&PERSONALITY)) -> Hex;
    136 ustat(dev: Hex, ubuf: Ptr) -> Int;
    137 statfs(path: Path, buf: Ptr) -> Int [FILLS_MEMORY];
    138 fstatfs(fd: Fd, buf: Ptr) -> Int [FILLS_MEMORY];
    139 sysfs(option: Int, arg1: Hex, arg2: Hex) -> Int;
    140 getpriority(which: Flags(&PRIO), who: Pid) -> Int;
    141 setpriority(which: Flags(&PRIO), who: Pid, prio: Int) -> Int;
    142 sched_setparam(pid: Pid, param: Ptr) -> Int;
    143 sched_getparam(pid: Pid, param: Ptr) -> Int [FILLS_MEMORY];
    144 sched_setscheduler(pid: Pid, policy: Flags(&SCHED_POLICY), param: Ptr) -> Int;
    145 sched_getscheduler(pid: Pid) -> Int;
    146 sched_get_priority_max(policy: Flags(&SCHED_POLICY)) -> Int;
    147 sched_get_priority_min(policy: Flags(&SCHED_POLICY)) -> Int;
    148 sched_rr_get_interval(pid: Pid, tp: Ptr) -> Int [FILLS_MEMORY];
    149 mlock(addr: Ptr, len: Size) -> Int;
    150 munlock(addr: Ptr, len: Size) -> Int;
    151 mlockall(flags: Flags(&MLOCKALL)) -> Int;
    152 munlockall() -> Int;
    153 vhangup() -> Int;
    154 modify_ldt(func: Int, ptr: Ptr, bytecount: Size) -> Int;
    155 pivot_root(new_root: Path, put_old: Path) -> Int;
    156 _sysctl(args: Ptr) -> Int;
    157 prctl(option: Flags(&PRCTL), arg2: Hex, arg3: Hex, arg4: Hex, arg5: Hex) -> Int [FILLS_MEMORY];
    158 arch_prctl(code: Flags(&ARCH_PRCTL), addr: Ptr) -> Int;
    159 adjtimex(buf: Ptr) -> Int;
    160 setrlimit(resource: Flags(&RLIMIT), rlim: Ptr) -> Int;
    161 chroot(path: Path) -> Int;
    162 sync() -> Int;
    163 acct(filename: Path) -> Int;
    164 settimeofday(tv: Ptr, tz: Ptr) -> Int;
    165 mount(source: Str, target: Path, filesystemtype: Str, mountflags: Flags64(&MOUNT), data: Ptr) -> Int;
    166 umount2(target: Path, flags: Flags(&UMOUNT)) -> Int;
    167 swapon(path: Path, swapflags: Hex) -> Int;
    168 swapoff(path: Path) -> Int;
    169 reboot(magic: Flags(&REBOOT_MAGIC), magic2: Flags(&REBOOT_MAGIC), cmd: Flags(&REBOOT), arg: Ptr) -> Int;
    170 sethostname(name: Str, len: Size) -> Int;
    171 setdomainname(name: Str, len: Size) -> Int;
    172 iopl(level: Int) -> Int;
    173 ioperm(from: Hex, num: Size, turn_on: Int) -> Int;
    174 create_module(name: Str, size: Size) -> Int;
    175 init_module(module_image: Ptr, len: Size, param_values: Str) -> Int;
    176 delete_module(name: Str, flags: Hex) -> Int;
    177 get_kernel_syms(table: Ptr) -> Int;
    178 query_module(name: Str, which: Int, buf: Ptr, bufsize: Size, ret: Ptr) -> Int;
    179 quotactl(cmd: Hex, special: Str, id: Id, addr: Ptr) -> Int;
    180 nfsservctl(cmd: Int, argp: Ptr, resp: Ptr) -> Int;
    181 getpmsg() -> Int;
    182 putpmsg() -> Int;
    183 afs_syscall() -> Int;
    184 tuxcall() -> Int;
    185 security() -> Int;
    186 gettid() -> Pid;
    187 readahead(fd: Fd, offset: Offset, count: Size) -> Int;
    188 setxattr(path: Path, name: Str, value: Ptr, size: Size, flags: Flags(&XATTR)) -> Int;
    189 lsetxattr(path: Path, name: Str, value: Ptr, size: Size, flags: Flags(&XATTR)) -> Int;
    190 fsetxattr(fd: Fd, name: Str, value: Ptr, size: Size, flags: Flags(&XATTR)) -> Int;
    191 getxattr(path: Path, name: Str, value: Ptr, size: Size) -> Size [FILLS_MEMORY];
    192 lgetxattr(path: Path, name: Str, value: Ptr, size: Size) -> Size [FILLS_MEMORY];
    193 fgetxattr(fd: Fd, name: Str, value: Ptr, size: Size) -> Size [FILLS_MEMORY];
    194 listxattr(path: Path, list: Ptr, size: Size) -> Size [FILLS_MEMORY];
    195 llistxattr(path: Path, list: Ptr, size: Size) -> Size [FILLS_MEMORY];
    196 flistxattr(fd: Fd, list: Ptr, size: Size) -> Size [FILLS_MEMORY];
    197 removexattr(path: Path, name: Str) -> Int;
    198 lremovexattr(path: Path, name: Str) -> Int;
    199 fremovexattr(fd: Fd, name: Str) -> Int;
    200 tkill(tid: Pid, sig: Signal) -> Int [PREPARES_SIGNAL, PREPARES_PEER, PREPARES_CHILD, SENDS_SIGNAL];
    201 time(tloc: Ptr) -> Int [VARIES];
    202 futex(uaddr: Ptr, futex_op: Flags(&FUTEX), val: Uint, timeout: Ptr, uaddr2: Ptr, val3: Hex) -> Int
        [VARIES, AWAITS_FUTEX, PREPARES_FUTEX];
    203 sched_setaffinity(pid: Pid, cpusetsize: Size, mask: Ptr) -> Int;
    204 sched_getaffinity(pid: Pid, cpusetsize: Size, mask: Ptr) -> Int [FILLS_MEMORY];
    205 set_thread_area(u_info: Ptr) -> Int;
    206 io_setup(nr_events: Uint, ctx_idp: Ptr) -> Int;
    207 io_destroy(ctx_id: Hex) -> Int;
    208 io_getevents(ctx_id: Hex, min_nr: Long, nr: Long, events: Ptr, timeout: Ptr) -> Int;
    209 io_submit(ctx_id: Hex, nr: Long, iocbpp: Ptr) -> Int;
    210 io_cancel(ctx_id: Hex, iocb: Ptr, result: Ptr) -> Int;
    211 get_thread_area(u_info: Ptr) -> Int;
    212 lookup_dcookie(cookie: Hex, buffer: Ptr, len: Size) -> Size;
    213 epoll_create(size: Int) -> Fd;
    214 epoll_ctl_old() -> Int;
    215 epoll_wait_old() -> Int;
    216 remap_file_pages(addr: Ptr, size: Size, prot: Flags64(&PROT), pgoff: Size, flags: Flags64(&MAP)) -> Int;
    217 getdents64(fd: Fd, dirp: Ptr, count: Size) -> Size [FILLS_MEMORY];
    218 set_tid_address(tidptr: Ptr) -> Pid [PREPARES_FUTEX];
    219 restart_syscall() -> Int [VARIES];
    220 semtimedop(semid: Int, sops: Ptr, nsops: Size, timeout: Ptr) -> Int [AWAITS_PEER];
    221 fadvise64(fd: Fd, offset: Offset, len: Size, advice: Flags(&FADVISE)) -> Int;
    222 timer_create(clockid: Flags(&CLOCK), sevp: Ptr, timerid: Ptr) -> Int [PREPARES_SIGNAL];
    223 timer_settime(timerid: Int, flags: Flags(&TIMER), new_value: Ptr, old_value: Ptr) -> Int
        [FILLS_MEMORY, PREPARES_SIGNAL];
    224 timer_gettime(timerid: Int, curr_value: Ptr) -> Int [FILLS_MEMORY];
    225 timer_getoverrun(timerid: Int) -> Int [VARIES];
    226 timer_delete(timerid: Int) -> Int;
    227 clock_settime(clockid: Flags(&CLOCK), tp: Ptr) -> Int;
    228 clock_gettime(clockid: Flags(&CLOCK), tp: Ptr) -> Int [VARIES, FILLS_MEMORY];
    229 clock_getres(clockid: Flags(&CLOCK), res: Ptr) -> Int [FILLS_MEMORY];
    230 clock_nanosleep(clockid: Flags(&CLOCK), flags: Flags(&TIMER), request: Ptr, remain: Ptr) -> Int [FILLS_MEMORY];
    231 exit_group(status: Int) -> Never;
    232 epoll_wait(epfd: Fd, events: Ptr, maxevents: Int, timeout: Time) -> Int
        [FILLS_MEMORY, READS_SOURCE, AWAITS_PEER];
    233 epoll_ctl(epfd: Fd, op: Flags(&EPOLL_CTL), fd: Fd, event: Ptr) -> Int [PREPARES_PEER];
    234 tgkill(tgid: Pid, tid: Pid, sig: Signal) -> Int [PREPARES_SIGNAL, PREPARES_PEER, PREPARES_CHILD, SENDS_SIGNAL];
    235 utimes(filename: Path, times: Ptr) -> Int;
    236 vserver() -> Int;
    237 mbind(addr: Ptr, len: Size, mode: Hex, nodemask: Ptr, maxnode: Size, flags: Hex) -> Int;
    238 set_mempolicy(mode: Hex, nodemask: Ptr, maxnode: Size) -> Int;
    239 get_mempolicy(mode: Ptr, nodemask: Ptr, maxnode: Size, addr: Ptr, flags: Hex) -> Int;
    240 mq_open(name: Str, oflag: Flags(&OPEN), mode: Mode, attr: Ptr) -> Fd [MAKES_SOURCE];
    241 mq_unlink(name: Str) -> Int;
    242 mq_timedsend(mqdes: Fd, msg_ptr: Ptr, msg_len: Size, msg_prio: Uint, abs_timeout: Ptr) -> Int [PREPARES_PEER];
    243 mq_timedreceive(mqdes: Fd, msg_ptr: Ptr, msg_len: Size, msg_prio: Ptr, abs_timeout: Ptr) -> Size
        [FILLS_MEMORY, AWAITS_PEER];
    244 mq_notify(mqdes: Fd, sevp: Ptr) -> Int [PREPARES_SIGNAL];
    245 mq_getsetattr(mqdes: Fd, newattr: Ptr, oldattr: Ptr) -> Int [FILLS_MEMORY];
    246 kexec_load(entry: Ptr, nr_segments: Size, segments: Ptr, flags: Hex) -> Int;
    247 waitid(idtype: Flags(&IDTYPE), id: Pid, infop: Ptr, options: Flags(&WAIT), rusage: Ptr) -> Int
        [FILLS_MEMORY, AWAITS_CHILD];
    248 add_key(type_: Str, description: Str, payload: Ptr, plen: Size, keyring: Int) -> Int;
    249 request_key(type_: Str, description: Str, callout_info: Str, dest_keyring: Int) -> Int;
    250 keyctl(operation: Int, arg2: Hex, arg3: Hex, arg4: Hex, arg5: Hex) -> Int;
    251 ioprio_set(which: Int, who: Pid, ioprio: Hex) -> Int;
    252 ioprio_get(which: Int, who: Pid) -> Hex;
    253 inotify_init() -> Fd;
    254 inotify_add_watch(fd: Fd, pathname: Path, mask: Flags(&INOTIFY)) -> Int;
    255 inotify_rm_watch(fd: Fd, wd: Int) -> Int;
    256 migrate_pages(pid: Pid, maxnode: Size, old_nodes: Ptr, new_nodes: Ptr) -> Int;
    257 openat(dirfd: DirFd, pathname: Path, flags: Flags(&OPEN), mode: Mode) -> Fd;
    258 mkdirat(dirfd: DirFd, pathname: Path, mode: Mode) -> Int;
    259 mknodat(dirfd: DirFd, pathname: Path, mode: Mode, dev: Hex) -> Int;
    260 fchownat(dirfd: DirFd, pathname: Path, owner: Id, group: Id, flags: Flags(&AT_STAT)) -> Int;
    261 futimesat(dirfd: DirFd, pathname: Path, times: Ptr) -> Int;
    262 newfstatat(dirfd: DirFd, pathname: Path, statbuf: Ptr, flags: Flags(&AT_STAT)) -> Int [FILLS_MEMORY];
    263 unlinkat(dirfd: DirFd, pathname: Path, flags: Flags(&AT_UNLINK)) -> Int;
    264 renameat(olddirfd: DirFd, oldpath: Path, newdirfd: DirFd, newpath: Path) -> Int;
    265 linkat(olddirfd: DirFd, oldpath: Path, newdirfd: DirFd, newpath: Path, flags: Flags(&AT_LINK)) -> Int;
    266 symlinkat(target: Path, newdirfd: DirFd, linkpath: Path) -> Int;
    267 readlinkat(dirfd: DirFd, pathname: Path, buf: Ptr, bufsiz: Size) -> Size [FILLS_MEMORY];
    268 fchmodat(dirfd: DirFd, pathname: Path, mode: Mode) -> Int;
    269 faccessat(dirfd: DirFd, pathname: Path, mode: Flags(&ACCESS)) -> Int;
    270 pselect6(nfds: Int, readfds: Ptr, writefds: Ptr, exceptfds: Ptr, timeout: Ptr, sigmask: Ptr) -> Int
        [FILLS_MEMORY, AWAITS_PEER];
    271 ppoll(fds: Ptr, nfds: Uint, tmo_p: Ptr, sigmask: Ptr, sigsetsize: Size) -> Int
        [FILLS_MEMORY, READS_SOURCE, AWAITS_PEER];
    272 unshare(flags: Flags64(&CLONE)) -> Int;
    273 set_robust_list(head: Ptr, len: Size) -> Int [PREPARES_FUTEX];
    274 get_robust_list(pid: Pid, head_ptr: Ptr, len_ptr: Ptr) -> Int [FILLS_MEMORY];
    275 splice(fd_in: Fd, off_in: Ptr, fd_out: Fd, off_out: Ptr, len: Size, flags: Flags(&SPLICE)) -> Size
        [AWAITS_PEER, PREPARES_PEER];
    276 tee(fd_in: Fd, fd_out: Fd, len: Size, flags: Flags(&SPLICE)) -> Size;
    277 sync_file_range(fd: Fd, offset: Offset, nbytes: Offset, flags: Flags(&SYNC_RANGE)) -> Int;
    278 vmsplice(fd: Fd, iov: Ptr, nr_segs: Size, flags: Flags(&SPLICE)) -> Size;
    279 move_pages(pid: Pid, count: Size, pages: Ptr, nodes: Ptr, status: Ptr, flags: Hex) -> Int;
    280 utimensat(dirfd: DirFd, pathname: Path, times: Ptr, flags: Flags(&AT_STAT)) -> Int;
    281 epoll_pwait(epfd: Fd, events: Ptr, maxevents: Int, timeout: Time, sigmask: Ptr, sigsetsize: Size) -> Int
        [FILLS_MEMORY, READS_SOURCE, AWAITS_PEER];
    282 signalfd(fd: Fd, mask: Ptr, sizemask: Size) -> Fd;
    283 timerfd_create(clockid: Flags(&CLOCK), flags: Flags(&TIMERFD_CREATE)) -> Fd [MAKES_SOURCE];
    284 eventfd(initval: Uint) -> Fd;
    285 fallocate(fd: Fd, mode: Flags(&FALLOCATE), offset: Offset, len: Offset) -> Int;
    286 timerfd_settime(fd: Fd, flags: Flags(&TIMERFD_SET), new_value: Ptr, old_value: Ptr) -> Int
        [FILLS_MEMORY, PREPARES_PEER];
    287 timerfd_gettime(fd: Fd, curr_value: Ptr) -> Int [FILLS_MEMORY];
    288 accept4(sockfd: Fd, addr: Ptr, addrlen: Ptr, flags: Flags(&ACCEPT4)) -> Fd
        [FILLS_MEMORY, MAKES_SOURCE, AWAITS_PEER];
    289 signalfd4(fd: Fd, mask: Ptr, sizemask: Size, flags: Flags(&SIGNALFD)) -> Fd [MAKES_SOURCE, PREPARES_PEER];
    290 eventfd2(initval: Uint, flags: Flags(&EVENTFD)) -> Fd [MAKES_SOURCE];
    291 epoll_create1(flags: Flags(&EPOLL_CREATE)) -> Fd;
    292 dup3(oldfd: Fd, newfd: Fd, flags: Flags(&CLOEXEC_ONLY)) -> Fd [PREPARES_PEER];
    293 pipe2(pipefd: Ptr, flags: Flags(&PIPE2)) -> Int [FILLS_MEMORY, MAKES_SOURCE];
    294 inotify_init1(flags: Flags(&INOTIFY_INIT)) -> Fd [MAKES_SOURCE];
    295 preadv(fd: Fd, iov: Ptr, iovcnt: Int, pos_l: Offset, pos_h: Hex) -> Size [FILLS_MEMORY];
    296 pwritev(fd: Fd, iov: Ptr, iovcnt: Int, pos_l: Offset, pos_h: Hex) -> Size;
    297 rt_tgsigqueueinfo(tgid: Pid, tid: Pid, sig: Signal, info: Ptr) -> Int [PREPARES_SIGNAL, SENDS_SIGNAL];
    298 perf_event_open(attr: Ptr, pid: Pid, cpu: Int, group_fd: Fd, flags: Hex) -> Fd;
    299 recvmmsg(sockfd: Fd, msgvec: Ptr, vlen: Uint, flags: Flags(&MESSAGE), timeout: Ptr) -> Int
        [FILLS_MEMORY, AWAITS_PEER];
    300 fanotify_init(flags: Hex, event_f_flags: Flags(&OPEN)) -> Fd;
    301 fanotify_mark(fanotify_fd: Fd, flags: Hex, mask: Hex, dirfd: DirFd, pathname: Path) -> Int;
    302 prlimit64(pid: Pid, resource: Flags(&RLIMIT), new_limit: Ptr, old_limit: Ptr) -> Int [FILLS_MEMORY];
    303 name_to_handle_at(dirfd: DirFd, pathname: Path, handle: Ptr, mount_id: Ptr, flags: Flags(&AT_LINK)) -> Int;
    304 open_by_handle_at(mount_fd: DirFd, handle: Ptr, flags: Flags(&OPEN)) -> Fd;
    305 clock_adjtime(clk_id: Flags(&CLOCK), buf: Ptr) -> Int;
    306 syncfs(fd: Fd) -> Int;
    307 sendmmsg(sockfd: Fd, msgvec: Ptr, vlen: Uint, flags: Flags(&MESSAGE)) -> Int [PREPARES_PEER];
    308 setns(fd: Fd, nstype: Flags(&CLONE)) -> Int;
    309 getcpu(cpu: Ptr, node: Ptr, tcache: Ptr) -> Int [VARIES];
    310 process_vm_readv(pid: Pid, local_iov: Ptr, liovcnt: Size, remote_iov: Ptr, riovcnt: Size, flags: Hex) -> Size
        [FILLS_MEMORY];
    311 process_vm_writev(pid: Pid, local_iov: Ptr, liovcnt: Size, remote_iov: Ptr, riovcnt: Size, flags: Hex) -> Size;
    312 kcmp(pid1: Pid, pid2: Pid, type_: Int, idx1: Hex, idx2: Hex) -> Int;
    313 finit_module(fd: Fd, param_values: Str, flags: Hex) -> Int;
    314 sched_setattr(pid: Pid, attr: Ptr, flags: Hex) -> Int;
    315 sched_getattr(pid: Pid, attr: Ptr, size: Size, flags: Hex) -> Int [FILLS_MEMORY];
    316 renameat2(olddirfd: DirFd, oldpath: Path, newdirfd: DirFd, newpath: Path, flags: Flags(&RENAME)) -> Int;
    317 seccomp(operation: Flags(&SECCOMP), flags: Hex, args: Ptr) -> Int;
    318 getrandom(buf: Ptr, buflen: Size, flags: Flags(&GETRANDOM)) -> Size;
    319 memfd_create(name: Str, flags: Flags(&MEMFD)) -> Fd;
    320 kexec_file_load(kernel_fd: Fd, initrd_fd: Fd, cmdline_len: Size, cmdline: Str, flags: Hex) -> Int;
    321 bpf(cmd: Int, attr: Ptr, size: Uint) -> Int;
    322 execveat(dirfd: DirFd, pathname: Path, argv: Ptr, envp: Ptr, flags: Flags(&AT_STAT)) -> Int;
    323 userfaultfd(flags: Flags(&OPEN)) -> Fd;
    324 membarrier(cmd: Flags(&MEMBARRIER), flags: Hex, cpu_id: Int) -> Int;
    325 mlock2(addr: Ptr, len: Size, flags: Flags(&MLOCK)) -> Int;
    326 copy_file_range(fd_in: Fd, off_in: Ptr, fd_out: Fd, off_out: Ptr, len: Size, flags: Hex) -> Size;
    327 preadv2(fd: Fd, iov: Ptr, iovcnt: Int, pos_l: Offset, pos_h: Hex, flags: Flags(&RWF)) -> Size [FILLS_MEMORY];
    328 pwritev2(fd: Fd, iov: Ptr, iovcnt: Int, pos_l: Offset, pos_h: Hex, flags: Flags(&RWF)) -> Size;
    329 pkey_mprotect(addr: Ptr, len: Size, prot: Flags64(&PROT), pkey: Int) -> Int;
    330 pkey_alloc(flags: Hex, access_rights: Hex) -> Int;
    331 pkey_free(pkey: Int) -> Int;
    332 statx(dirfd: DirFd, pathname: Path, flags: Flags(&AT_STATX), mask: Flags(&STATX_MASK), statxbuf: Ptr) -> Int
        [FILLS_MEMORY];
    333 io_pgetevents(ctx_id: Hex, min_nr: Long, nr: Long, events: Ptr, timeout: Ptr, usig: Ptr) -> Int;
    334 rseq(rseq: Ptr, rseq_len: Uint, flags: Flags(&RSEQ), sig: Hex) -> Int;
    424 pidfd_send_signal(pidfd: Fd, sig: Signal, info: Ptr, flags: Hex) -> Int
        [PREPARES_SIGNAL, PREPARES_PEER, PREPARES_CHILD, SENDS_SIGNAL];
    425 io_uring_setup(entries: Uint, p: Ptr) -> Fd;
    426 io_uring_enter(fd: Fd, to_submit: Uint, min_complete: Uint, flags: Hex, argp: Ptr, argsz: Size) -> Int;
    427 io_uring_register(fd: Fd, opcode: Uint, arg: Ptr, nr_args: Uint) -> Int;
    428 open_tree(dirfd: DirFd, pathname: Path, flags: Hex) -> Fd;
    429 move_mount(from_dirfd: DirFd, from_pathname: Path, to_dirfd: DirFd, to_pathname: Path, flags: Hex) -> Int;
    430 fsopen(fsname: Str, flags: Hex) -> Fd;
    431 fsconfig(fd: Fd, cmd: Int, key: Str, value: Ptr, aux: Int) -> Int;
    432 fsmount(fsfd: Fd, flags: Hex, attr_flags: Hex) -> Fd;
    433 fspick(dirfd: DirFd, pathname: Path, flags: Hex) -> Fd;
    434 pidfd_open(pid: Pid, flags: Flags(&PIDFD)) -> Fd [MAKES_SOURCE];
    435 clone3(cl_args: Ptr, size: Size) -> Pid [PREPARES_SIGNAL, PREPARES_PEER, PREPARES_FUTEX];
    436 close_range(first: Uint, last: Uint, flags: Flags(&CLOSE_RANGE)) -> Int;
    437 openat2(dirfd: DirFd, pathname: Path, how: Ptr, size: Size) -> Fd;
    438 pidfd_getfd(pidfd: Fd, targetfd: Fd, flags: Hex) -> Fd;
    439 faccessat2(dirfd: DirFd, pathname: Path, mode: Flags(&ACCESS), flags: Flags(&AT_ACCESS)) -> Int;
    440 process_madvise(pidfd: Fd, iovec: Ptr, vlen: Size, advice: Flags(&MADVISE), flags: Hex) -> Size;
    441 epoll_pwait2(epfd: Fd, events: Ptr, maxevents: Int, timeout: Ptr, sigmask: Ptr, sigsetsize: Size) -> Int
        [FILLS_MEMORY, AWAITS_PEER];
    442 mount_setattr(dirfd: DirFd, pathname: Path, flags: Hex, attr: Ptr, size: Size) -> Int;
    443 quotactl_fd(fd: Fd, cmd: Hex, id: Id, addr: Ptr) -> Int;
    444 landlock_create_ruleset(attr: Ptr, size: Size, flags: Hex) -> Fd;
    445 landlock_add_rule(ruleset_fd: Fd, rule_type: Int, rule_attr: Ptr, flags: Hex) -> Int;
    446 landlock_restrict_self(ruleset_fd: Fd, flags: Hex) -> Int;
    447 memfd_secret(flags: Flags(&CLOEXEC_ONLY)) -> Fd;
    448 process_mrelease(pidfd: Fd, flags: Hex) -> Int;
    449 futex_waitv(waiters: Ptr, nr_futexes: Uint, flags: Hex, timeout: Ptr, clockid: Flags(&CLOCK)) -> Int;
    450 set_mempolicy_home_node(start: Ptr, len: Size, home_node: Size, flags: Hex) -> Int;
    451 cachestat(fd: Fd, cstat_range: Ptr, cstat: Ptr, flags: Hex) -> Int;
    452 fchmodat2(dirfd: DirFd, pathname: Path, mode: Mode, flags: Flags(&AT_STAT)) -> Int;
    453 map_shadow_stack(addr: Ptr, size: Size, flags: Hex) -> Address;
    454 futex_wake(uaddr: Ptr, mask: Hex, nr: Int, flags: Hex) -> Int;
    455 futex_wait(uaddr: Ptr, val: Hex, mask: Hex, flags: Hex, timeout: Ptr, clockid: Flags(&CLOCK)) -> Int;
    456 futex_requeue(waiters: Ptr, flags: Hex, nr_wake: Int, nr_requeue: Int) -> Int;
    457 statmount(req: Ptr, buf: Ptr, bufsize: Size, flags: Hex) -> Int;
    458 listmount(req: Ptr, mnt_ids: Ptr, nr_mnt_ids: Size, flags: Hex) -> Int;
    459 lsm_get_self_attr(attr: Uint, ctx: Ptr, size: Ptr, flags: Hex) -> Int;
    460 lsm_set_self_attr(attr: Uint, ctx: Ptr, size: Uint, flags: Hex) -> Int;
    461 lsm_list_modules(ids: Ptr, size: Ptr, flags: Hex) -> Int;
    462 mseal(addr: Ptr, len: Size, flags: Hex) -> Int;
}
