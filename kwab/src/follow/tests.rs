//! A console in time: what is on disk and announced after each line.

use kwab_format::armour::{LINE_LEN, encode_line};
use kwab_format::record::Text;

use super::*;
use crate::model::{Death, Depth, Dump};

const OOPS: &str = include_str!("oops.txt");
const BANNER: &str = "[    0.000000] Linux version 6.1.0-44-amd64 (debian-kernel@lists.debian.org) (gcc-12)\n";
const PANIC: &str = "[    5.200000] Kernel panic - not syncing: Fatal exception\n";

/// A follower of a console and a clock that only the test moves.
struct Bench {
    folder: tempfile::TempDir,
    follower: Follower,
    now: Instant,
}

impl Bench {
    fn new() -> Self {
        Self::of(false)
    }

    fn of(live: bool) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let now = Instant::now();
        let settings = Settings {
            source: "console".to_string(),
            folder: folder.path().to_path_buf(),
            stem: "c".to_string(),
            before: 10,
            quiet_after: Duration::from_millis(500),
            silence: Some(Duration::from_secs(5)),
            dialects: None,
            live,
        };
        Self { follower: Follower::new(settings, now).expect("it starts"), folder, now }
    }

    fn take(&mut self, text: &str) -> Vec<FollowEvent> {
        self.follower.take(text.as_bytes(), self.now).expect("written")
    }

    /// Lets time pass, with everything done when it is due.
    fn pass(&mut self, ms: u64) -> Vec<FollowEvent> {
        let end = self.now + Duration::from_millis(ms);
        let mut events = Vec::new();
        while let Some(due) = self.follower.next_due().filter(|due| *due <= end) {
            self.now = self.now.max(due);
            events.extend(self.follower.tick(self.now).expect("written"));
        }
        self.now = end;
        events
    }

    fn files(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.folder.path()).expect("there");
        let mut names: Vec<_> = entries.map(|entry| entry.expect("read").file_name().into_string()).collect();
        names.sort();
        names.into_iter().map(|name| name.expect("UTF-8")).collect()
    }

    fn dump(&self, name: &str) -> Dump {
        let dump = Dump::open(&self.folder.path().join(name), Depth::All).expect("a dump");
        assert!(dump.defects().is_empty() && dump.file.ended, "{name} is whole");
        dump
    }

    fn log(&self, name: &str) -> String {
        let dump = self.dump(name);
        let lines = dump.records::<Text<'_>>().filter_map(|text| text.bytes);
        lines.map(|line| String::from_utf8_lossy(line).into_owned() + "\n").collect()
    }
}

#[test]
fn the_last_lines_are_on_disk_while_nothing_has_crashed_if_that_was_asked_for() {
    let mut quiet = Bench::new();
    quiet.take(BANNER);
    assert!(crashes(&quiet.pass(2000)).is_empty() && quiet.files().is_empty());
    let mut bench = Bench::of(true);
    bench.take(BANNER);
    assert_eq!(bench.files(), ["c-live.kwab"]);
    bench.take("[    1.0] soon after\n");
    assert!(!bench.log("c-live.kwab").contains("soon after"), "written at most twice a second");
    bench.pass(500);
    assert!(bench.log("c-live.kwab").contains("soon after"));
    assert!(Death::of(&bench.dump("c-live.kwab")).is_none());
    // A crash has a dump of its own, with the lines before it; the other goes on behind it.
    bench.take(OOPS);
    bench.pass(1000);
    assert_eq!(bench.files(), ["c-1.kwab", "c-live.kwab"]);
    assert!(bench.log("c-1.kwab").contains("soon after"));
    bench.take("[    9.0] it lives\n");
    bench.follower.end().expect("written");
    assert!(bench.log("c-live.kwab").contains("it lives"));
}

fn crashes(events: &[FollowEvent]) -> Vec<&CrashFound> {
    events.iter().filter_map(|event| if let FollowEvent::Crash(found) = event { Some(found) } else { None }).collect()
}

