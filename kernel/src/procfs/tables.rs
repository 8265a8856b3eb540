//! The tables of `/proc`: names, modes and functions of its files.

use super::What::{AtOpen, Constant, Control, DescriptorInfo, Descriptors, Directory, File, Link, Memory, Threads};
use super::{Offset, ProcEntry, limits, locks, maps, meminfo, process, status, system, watchdogs};

const fn dir(name: &'static str, entries: &'static [ProcEntry]) -> ProcEntry {
    ProcEntry { name, mode: 0o555, what: Directory(entries) }
}

const fn file(name: &'static str, read: super::Read) -> ProcEntry {
    ProcEntry { name, mode: 0o444, what: File(read) }
}

const fn constant(name: &'static str, read: super::Read) -> ProcEntry {
    ProcEntry { name, mode: 0o444, what: Constant(read) }
}

const fn private(name: &'static str, read: super::Read) -> ProcEntry {
    ProcEntry { name, mode: 0o400, what: File(read) }
}

const fn memory(name: &'static str, mode: u32, read: super::ReadMemory) -> ProcEntry {
    ProcEntry { name, mode, what: Memory(read) }
}

const fn control(name: &'static str, read: super::Read, write: super::Write) -> ProcEntry {
    ProcEntry { name, mode: 0o644, what: Control(read, write, Offset::Unseen) }
}

const fn name(name: &'static str, read: super::Read, write: super::Write) -> ProcEntry {
    ProcEntry { name, mode: 0o644, what: Control(read, write, Offset::Absent) }
}

/// A setting of `/proc/sys`.
const fn setting(name: &'static str, offset: Offset, read: super::Read, write: super::Write) -> ProcEntry {
    ProcEntry { name, mode: 0o644, what: Control(read, write, offset) }
}

const fn number(name: &'static str, read: super::Read, write: super::Write) -> ProcEntry {
    setting(name, Offset::Ignored, read, write)
}

const fn link(name: &'static str, follow: super::Follow) -> ProcEntry {
    ProcEntry { name, mode: 0o777, what: Link(follow) }
}

/// The top, without the processes.
pub(super) const ROOT: &[ProcEntry] = &[
    file("cmdline", system::command_line),
    file("cpuinfo", system::cpuinfo),
    file("devices", |_| {
        Ok(b"Character devices:\n  1 mem\n  4 ttyS\n  5 /dev/tty\n  5 /dev/console\n\nBlock devices:\n".to_vec())
    }),
    file("filesystems", |_| {
        Ok(b"nodev\tsysfs\nnodev\ttmpfs\nnodev\tproc\nnodev\tdevtmpfs\nnodev\tdevpts\nnodev\tramfs\n".to_vec())
    }),
    file("inject", |_| Ok(crate::inject::list())),
    file("interrupts", system::interrupts),
    private("kwab", system::live_dump),
    private("kwab-locks", locks::contended),
    file("loadavg", system::loadavg),
    file("meminfo", meminfo::meminfo),
    file("modules", |_| Ok(alloc::vec::Vec::new())),
    file("partitions", |_| Ok(b"major minor  #blocks  name\n\n".to_vec())),
    file("stat", system::stat),
    ProcEntry {
        name: "sysrq-trigger",
        mode: 0o200,
        what: Control(|_| Err(linux_abi::Errno::EIO), system::sysrq, Offset::Unseen),
    },
    file("swaps", |_| Ok(b"Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n".to_vec())),
    file("uptime", system::uptime),
    file("version", system::version),
    file("vmstat", meminfo::vmstat),
    link("mounts", |_| Ok(system::text_link("self/mounts"))),
    link("net", |_| Ok(system::text_link("self/net"))),
    link("self", |_| Ok(process::own_link(false))),
    link("thread-self", |_| Ok(process::own_link(true))),
    dir("sys", SYS),
];

