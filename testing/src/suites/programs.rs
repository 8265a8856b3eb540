//! Real dynamic programs, unmodified from Debian: each does a small task and prints its result.
//!
//! The packages are unpacked into the image as they are, with glibc and what else they need; under both kernels the
//! same files run. A job passes when it ends with status zero and prints the line that the table expects.

use anyhow::Result;

use super::Results;
use crate::image::{self, Image, Node};
use crate::jobs::{End, Job, Report};
use crate::setup::Consent;
use crate::{debian, guest};

/// What the programs below consist of.
const PACKAGES: &[&str] = &[
    "libc6",
    "libtinfo6",
    "bash",
    "coreutils",
    "libselinux1",
    "libpcre2-8-0",
    "libgmp10",
    "libacl1",
    "libattr1",
    "libgcc-s1",
    "lua5.4",
    "liblua5.4-0",
    "libreadline8",
    "sqlite3",
    "libsqlite3-0",
    "zlib1g",
    "python3-minimal",
    "python3.11-minimal",
    "libpython3.11-minimal",
    "libexpat1",
    "libssl3",
    "libstdc++6",
    "readline-common",
    "age",
    "fzf",
    "gron",
    "pup",
    "ripgrep",
    "libcrypt1",
    "perl-base",
];

/// Name, command, the line that shows it worked.
const PROGRAMS: &[(&str, &[&str], &str)] = &[
    (
        "bash_arrays_and_pipes",
        &[
            "/bin/bash",
            "-c",
            "PATH=/usr/bin:/bin; a=(3 1 2); printf '%s\\n' \"${a[@]}\" | sort | paste -sd, - && \
             echo ${BASH_VERSION%%.*}",
        ],
        "1,2,3",
    ),
    (
        "bash_jobs_and_wait",
        &["/bin/bash", "-c", "for i in 1 2 3; do (exit $i) & done; wait $!; echo last=$?"],
        "last=3",
    ),
    ("bash_process_substitution", &["/bin/bash", "-c", "while read x; do echo got $x; done < <(echo one)"], "got one"),
    (
        "coreutils_checksum",
        &["/bin/bash", "-c", "PATH=/usr/bin:/bin; seq 1 1000 | sha256sum | cut -c1-16"],
        "67d4ff71d43921d5",
    ),
    (
        "coreutils_copy_and_list",
        &["/bin/bash", "-c", "PATH=/usr/bin:/bin; mkdir a; seq 9 >a/f; cp -a a b; ls b; cmp a/f b/f && echo same"],
        "same",
    ),
    (
        "lua_closures_and_strings",
        &["/usr/bin/lua5.4", "-e", "local t={} for i=1,100 do t[i]=i*i end print(#t, select('#', table.unpack(t)))"],
        "100\t100",
    ),
    (
        "sqlite_on_tmpfs",
        &[
            "/usr/bin/sqlite3",
            "test.db",
            "create table t(a,b); with recursive n(x) as (select 1 union all select x+1 from n where x<500) \
             insert into t select x, x*x from n; select count(*), sum(b) from t;",
        ],
        "500|41791750",
    ),
    (
        "python_threads_and_subprocess",
        &[
            "/usr/bin/python3.11",
            "-c",
            "import threading,subprocess;r=[];t=[threading.Thread(target=lambda i=i:r.append(i)) for i in range(8)];\
             [x.start() for x in t];[x.join() for x in t];\
             print(sorted(r), subprocess.run(['/bin/echo','child'],capture_output=True,text=True).stdout.strip())",
        ],
        "[0, 1, 2, 3, 4, 5, 6, 7] child",
    ),
    // Go's runtime without libc (static), with libc's loader, and with goroutines on several threads and collection of
    // garbage.
    (
        "go_static_html_filter",
        &["/bin/bash", "-c", "echo '<ul><li>a<li class=x>hello</ul>' | /usr/bin/pup 'li.x text{}'"],
        "hello",
    ),
    (
        "go_json_lines",
        &["/bin/bash", "-c", r#"echo '{"a":[1,{"b":"c"}]}' | /usr/bin/gron --monochrome"#],
        r#"json.a[1].b = "c";"#,
    ),
    (
        "go_encrypt_and_decrypt",
        &[
            "/bin/bash",
            "-c",
            "cd /usr/bin; ./age-keygen -o /tmp/k 2>/tmp/e && ./seq 1 200000 | ./age -r $(./age-keygen -y /tmp/k) \
             | ./age -d -i /tmp/k | ./sha256sum | ./cut -c1-16",
        ],
        "5af7b95208fdcff4",
    ),
    (
        "go_goroutines_match_in_parallel",
        &["/bin/bash", "-c", "PATH=/usr/bin; seq 1 20000 | fzf --filter=1999 | wc -l"],
        "38",
    ),
    (
        "rust_threads_search_a_tree",
        &[
            "/bin/bash",
            "-c",
            "PATH=/usr/bin:/bin; for i in 1 2 3 4 5 6 7 8; do mkdir d$i; seq $i 3000 >d$i/f; done; \
             rg -j4 --no-filename -c '(77|9{2})\\d$' . | paste -sd+",
        ],
        "60+60+60+60+60+60+60+60",
    ),
    (
        "perl_fork_pipe_and_alarm",
        &[
            "/usr/bin/perl",
            "-e",
            "my %h; $h{length $_}++ for map { 'x' x ($_ % 7) } 1..700; pipe(my $r, my $w); my $p = fork; \
             if (!$p) { close $r; print $w join(',', map { \"$_=$h{$_}\" } sort keys %h); exit 3 } \
             close $w; my $l = <$r>; waitpid($p, 0); my $s = $? >> 8; \
             $SIG{ALRM} = sub { die \"alarm\" }; eval { alarm 1; select(undef, undef, undef, 9) }; \
             print \"$l $s \", $@ =~ /^alarm/ ? 'alarm' : 'none', \"\\n\"",
        ],
        "0=100,1=100,2=100,3=100,4=100,5=100,6=100 3 alarm",
    ),
];

/// Python reads its library file by file; everything else is quick.
const SECONDS: u32 = 60;

pub(super) fn prepare(consent: Consent) -> Result<(Image, Vec<Job>)> {
    let mut image = image::base(consent)?;
    image.program("/sbin/runner", &guest::program("runner", consent)?)?;
    for package in PACKAGES {
        image.tree("/", &debian::unpacked(package, consent)?)?;
    }
    // Debian's loader lies in /lib64; BusyBox's applets of the same names give way to the real programs.
    image.put("/lib64/ld-linux-x86-64.so.2", 0o777, Node::Link("/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2".into()));
    let job = |(name, words, _): &(&str, &[&str], &str)| Job {
        name: (*name).to_owned(),
        seconds: SECONDS,
        words: words.iter().map(|word| (*word).to_owned()).collect(),
    };
    Ok((image, PROGRAMS.iter().map(job).collect()))
}

pub(super) fn results(reports: &[Report]) -> Results {
    let word = |report: &Report| {
        let expected = PROGRAMS.iter().find(|row| row.0 == report.name).map(|row| row.2);
        let printed = report.lines.iter().any(|line| Some(line.as_str()) == expected);
        match (&report.end, printed) {
            (End::Exit(0), true) => "pass".to_owned(),
            (End::Exit(0), false) => format!("wrong output: {}", report.lines.join(" / ")),
            (end, _) => format!("{end}: {}", report.lines.last().map_or("", String::as_str)),
        }
    };
    reports.iter().map(|report| (report.name.clone(), word(report))).collect()
}