#[test]
fn an_oops_is_announced_soon_after_its_last_line_and_has_the_lines_before_it() {
    let mut bench = Bench::new();
    assert!(bench.take(BANNER).is_empty());
    for number in 0..40 {
        assert!(bench.take(&format!("[    4.0] line {number}\n")).is_empty());
    }
    let events = bench.take(OOPS);
    assert!(matches!(events.as_slice(), [FollowEvent::Begins { line: 42, path: Some(_) }]), "{events:?}");
    assert_eq!(bench.files(), ["c-1.kwab"]);
    let events = bench.pass(60);
    let found = crashes(&events);
    assert_eq!(found.len(), 1, "{events:?}");
    assert_eq!((found[0].kind.as_str(), found[0].line), ("panic", Some(42)));
    let dump = bench.dump("c-1.kwab");
    assert!(Death::of(&dump).is_some_and(|death| death.is_of_kernel()));
    let version = dump.identity().and_then(|identity| identity.kernel_version.map(<[u8]>::to_vec));
    assert!(version.is_some_and(|version| version.starts_with(b"6.1.0-44")), "the banner had left the window");
    let log = bench.log("c-1.kwab");
    assert!(log.contains("line 39") && log.contains("line 30") && !log.contains("line 9\n"), "{log}");
}

#[test]
fn every_prefix_of_a_crash_is_a_valid_dump_on_disk() {
    let mut bench = Bench::new();
    bench.take(BANNER);
    let mut lines = 0;
    for line in OOPS.split_inclusive('\n') {
        bench.take(line);
        bench.pass(10);
        lines += 1;
        bench.dump("c-1.kwab");
    }
    assert_eq!(lines, 16);
    bench.pass(600);
    assert!(bench.log("c-1.kwab").contains("end trace"));
    assert_eq!(bench.files(), ["c-1.kwab"], "one crash, one dump");
}

#[test]
fn the_panic_behind_an_oops_grows_its_dump_and_a_second_oops_later_has_its_own() {
    let mut bench = Bench::new();
    bench.take(BANNER);
    bench.take(OOPS);
    assert_eq!(crashes(&bench.pass(100)).len(), 1);
    bench.take(PANIC);
    let events = bench.pass(1200);
    assert!(events.iter().any(|event| matches!(event, FollowEvent::Grew(_))), "{events:?}");
    assert!(crashes(&events).is_empty() && bench.log("c-1.kwab").contains("Fatal exception"));
    bench.take("[    9.0] quiet again\n");
    bench.take(OOPS);
    assert_eq!(crashes(&bench.pass(1200)).len(), 1);
    assert_eq!(bench.files(), ["c-1.kwab", "c-2.kwab"]);
    assert!(bench.log("c-2.kwab").contains("quiet again"));
}

#[test]
fn a_report_without_an_end_is_announced_after_silence_and_the_end_of_the_console_announces_at_once() {
    let mut bench = Bench::new();
    bench.take(BANNER);
    let cut: String = OOPS.split_inclusive('\n').take(9).collect();
    bench.take(&cut);
    assert!(crashes(&bench.pass(400)).is_empty());
    assert_eq!(crashes(&bench.pass(200)).len(), 1);
    bench.pass(2000);
    bench.take(&cut);
    bench.take("[    6.0] half a li");
    let events = bench.follower.end().expect("written");
    assert_eq!(crashes(&events).len(), 1, "{events:?}");
    assert!(matches!(events.last(), Some(FollowEvent::Ended { lines: 20, .. })), "{events:?}");
    assert!(bench.log("c-2.kwab").contains("half a li"));
}

#[test]
fn a_last_line_that_was_cut_begins_a_crash_when_the_console_ends() {
    let mut bench = Bench::new();
    bench.take(BANNER);
    bench.take("[    5.000000] BUG: kernel NULL pointer dereference, address: 00");
    let events = bench.follower.end().expect("written");
    assert_eq!(crashes(&events).len(), 1, "{events:?}");
    assert!(matches!(events.last(), Some(FollowEvent::Ended { lines: 2, .. })), "{events:?}");
    assert!(bench.log("c-1.kwab").contains("address: 00"));
}