const SYS: &[ProcEntry] = &[
    dir(
        "fs",
        &[
            dir("epoll", &[number("max_user_watches", system::epoll_watches, system::set_epoll_watches)]),
            number("file-max", system::open_files_limit, system::set_open_files_limit),
            constant("file-nr", system::open_files),
            constant("nr_open", |_| Ok(b"262144\n".to_vec())),
            constant("pipe-max-size", |_| Ok(b"1048576\n".to_vec())),
            number("pipe-user-pages-hard", system::pipe_pages_hard, system::set_pipe_pages_hard),
            number("pipe-user-pages-soft", system::pipe_pages_soft, system::set_pipe_pages_soft),
            constant("protected_fifos", |_| Ok(b"0\n".to_vec())),
            constant("protected_hardlinks", |_| Ok(b"1\n".to_vec())),
            constant("protected_regular", |_| Ok(b"0\n".to_vec())),
            constant("protected_symlinks", |_| Ok(b"1\n".to_vec())),
        ],
    ),
    dir(
        "kernel",
        &[
            constant("cap_last_cap", |_| Ok(b"40\n".to_vec())),
            setting("debug", Offset::Unseen, system::debug_categories, system::set_debug_categories),
            constant("dmesg_restrict", |_| Ok(b"1\n".to_vec())),
            setting("domainname", Offset::Joined, system::domain_name, system::set_domain_name),
            setting("dump_level", Offset::Unseen, system::dump_level, system::set_dump_level),
            setting("hostname", Offset::Joined, system::host_name, system::set_host_name),
            constant("hung_task_panic", |_| Ok(b"1\n".to_vec())),
            number("hung_task_timeout_secs", watchdogs::hung_task, watchdogs::set_hung_task),
            constant("ngroups_max", |_| Ok(b"65536\n".to_vec())),
            number("nmi_watchdog", watchdogs::nmi, watchdogs::set_nmi),
            constant("osrelease", system::os_release),
            constant("ostype", |_| Ok(b"Linux\n".to_vec())),
            constant("pid_max", |_| Ok(b"32768\n".to_vec())),
            number("printk", system::printk, system::set_printk),
            setting("printk_devkmsg", Offset::Refused, system::printk_devkmsg, system::set_printk_devkmsg),
            constant("randomize_va_space", system::randomize),
            constant("softlockup_panic", |_| Ok(b"1\n".to_vec())),
            number("stall_timeout_secs", watchdogs::stall, watchdogs::set_stall),
            number("threads-max", system::threads_max, system::set_threads_max),
            constant("version", system::os_version),
            number("watchdog", watchdogs::processors, watchdogs::set_processors),
            number("watchdog_thresh", watchdogs::threshold, watchdogs::set_threshold),
            dir(
                "random",
                &[
                    constant("boot_id", system::boot_id),
                    constant("entropy_avail", |_| Ok(b"256\n".to_vec())),
                    constant("poolsize", |_| Ok(b"256\n".to_vec())),
                    constant("uuid", system::uuid),
                ],
            ),
        ],
    ),
    dir(
        "vm",
        &[
            constant("max_map_count", |_| Ok(b"65530\n".to_vec())),
            constant("mmap_min_addr", |_| Ok(b"65536\n".to_vec())),
            constant("overcommit_memory", |_| Ok(b"0\n".to_vec())),
            number("nr_hugepages", system::huge_pages, system::set_huge_pages),
            number("nr_overcommit_hugepages", system::huge_pages_beyond, system::set_huge_pages_beyond),
            number("exec_image", system::exec_image, system::set_exec_image),
            number("prefault", system::prefault, system::set_prefault),
        ],
    ),
];

const NET: &[ProcEntry] = &[
    file("dev", |_| {
        Ok(b"\
            Inter-|   Receive                                                |  Transmit\n\
            \x20face |bytes    packets errs drop fifo frame compressed multicast|\
            bytes    packets errs drop fifo colls carrier compressed\n"
            .to_vec())
    }),
    file("unix", |_| Ok(b"Num       RefCount Protocol Flags    Type St Inode Path\n".to_vec())),
];

/// The files of `/proc/PID`.
pub(super) const PROCESS: &[ProcEntry] = &[
    ProcEntry { name: "auxv", mode: 0o400, what: AtOpen(process::auxv) },
    file("cgroup", |_| Ok(b"0::/\n".to_vec())),
    file("cmdline", process::command_line),
    name("comm", process::comm, process::set_comm),
    link("cwd", process::cwd),
    memory("environ", 0o400, process::environment),
    link("exe", process::exe),
    ProcEntry { name: "fd", mode: 0o500, what: Descriptors },
    ProcEntry { name: "fdinfo", mode: 0o555, what: DescriptorInfo },
    file("limits", limits::limits),
    file("loginuid", |_| Ok(b"4294967295".to_vec())),
    memory("maps", 0o444, maps::maps),
    file("mountinfo", process::mountinfo),
    file("mounts", process::mounts),
    dir("net", NET),
    file("oom_score", process::oom_score),
    control("oom_score_adj", process::oom_score_adj, process::set_oom_score_adj),
    private("personality", process::personality),
    link("root", process::root),
    memory("smaps", 0o444, maps::smaps),
    file("stat", status::stat),
    file("statm", status::statm),
    file("status", status::status),
    ProcEntry { name: "task", mode: 0o555, what: Threads },
    file("wchan", |_| Ok(b"0".to_vec())),
];

/// A thread: a process without the list of its threads.
pub(super) const THREAD: &[ProcEntry] = &[
    ProcEntry { name: "auxv", mode: 0o400, what: AtOpen(process::auxv) },
    file("cmdline", process::command_line),
    name("comm", process::comm, process::set_comm),
    link("cwd", process::cwd),
    memory("environ", 0o400, process::environment),
    link("exe", process::exe),
    ProcEntry { name: "fd", mode: 0o500, what: Descriptors },
    ProcEntry { name: "fdinfo", mode: 0o555, what: DescriptorInfo },
    file("limits", limits::limits),
    memory("maps", 0o444, maps::maps),
    file("mountinfo", process::mountinfo),
    file("mounts", process::mounts),
    link("root", process::root),
    file("stat", status::stat),
    file("statm", status::statm),
    file("status", status::status),
];
