//! Tests of the line discipline: what the screen shows, and what read(2) returns.

use super::termios::*;
use super::*;
use alloc::string::String;
use alloc::vec::Vec;

struct Bench {
    tty: LineDiscipline,
    screen: Vec<u8>,
    actions: Vec<Action>,
}

impl Bench {
    fn new(change: impl FnOnce(&mut Termios)) -> Self {
        let mut termios = Termios::console();
        change(&mut termios);
        Self { tty: LineDiscipline::new(termios), screen: Vec::new(), actions: Vec::new() }
    }

    fn type_keys(&mut self, keys: &[u8]) -> &mut Self {
        for &key in keys {
            let action = self.tty.input(key, &mut |bytes| self.screen.extend_from_slice(bytes));
            if action != Action::None {
                self.actions.push(action);
            }
        }
        self
    }

    fn read(&mut self, size: usize) -> Option<String> {
        let mut buffer = alloc::vec![0; size];
        match self.tty.take(&mut buffer) {
            Taken::Nothing => None,
            Taken::Bytes(count) => Some(String::from_utf8_lossy(&buffer[..count]).into_owned()),
        }
    }

    fn screen(&self) -> String {
        String::from_utf8_lossy(&self.screen).into_owned()
    }
}

#[test]
fn return_ends_the_line_and_the_reader_gets_a_newline() {
    let mut bench = Bench::new(|_| {});
    bench.type_keys(b"ls");
    assert_eq!(bench.read(100), None);
    bench.type_keys(b"\r");
    assert_eq!(bench.actions, [Action::Readable]);
    assert_eq!(bench.screen(), "ls\r\n");
    assert_eq!(bench.read(2), Some("ls".into()));
    assert_eq!(bench.read(100), Some("\n".into()));
    assert_eq!(bench.read(100), None);
}

#[test]
fn two_lines_typed_ahead_are_read_one_by_one() {
    let mut bench = Bench::new(|_| {});
    bench.type_keys(b"a\rbc\r");
    assert_eq!((bench.read(100), bench.read(100)), (Some("a\n".into()), Some("bc\n".into())));
}

#[test]
fn erasing_a_tab_moves_the_cursor_back_to_where_it_was() {
    let mut bench = Bench::new(|_| {});
    bench.tty.write(b"$ ", &mut |_| {});
    bench.type_keys(b"a\t\x7f");
    assert_eq!(bench.screen(), String::from("a\t") + &"\x08 \x08".repeat(5));
    bench.type_keys(b"\x01\x7f\r");
    assert!(bench.screen().ends_with("^A\x08 \x08\x08 \x08\r\n"));
    assert_eq!(bench.read(9), Some("a\n".into()));
}

#[test]
fn a_line_of_tabs_is_taken_off_the_screen_in_few_pieces() {
    let mut bench = Bench::new(|_| {});
    bench.type_keys(&[b'\t'; 4000]);
    bench.screen.clear();
    let mut pieces = 0;
    let screen = &mut bench.screen;
    bench.tty.input(0x15, &mut |bytes| {
        pieces += 1;
        screen.extend_from_slice(bytes);
    });
    assert!(bench.screen.chunks(3).all(|column| column == b"\x08 \x08"));
    assert_eq!((bench.screen.len(), pieces), (3 * 8 * 4000, 500));
}

#[test]
fn word_and_line_erase_take_the_right_bytes() {
    let mut bench = Bench::new(|_| {});
    bench.type_keys(b"echo foo-bar  \x17x\r");
    assert_eq!(bench.read(99), Some("echo foo-x\n".into()));
    bench.type_keys(b"nonsense\x15ok\r");
    assert_eq!(bench.read(99), Some("ok\n".into()));
}

#[test]
fn erasing_utf8_takes_the_whole_character_and_one_column() {
    let mut bench = Bench::new(|termios| termios.iflag |= IUTF8);
    bench.type_keys("aä\x7f\r".as_bytes());
    assert_eq!(bench.screen(), "aä\x08 \x08\r\n");
    assert_eq!(bench.read(9), Some("a\n".into()));
}

#[test]
fn end_of_file_on_an_empty_line_reads_as_nothing_and_on_a_begun_one_ends_it() {
    let mut bench = Bench::new(|_| {});
    bench.type_keys(b"\x04");
    assert_eq!(bench.read(9), Some(String::new()));
    assert_eq!(bench.read(9), None);
    bench.type_keys(b"ab\x04");
    assert_eq!(bench.read(9), Some("ab".into()));
    assert_eq!(bench.read(9), None);
}

#[test]
fn the_interrupt_key_drops_the_line_and_shows_itself() {
    let mut bench = Bench::new(|_| {});
    bench.type_keys(b"rm -rf\x03x\r");
    assert_eq!(bench.actions, [Action::Interrupt, Action::Readable]);
    assert_eq!(bench.read(9), Some("x\n".into()));
    assert!(bench.screen().starts_with("rm -rf^C"));
    bench.type_keys(b"\x1a\x1c");
    assert_eq!(bench.actions[2..], [Action::Suspend, Action::Quit]);
}

#[test]
fn a_quoted_interrupt_key_is_input() {
    let mut bench = Bench::new(|_| {});
    bench.type_keys(b"\x16\x03\r");
    assert_eq!(bench.actions, [Action::Readable]);
    assert_eq!(bench.read(9), Some("\x03\n".into()));
}

