//! `kwab tui` on a real terminal: the program behind a pseudo-terminal, its screen read back cell by cell.

use std::io::{Read as _, Write as _};
use std::num::NonZero;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};

/// The longest wait for a screen; a loaded machine takes its time.
const PATIENCE: Duration = Duration::from_secs(60);

/// The program, its terminal, and what is on it.
pub(crate) struct Session {
    pub(crate) child: Box<dyn Child + Send + Sync>,
    pub(crate) master: Box<dyn MasterPty + Send>,
    pub(crate) keyboard: Box<dyn std::io::Write + Send>,
    pub(crate) terminal: Arc<Mutex<vt100::Parser>>,
    /// Everything that it has written.
    pub(crate) written: Arc<Mutex<Vec<u8>>>,
}

fn cells(count: u16) -> NonZero<u16> {
    NonZero::new(count).expect("a screen has cells")
}

fn size(rows: u16, cols: u16) -> PtySize {
    PtySize { rows, cols, pixel_width: 0, pixel_height: 0 }
}

impl Session {
    pub(crate) fn start(folder: &Path, command: &[&str], rows: u16, cols: u16) -> Self {
        Self::start_with(folder, command, rows, cols, &[])
    }

    pub(crate) fn start_with(folder: &Path, command: &[&str], rows: u16, cols: u16, env: &[(&str, &str)]) -> Self {
        let pair = native_pty_system().openpty(size(rows, cols)).expect("a pseudo-terminal");
        let mut builder = CommandBuilder::new(command[0]);
        builder.args(&command[1..]);
        builder.cwd(folder);
        builder.env("TERM", "xterm-256color");
        builder.env("HOME", folder);
        builder.env_remove("XDG_CONFIG_HOME");
        builder.env_remove("XDG_STATE_HOME");
        builder.env_remove("KWAB_TUI_STATE");
        builder.env_remove("NO_COLOR");
        builder.env_remove("TMUX");
        for (name, value) in env {
            builder.env(name, value);
        }
        let child = pair.slave.spawn_command(builder).expect("started");
        drop(pair.slave);
        let terminal = Arc::new(Mutex::new(vt100::Parser::new(cells(rows), cells(cols), 0)));
        let mut output = pair.master.try_clone_reader().expect("its output");
        let keyboard = pair.master.take_writer().expect("its input");
        let screen = Arc::clone(&terminal);
        let written: Arc<Mutex<Vec<u8>>> = Arc::default();
        let all = Arc::clone(&written);
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = output.read(&mut bytes) {
                all.lock().expect("what was written").extend_from_slice(&bytes[..count]);
                screen.lock().expect("the screen").process(&bytes[..count]);
            }
        });
        Self { child, master: pair.master, keyboard, terminal, written }
    }

    pub(crate) fn tui(folder: &Path, path: &str, rows: u16, cols: u16) -> Self {
        Self::start(folder, &[env!("CARGO_BIN_EXE_kwab"), "tui", path], rows, cols)
    }

    pub(crate) fn screen(&self) -> String {
        self.terminal.lock().expect("the screen").screen().contents()
    }

    /// Everything written so far, with its control sequences.
    pub(crate) fn written(&self) -> String {
        String::from_utf8_lossy(&self.written.lock().expect("what was written")).into_owned()
    }

    pub(crate) fn is_taken(&self) -> bool {
        self.terminal.lock().expect("the screen").screen().alternate_screen()
    }

    pub(crate) fn until(&self, what: &str, holds: impl Fn(&Self) -> bool) {
        let began = Instant::now();
        while !holds(self) {
            assert!(began.elapsed() < PATIENCE, "never: {what}; the screen is\n{}", self.screen());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    pub(crate) fn sees(&self, text: &str) {
        self.until(&format!("sees {text:?}"), |session| session.screen().contains(text));
    }

    pub(crate) fn press(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).expect("typed");
        self.keyboard.flush().expect("typed");
    }

    pub(crate) fn resize(&self, rows: u16, cols: u16) {
        self.terminal.lock().expect("the screen").screen_mut().set_size(cells(rows), cells(cols));
        self.master.resize(size(rows, cols)).expect("resized");
    }

    pub(crate) fn signal(&self, name: &str) {
        let pid = self.child.process_id().expect("a process").to_string();
        assert!(Command::new("kill").args([&format!("-{name}"), &pid]).status().expect("kill runs").success());
    }

    pub(crate) fn ends(&mut self) -> portable_pty::ExitStatus {
        let began = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().expect("waited") {
                return status;
            }
            assert!(began.elapsed() < PATIENCE, "it does not end; the screen is\n{}", self.screen());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// The terminal is what it was: the first screen, a cursor, no mouse reports, lines and echo.
    pub(crate) fn is_given_back(&self) {
        self.until("the first screen is back", |session| !session.is_taken());
        let terminal = self.terminal.lock().expect("the screen");
        let screen = terminal.screen();
        assert!(!screen.hide_cursor(), "the cursor stays hidden");
        assert!(!screen.bracketed_paste(), "pastes stay bracketed");
        assert_eq!(screen.mouse_protocol_mode(), vt100::MouseProtocolMode::None);
        if let Some(modes) = self.master.get_termios() {
            let flags = format!("{:?}", modes.local_flags);
            assert!(flags.contains("ICANON") && flags.contains("ECHO"), "{flags}");
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
    }
}