#[test]
fn a_crash_that_is_over_gets_no_line_that_came_after_it_however_late_it_is_taken() {
    let mut bench = Bench::new();
    bench.take(BANNER);
    bench.take(OOPS);
    assert_eq!(crashes(&bench.pass(100)).len(), 1);
    // The follower was not scheduled meanwhile.
    bench.now += Duration::from_secs(2);
    bench.take("[    9.0] between\n");
    assert!(bench.follower.is_idle() && !bench.log("c-1.kwab").contains("between"));
}

#[test]
fn silence_is_told_once_and_leaves_the_last_lines() {
    let mut bench = Bench::new();
    bench.take(BANNER);
    bench.take("[    1.0] the last words\n");
    let events = bench.pass(20_000);
    assert!(matches!(events.as_slice(), [FollowEvent::Silent { seconds: 5, line: 2, path: Some(_) }]), "{events:?}");
    assert_eq!(bench.files(), ["c-silent-1.kwab"]);
    assert!(bench.log("c-silent-1.kwab").contains("the last words"));
    assert_eq!(bench.take("[    2.0] again\n"), [FollowEvent::Resumed]);
    bench.take(OOPS);
    bench.pass(100);
    assert_eq!(bench.files(), ["c-2.kwab", "c-silent-1.kwab"]);
}

#[test]
fn the_memory_of_a_console_that_speaks_for_ever_is_bounded() {
    let mut bench = Bench::new();
    let line = "x".repeat(1000) + "\n";
    for _ in 0..20_000 {
        bench.take(&line);
    }
    let (mut held, mut byte) = (0, [0; 4096]);
    let mut window = bench.follower.window.read();
    while let Ok(count @ 1..) = io::Read::read(&mut window, &mut byte) {
        held += count;
    }
    assert!((10_000..=21_000).contains(&held), "{held}: between ten and twenty lines and a bit");
}

#[test]
fn an_armoured_dump_in_the_stream_is_a_crash_with_all_that_the_kernel_wrote() {
    let bytes = std::fs::read("../testing/dumps/null-dereference.kwab").expect("checked in");
    let own = Dump::from_bytes(bytes.clone()).expect("a dump");
    let id = own.file.header.expect("it has one").dump_id;
    let mut out = [0; LINE_LEN + 1];
    let mut bench = Bench::new();
    bench.take(BANNER);
    let mut events = Vec::new();
    for (index, piece) in bytes.chunks(48).enumerate() {
        let line = encode_line(id, u32::try_from(index * 48).expect("small"), piece, &mut out).to_vec();
        // Other processors go on printing.
        if index % 7 == 3 {
            events.extend(bench.take("[    6.000000] e1000: link is up\n"));
        }
        // A serial line ends where a read ends only by chance.
        let (one, two) = line.split_at(line.len() / 2);
        for part in [one, two] {
            events.extend(bench.follower.take(part, bench.now).expect("written"));
        }
    }
    events.extend(bench.take("\n"));
    events.extend(bench.pass(2_000));
    events.extend(bench.follower.end().expect("written"));
    let found = crashes(&events);
    assert_eq!(found.len(), 1, "{events:#?}");
    assert_eq!(found[0].signature, crate::report::inspect::signature_of(&own));
    let name = found[0].path.file_name().and_then(|name| name.to_str()).expect("UTF-8");
    let kept = bench.dump(name);
    assert_eq!(Death::of(&kept).map(|death| death.ip), Death::of(&own).map(|death| death.ip));
    for section in &own.file.sections {
        let kind = section.header.kind;
        assert!(kept.file.sections.iter().any(|kept| kept.header.kind == kind), "{kind:?} is there");
    }
}