#[test]
fn raw_mode_wakes_the_reader_at_vmin() {
    let mut bench = Bench::new(|termios| {
        termios.lflag = 0;
        termios.iflag = 0;
        termios.cc[VMIN] = 3;
    });
    bench.type_keys(b"\x03\r");
    assert!(!bench.tty.readable());
    bench.type_keys(b"\x7f");
    assert_eq!(bench.actions, [Action::Readable]);
    assert_eq!(bench.read(9), Some("\x03\r\x7f".into()));
    assert_eq!(bench.screen(), "");
}

#[test]
fn a_half_typed_line_is_readable_after_the_switch_to_raw() {
    let mut bench = Bench::new(|_| {});
    bench.type_keys(b"vi\rhal");
    let mut raw = Termios::console();
    raw.lflag &= !ICANON;
    bench.tty.set_termios(raw);
    assert_eq!(bench.read(99), Some("vi\nhal".into()));
    bench.type_keys(b"f");
    bench.tty.set_termios(Termios::console());
    assert_eq!(bench.read(99), Some("f".into()));
}

#[test]
fn a_line_longer_than_the_limit_can_still_be_ended() {
    let mut bench = Bench::new(|termios| termios.lflag &= !ECHO);
    for _ in 0..5000 {
        bench.type_keys(b"x");
    }
    bench.type_keys(b"\r");
    assert_eq!(bench.read(9999).map(|line| line.len()), Some(4096));
}

#[test]
fn lines_that_are_not_read_take_bounded_room() {
    for key in [b'\n', 4] {
        let mut bench = Bench::new(|termios| termios.lflag &= !ECHO);
        let mut typed = 0;
        while bench.tty.room() > 0 && typed < 10_000 {
            bench.type_keys(&[key]);
            typed += 1;
        }
        assert_eq!((typed, bench.tty.room()), (4095, 0));
        bench.type_keys(&[key; 10_000]);
        let mut read = 0;
        while bench.read(9).is_some() {
            read += 1;
        }
        assert_eq!((read, bench.tty.room()), (4096, 4095));
    }
}

#[test]
fn a_line_beyond_the_room_waits_for_nothing_but_its_end() {
    let mut bench = Bench::new(|termios| termios.lflag &= !ECHO);
    bench.type_keys(&[b'x'; 5000]);
    assert_eq!(bench.tty.room(), 1);
    bench.type_keys(b"\n");
    assert_eq!(bench.tty.room(), 0);
    bench.read(1);
    assert_eq!(bench.tty.room(), 0);
    bench.read(1);
    assert_eq!(bench.tty.room(), 1);
}

#[test]
fn stop_and_start_keys_hold_output_and_are_no_input() {
    let mut bench = Bench::new(|_| {});
    bench.type_keys(b"\x13");
    assert!(bench.tty.output_stopped());
    bench.type_keys(b"\x11a\r");
    assert!(!bench.tty.output_stopped());
    assert_eq!(bench.read(9), Some("a\n".into()));
}

#[test]
fn output_modes_translate_newlines_and_tabs() {
    let mut termios = Termios::console();
    let mut shown = Vec::new();
    let mut column = output::Column(0);
    termios.oflag |= XTABS;
    column.write(&termios, b"ab\tc\nd", &mut |bytes| shown.extend_from_slice(bytes));
    assert_eq!(shown, b"ab      c\r\nd");
    assert_eq!(column.0, 1);
    termios.oflag = 0;
    column.write(&termios, b"\n", &mut |bytes| shown.extend_from_slice(bytes));
    assert_eq!(shown.last(), Some(&b'\n'));
}

#[test]
fn settings_survive_the_trip_through_the_c_structure() {
    let termios = Termios::console();
    assert_eq!(Termios::from_bytes(&termios.to_bytes()), termios);
}

/// Everything termios(3) says of c_oflag, with the column that tabs and ONOCR depend on.
#[test]
fn carriage_returns_backspaces_and_capitals_follow_the_output_modes() {
    use super::output::Column;
    use super::termios::{OCRNL, OLCUC, ONLRET, ONOCR, OPOST, XTABS};
    let shown = |oflag: u32, text: &[u8]| {
        let (mut column, mut out) = (Column::default(), Vec::new());
        let termios = Termios { oflag: OPOST | oflag, ..Termios::console() };
        column.write(&termios, text, &mut |bytes| out.extend_from_slice(bytes));
        (out, column.0)
    };
    assert_eq!(shown(0, b"ab\n"), (b"ab\n".to_vec(), 2));
    assert_eq!(shown(ONLRET, b"ab\nc"), (b"ab\nc".to_vec(), 1));
    assert_eq!(shown(0, b"ab\rc"), (b"ab\rc".to_vec(), 1));
    assert_eq!(shown(OCRNL, b"ab\rc"), (b"ab\nc".to_vec(), 3));
    assert_eq!(shown(OCRNL | ONLRET, b"ab\rc"), (b"ab\nc".to_vec(), 1));
    assert_eq!(shown(ONOCR, b"\rab\r"), (b"ab\r".to_vec(), 0));
    assert_eq!(shown(OLCUC, b"aB\n"), (b"AB\n".to_vec(), 2));
    assert_eq!(shown(XTABS, b"abc\x08\tx"), (b"abc\x08      x".to_vec(), 9));
}
