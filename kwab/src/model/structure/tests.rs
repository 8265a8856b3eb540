//! Structures beside the text that strace 6.1 prints for the same bytes.

use super::*;

fn shown(name: &str, at: usize, args: [u64; 6], start: &[u8]) -> Option<String> {
    after(name, at, args, start, None)
}

/// Of a call that has returned this.
fn after(name: &str, at: usize, args: [u64; 6], start: &[u8], returned: Option<u64>) -> Option<String> {
    let mut out = String::new();
    write(name, at, &args.map(Some), Bytes { start, cut: false, returned }, &mut out)?;
    Some(out)
}

fn words(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

#[test]
fn structures_of_words_read_as_strace_prints_them() {
    let none = [0; 6];
    for (name, at, bytes, wanted) in [
        ("rt_sigprocmask", 1, words(&[0]), "[]"),
        ("rt_sigprocmask", 1, words(&[0x4002]), "[INT TERM]"),
        ("rt_sigprocmask", 1, words(&[!0]), "~[]"),
        // What musl blocks around fork: all but its own three.
        ("rt_sigprocmask", 1, words(&[!0x3_8000_0000]), "~[RTMIN RT_1 RT_2]"),
        ("rt_sigaction", 1, words(&[1, 0, 0, 0]), "{sa_handler=SIG_IGN, sa_mask=[], sa_flags=0}"),
        (
            "rt_sigaction",
            1,
            words(&[0x40_1000, 0x1400_0000, 0x40_2000, 2]),
            "{sa_handler=0x401000, sa_mask=[INT], sa_flags=SA_RESTORER|SA_RESTART, sa_restorer=0x402000}",
        ),
        ("nanosleep", 0, words(&[3, 500]), "{tv_sec=3, tv_nsec=500}"),
        ("select", 4, words(&[0, u64::MAX]), "{tv_sec=0, tv_usec=-1}"),
        ("setitimer", 1, words(&[0, 0, 1, 0]), "{it_interval={tv_sec=0, tv_usec=0}, it_value={tv_sec=1, tv_usec=0}}"),
        ("utimensat", 2, words(&[1, 2, 3, 4]), "[{tv_sec=1, tv_nsec=2}, {tv_sec=3, tv_nsec=4}]"),
        ("prlimit64", 2, words(&[1024, u64::MAX]), "{rlim_cur=1024, rlim_max=RLIM64_INFINITY}"),
        ("sigaltstack", 0, words(&[0x7000, 0, 8192]), "{ss_sp=0x7000, ss_flags=0, ss_size=8192}"),
    ] {
        assert_eq!(shown(name, at, none, &bytes).as_deref(), Some(wanted), "{name}");
    }
    let clone = words(&[0x100, 0, 0, 0, 17, 0, 0, 0, 0, 0, 0]);
    let wanted = "{flags=CLONE_VM, exit_signal=SIGCHLD, stack=NULL, stack_size=0x0}";
    assert_eq!(shown("clone3", 0, [0, 88, 0, 0, 0, 0], &clone).as_deref(), Some(wanted));
    let message = words(&[0, 0, 0x7000, 1, 0, 0, 0]);
    let wanted = "{msg_name=NULL, msg_namelen=0, msg_iov=0x7000, msg_iovlen=1, msg_control=NULL, msg_controllen=0, \
                  msg_flags=0}";
    assert_eq!(shown("sendmsg", 1, none, &message).as_deref(), Some(wanted));
}

#[test]
fn addresses_of_sockets_have_the_length_that_the_call_says() {
    let told = |bytes: &[u8]| shown("connect", 1, [3, 1, bytes.len() as u64, 0, 0, 0], bytes);
    let unix = "{sa_family=AF_UNIX, sun_path=\"/run/log\"}";
    assert_eq!(told(b"\x01\0/run/log\0").as_deref(), Some(unix));
    assert_eq!(told(b"\x01\0\0bus").as_deref(), Some("{sa_family=AF_UNIX, sun_path=@\"bus\"}"));
    assert_eq!(told(b"\x01\0").as_deref(), Some("{sa_family=AF_UNIX}"));
    let inet = "{sa_family=AF_INET, sin_port=htons(80), sin_addr=inet_addr(\"127.0.0.1\")}";
    assert_eq!(told(b"\x02\0\0\x50\x7f\0\0\x01\0\0\0\0\0\0\0\0").as_deref(), Some(inet));
    let mut six = [0; 28];
    (six[0], six[3], six[23]) = (10, 22, 1);
    let inet6 = "{sa_family=AF_INET6, sin6_port=htons(22), sin6_flowinfo=htonl(0), \
                 inet_pton(AF_INET6, \"::1\", &sin6_addr), sin6_scope_id=0}";
    assert_eq!(told(&six).as_deref(), Some(inet6));
    assert_eq!(told(b"\x02\0\0").as_deref(), Some("{sa_family=AF_INET, sa_data=\"\\x00\"}"));
}

#[test]
fn arrays_have_as_many_elements_as_another_argument_says_and_are_cut() {
    let poll = [&3u32.to_le_bytes()[..], &[1, 0, 0, 0], &(-1i32).to_le_bytes(), &[5, 0, 0, 0]].concat();
    let wanted = "[{fd=3, events=POLLIN}, {fd=-1, events=POLLIN|POLLOUT}]";
    assert_eq!(shown("poll", 0, [0, 2, 0, 0, 0, 0], &poll).as_deref(), Some(wanted));
    let vector = words(&[0x7000, 5, 0, 0]);
    let wanted = "[{iov_base=0x7000, iov_len=5}, {iov_base=NULL, iov_len=0}]";
    assert_eq!(shown("writev", 1, [1, 0, 2, 0, 0, 0], &vector).as_deref(), Some(wanted));
    let args = [1, 0, u64::MAX, 0, 0, 0];
    assert_eq!(size("writev", 1, &args.map(Some)), Some(16 * 16));
    assert!(shown("writev", 1, args, &[0; 256]).is_some_and(|text| text.ends_with("iov_len=0}, ...]")));
    let event = [1, 0, 0, 0x80, 7, 0, 0, 0, 0, 0, 0, 0];
    assert_eq!(shown("epoll_ctl", 3, [0; 6], &event).as_deref(), Some("{events=EPOLLIN|EPOLLET, data=0x7}"));
}

#[test]
fn what_is_cut_or_no_structure_is_not_shown() {
    assert_eq!(shown("nanosleep", 0, [0; 6], &[0; 15]), None);
    assert_eq!(shown("connect", 1, [0; 6], &[1, 0]), None);
    assert_eq!(shown("ioctl", 2, [0; 6], &[0; 99]), None);
    // FUTEX_WAKE has a number where FUTEX_WAIT has a time.
    assert_eq!(shown("futex", 3, [0, 129, 0, 0, 0, 0], &[0; 16]), None);
    assert_eq!(shown("futex", 3, [0, 128, 0, 0, 0, 0], &[0; 16]).as_deref(), Some("{tv_sec=0, tv_nsec=0}"));
}

#[test]
fn what_a_call_gave_reads_as_strace_prints_it() {
    let gave = |name: &str, at: usize, bytes: &[u8], returned: u64| after(name, at, [0; 6], bytes, Some(returned));
    let halves = |halves: &[u32]| halves.iter().flat_map(|half| half.to_le_bytes()).collect::<Vec<u8>>();
    let mut stat = [0; 56];
    stat[24..28].copy_from_slice(&0o100_644_u32.to_le_bytes());
    stat[48..56].copy_from_slice(&1234_u64.to_le_bytes());
    assert_eq!(gave("fstat", 1, &stat, 0).as_deref(), Some("{st_mode=S_IFREG|0644, st_size=1234, ...}"));
    stat[24..28].copy_from_slice(&0o20_620_u32.to_le_bytes());
    stat[40..48].copy_from_slice(&0x8801_u64.to_le_bytes());
    let tty = "{st_mode=S_IFCHR|0620, st_rdev=makedev(0x88, 0x1), ...}";
    assert_eq!(gave("newfstatat", 2, &stat, 0).as_deref(), Some(tty));
    for (status, wanted) in [
        (0x300, "[{WIFEXITED(s) && WEXITSTATUS(s) == 3}]"),
        (0x8b, "[{WIFSIGNALED(s) && WTERMSIG(s) == SIGSEGV && WCOREDUMP(s)}]"),
        (9, "[{WIFSIGNALED(s) && WTERMSIG(s) == SIGKILL}]"),
        (0x137f, "[{WIFSTOPPED(s) && WSTOPSIG(s) == SIGSTOP}]"),
        (0xffff, "[{WIFCONTINUED(s)}]"),
    ] {
        assert_eq!(gave("wait4", 1, &halves(&[status]), 7).as_deref(), Some(wanted));
    }
    assert_eq!(gave("pipe2", 0, &halves(&[3, 4]), 0).as_deref(), Some("[3, 4]"));
    assert_eq!(gave("accept", 2, &halves(&[110]), 5).as_deref(), Some("[110]"));
    assert_eq!(gave("accept", 1, b"\x01\0", 5).as_deref(), Some("{sa_family=AF_UNIX}"));
    assert_eq!(gave("read", 1, b"a\0\"\n", 4).as_deref(), Some(r#""a\x00\"\n""#));
    assert_eq!(gave("clock_gettime", 1, &words(&[7, 9]), 0).as_deref(), Some("{tv_sec=7, tv_nsec=9}"));
    assert_eq!(gave("getcwd", 0, b"/root\0", 6).as_deref(), Some("\"/root\""));
    let mut system = [0; 96];
    system[..5].copy_from_slice(b"Linux");
    system[65..69].copy_from_slice(b"kwab");
    assert_eq!(gave("uname", 0, &system, 0).as_deref(), Some("{sysname=\"Linux\", nodename=\"kwab\", ...}"));
    let usage = "{ru_utime={tv_sec=1, tv_usec=2}, ru_stime={tv_sec=3, tv_usec=4}, ...}";
    assert_eq!(gave("getrusage", 1, &words(&[1, 2, 3, 4]), 0).as_deref(), Some(usage));
    let child = halves(&[17, 0, 1, 0, 42, 1000, 3, 0]);
    let wanted = "{si_signo=SIGCHLD, si_code=1, si_pid=42, si_uid=1000, si_status=3, ...}";
    assert_eq!(gave("waitid", 2, &child, 0).as_deref(), Some(wanted));
    let ready = [5, 0, 0, 0, 1, 0, 1, 0];
    let poll = |returned| after("poll", 0, [0, 1, 0, 0, 0, 0], &ready, returned);
    assert_eq!(poll(Some(1)).as_deref(), Some("[{fd=5, events=POLLIN, revents=POLLIN}]"));
    assert_eq!(poll(None).as_deref(), Some("[{fd=5, events=POLLIN}]"), "an old answer");
    assert_eq!(gave("epoll_wait", 1, &[1, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0], 3).as_deref(), {
        Some("[{events=EPOLLIN, data=0x7}, ...]")
    });
}

#[test]
fn entries_of_a_folder_are_those_that_are_whole() {
    let entry = |ino: u64, kind: u8, name: &[u8]| {
        let mut bytes = [&ino.to_le_bytes()[..], &[0; 8], &24_u16.to_le_bytes(), &[kind], name].concat();
        bytes.resize(24, 0);
        bytes
    };
    let bytes = [entry(2, 4, b"."), entry(9, 8, b"abc"), entry(3, 8, b"x")].concat();
    let shown = |len: usize| after("getdents64", 1, [0; 6], &bytes[..len], Some(72)).expect("entries");
    let two = "[{d_ino=2, d_type=DT_DIR, d_name=\".\"}, {d_ino=9, d_type=DT_REG, d_name=\"abc\"}";
    assert_eq!(shown(60), format!("{two}, ...]"));
    assert_eq!(shown(48), format!("{two}]"));
    assert_eq!(shown(10), "[...]");
}

#[test]
fn what_stood_there_before_and_more_than_there_were_is_not_shown() {
    assert_eq!(after("wait4", 1, [0; 6], &[0; 4], Some(0)), None, "WNOHANG, and none ended");
    let many = vec![1; 1 << 16];
    assert_eq!(after("pipe2", 0, [0; 6], &many, Some(0)).as_deref(), Some("[16843009, 16843009]"));
    let shown = after("writev", 1, [1, 0, u64::MAX, 0, 0, 0], &many, Some(5)).expect("vectors");
    assert_eq!(shown.matches("iov_base").count(), 16);
}

#[test]
fn no_bytes_and_half_structures_are_not_shown() {
    for name in ["fstat", "pipe2", "clock_gettime", "wait4"] {
        let at = usize::from(!matches!(name, "pipe2"));
        assert_eq!(after(name, at, [0; 6], &[1, 0, 0], Some(0)), None, "{name}");
    }
}
