//! Structures beside the text that strace 6.1 prints for the same bytes.

use super::*;

fn shown(name: &str, at: usize, args: [u64; 6], bytes: &[u8]) -> Option<String> {
    let mut out = String::new();
    write(name, at, &args.map(Some), bytes, &mut out)?;
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
    assert_eq!(shown("read", 1, [0; 6], &[0; 99]), None);
    // FUTEX_WAKE has a number where FUTEX_WAIT has a time.
    assert_eq!(shown("futex", 3, [0, 129, 0, 0, 0, 0], &[0; 16]), None);
    assert_eq!(shown("futex", 3, [0, 128, 0, 0, 0, 0], &[0; 16]).as_deref(), Some("{tv_sec=0, tv_nsec=0}"));
}
