//! A panic while the terminal is taken: given back first, told then.

use std::io::Read as _;
use std::sync::Arc;

use kwab_tui::app::{Action, App};
use kwab_tui::config::Config;
use kwab_tui::load::{Message, Sources};
use kwab_tui::text::Line;
use kwab_tui::view::{Column, Look, Row, Slot, View};
use portable_pty::{CommandBuilder, PtySize, native_pty_system};

/// A list with a bug.
struct Broken;

impl View for Broken {
    fn columns(&self) -> &[Column] {
        &[]
    }

    fn len(&self) -> usize {
        1
    }

    fn row(&self, _index: usize, _look: &Look) -> Row {
        panic!("a list that cannot be drawn")
    }

    fn detail(&self, _index: usize, _look: &Look) -> Vec<Line> {
        Vec::new()
    }

    fn command(&self, _dump: &str) -> String {
        String::new()
    }

    fn when_empty(&self) -> String {
        String::new()
    }
}

/// Runs in a terminal of its own, started by the test below.
#[test]
#[ignore = "is the program that the test starts in a terminal"]
fn the_program_that_panics() {
    let path = std::path::PathBuf::from("none.kwab");
    let (mut app, _) = App::new(vec![path.clone()], Some(path), Config::new(true), Sources::default(), None);
    let generation = app.workspace().session().generation();
    app.update(Action::Loaded(Message::List { generation, slot: Slot::Triage, view: Arc::new(Broken) }));
    drop(kwab_tui::run_app(app, Vec::new(), true));
}

#[test]
fn a_panic_gives_the_terminal_back_and_is_told_on_the_first_screen() {
    let size = PtySize { rows: 24, cols: 80, pixel_width: 0, pixel_height: 0 };
    let pair = native_pty_system().openpty(size).expect("a pseudo-terminal");
    let mut command = CommandBuilder::new(std::env::current_exe().expect("this test"));
    command.args(["--ignored", "--exact", "--nocapture", "the_program_that_panics"]);
    command.env("RUST_BACKTRACE", "0");
    let mut child = pair.slave.spawn_command(command).expect("started");
    let mut output = pair.master.try_clone_reader().expect("its output");
    // The other end stays open, so that the modes of the terminal can be read afterwards.
    let reader = std::thread::spawn(move || {
        let (mut all, mut bytes) = (Vec::new(), [0; 4096]);
        while let Ok(count @ 1..) = output.read(&mut bytes) {
            all.extend_from_slice(&bytes[..count]);
        }
        String::from_utf8_lossy(&all).into_owned()
    });
    assert!(!child.wait().expect("ended").success());
    let modes = format!("{:?}", pair.master.get_termios().expect("modes").local_flags);
    assert!(modes.contains("ICANON") && modes.contains("ECHO"), "{modes}");
    drop((pair.slave, pair.master));
    let text = reader.join().expect("read");
    let at = |wanted: &str| text.find(wanted).unwrap_or_else(|| panic!("no {wanted:?} in {text:?}"));
    assert!(at("\u{1b}[?1049h") < at("\u{1b}[?1049l"), "the screen is taken and given back");
    assert!(at("\u{1b}[?1049l") < at("a list that cannot be drawn"), "and the panic is told then");
    assert!(at("\u{1b}[?25h") < at("a list that cannot be drawn"), "with a cursor");
    assert!(text.rfind("\u{1b}[?1000l").is_some(), "without mouse reports");
}
