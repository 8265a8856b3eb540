//! The terminal: taken, given back however the program ends, and the loop between it and the state.
//!
//! Raw mode, the alternate screen and mouse reports are taken together and given back together: at the end, in a panic,
//! before a stop (^Z, SIGTSTP) and before the death by a signal, which is then the signal's own, so that a shell sees
//! it.

use std::io::{self, Stdout, Write as _};
use std::path::PathBuf;
use std::process::Command;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use base64::Engine as _;
use crossterm::event::{
    DisableBracketedPaste, DisableMouseCapture, EnableBracketedPaste, EnableMouseCapture, Event, KeyEventKind,
    MouseButton, MouseEventKind,
};
use crossterm::terminal::{Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen};
use crossterm::{cursor, execute};
use kwab::symbols::SourceLines;
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::layout::Rect;
use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGTERM, SIGTSTP, SIGWINCH};

use crate::app::{Action, App, Effect, Mouse};
use crate::changes::Changes;
use crate::load::{Generations, Message, Pool};
use crate::{editor, remembered};

/// Something that wakes the loop.
enum Wake {
    Terminal(Event),
    Loaded(Message),
    Signal(i32),
    /// Something in a watched directory has changed.
    Changed,
}

/// The shortest time between two pictures while messages pour in.
const FRAME: Duration = Duration::from_millis(30);
/// The longest wait for a key; a gate that closes ends it by a signal.
const KEY: Duration = Duration::from_hours(1);
/// How long closing the gate waits for the thread that reads the keys.
const CLOSING: Duration = Duration::from_secs(1);
/// Texts longer than this are not taken by terminals through OSC 52.
const LONGEST_COPY: usize = 74_994;

/// Takes the terminal.
fn take(mouse: bool) -> io::Result<()> {
    crossterm::terminal::enable_raw_mode()?;
    let mut out = io::stdout();
    execute!(out, EnterAlternateScreen, EnableBracketedPaste, cursor::Hide)?;
    if mouse {
        execute!(out, EnableMouseCapture)?;
    }
    Ok(())
}

/// Gives the terminal back. What fails here cannot be mended here.
fn give_back() {
    let mut out = io::stdout();
    // A terminal that changed its size shows what is left on this screen behind the first one.
    let _ = execute!(
        out,
        Clear(ClearType::All),
        DisableMouseCapture,
        DisableBracketedPaste,
        cursor::Show,
        LeaveAlternateScreen
    );
    let _ = crossterm::terminal::disable_raw_mode();
    let _ = out.flush();
}

/// Gives the terminal back when it goes, also by a panic.
struct Taken;

impl Drop for Taken {
    fn drop(&mut self) {
        give_back();
    }
}

/// Runs the interface until the user quits.
///
/// # Errors
/// When the terminal cannot be taken or drawn to, or the system gives no threads.
pub(crate) fn run(mut app: App, first: Vec<Effect>, mouse: bool) -> io::Result<()> {
    let (send, receive) = channel();
    let current = Arc::new(Generations::default());
    app.publish(&current);
    let pool = Pool::start(3, Arc::clone(&current), &send, Wake::Loaded)?;
    let gate = Gate::default();
    let changes = Changes::start(app.workspace().catalogue().paths(), send.clone(), || Wake::Changed);
    listen_to_signals(send.clone(), gate.clone())?;
    let before = std::panic::take_hook();
    let own = std::thread::current().id();
    std::panic::set_hook(Box::new(move |info| {
        // A panic of a loading thread is told by a message; the screen stays.
        if std::thread::current().id() == own {
            give_back();
            before(info);
        }
    }));
    take(mouse)?;
    let taken = Taken;
    listen_to_terminal(send, gate.clone())?;
    let mut screen =
        Screen { terminal: Terminal::new(CrosstermBackend::new(io::stdout()))?, pool, mouse, gate, changes };
    if let Ok(size) = screen.terminal.size() {
        app.update(Action::Resize(size.width, size.height));
    }
    let outcome = screen.turn(&mut app, first, &receive, &current);
    drop(taken);
    remembered::save(app.remembered());
    outcome
}

fn listen_to_terminal(send: Sender<Wake>, gate: Gate) -> io::Result<()> {
    let next = move || {
        loop {
            gate.pass();
            if crossterm::event::poll(KEY)? {
                // The gate may have closed meanwhile; what was polled is queued, and reading it takes no key of another
                // program.
                gate.pass();
                return crossterm::event::read();
            }
        }
    };
    let read = move || {
        while let Ok(event) = next() {
            if send.send(Wake::Terminal(event)).is_err() {
                return;
            }
        }
        // The terminal is gone: treated as SIGHUP.
        let _ = send.send(Wake::Signal(SIGHUP));
    };
    std::thread::Builder::new().name("terminal".to_string()).spawn(read).map(drop)
}

fn listen_to_signals(send: Sender<Wake>, gate: Gate) -> io::Result<()> {
    let mut signals = signal_hook::iterator::Signals::new([SIGTERM, SIGHUP, SIGINT, SIGTSTP, SIGCONT])?;
    let listen = move || {
        for signal in signals.forever() {
            if gate.is_closed() {
                // The terminal is an editor's: keys that interrupt or stop are meant for it, and a stop stops both.
                if !matches!(signal, SIGINT | SIGCONT) {
                    let _ = signal_hook::low_level::emulate_default_handler(signal);
                }
                continue;
            }
            if send.send(Wake::Signal(signal)).is_err() {
                return;
            }
        }
    };
    std::thread::Builder::new().name("signals".to_string()).spawn(listen).map(drop)
}

/// Where the thread that reads the keys waits while another program has the terminal.
#[derive(Clone, Default)]
struct Gate(Arc<(Mutex<Passage>, Condvar)>);

#[derive(Default)]
struct Passage {
    is_closed: bool,
    /// Whether the thread stands before it.
    is_waited_at: bool,
}

impl Gate {
    fn passage(&self) -> MutexGuard<'_, Passage> {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_closed(&self) -> bool {
        self.passage().is_closed
    }

    /// Waits as long as the gate is closed.
    fn pass(&self) {
        let mut passage = self.passage();
        while passage.is_closed {
            passage.is_waited_at = true;
            self.0.1.notify_all();
            passage = self.0.1.wait(passage).unwrap_or_else(PoisonError::into_inner);
        }
        passage.is_waited_at = false;
    }

    /// Closes it, and waits until the thread stands before it; a thread that has ended is not waited for long.
    fn close(&self) {
        self.passage().is_closed = true;
        // The thread waits for a key: a change of the terminal's size ends that, and costs a picture.
        let _ = signal_hook::low_level::raise(SIGWINCH);
        let mut passage = self.passage();
        let began = Instant::now();
        while !passage.is_waited_at && began.elapsed() < CLOSING {
            passage = self.0.1.wait_timeout(passage, CLOSING).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn open(&self) {
        self.passage().is_closed = false;
        self.0.1.notify_all();
    }
}

/// The terminal and the threads.
struct Screen {
    terminal: Terminal<CrosstermBackend<Stdout>>,
    pool: Pool,
    mouse: bool,
    gate: Gate,
    changes: Changes,
}

impl Screen {
    /// The loop: everything that has happened, then one picture.
    fn turn(
        &mut self,
        app: &mut App,
        first: Vec<Effect>,
        receive: &Receiver<Wake>,
        current: &Generations,
    ) -> io::Result<()> {
        let started = Instant::now();
        if self.carry_out(app, first, current)? {
            return Ok(());
        }
        let mut fresh = true;
        loop {
            let settled = app.settle();
            self.carry_out(app, settled, current)?;
            if fresh {
                self.terminal.draw(|frame| crate::draw::draw(app, frame))?;
            }
            let drawn = Instant::now();
            let mut wake = match receive.recv_timeout(app.patience(milliseconds(started))) {
                Ok(wake) => Some(wake),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
            };
            // Nothing is sent over a slow line when nothing has happened.
            fresh = wake.is_some();
            loop {
                // A key is answered at once; what threads find out can wait for the next picture.
                let urgent = matches!(wake, Some(Wake::Terminal(_) | Wake::Signal(_)));
                if let Some(happened) = wake
                    && self.happened(app, happened, current)?
                {
                    return Ok(());
                }
                wake = match receive.try_recv() {
                    Ok(next) => Some(next),
                    Err(_) if urgent || drawn.elapsed() >= FRAME => break,
                    Err(_) => receive.recv_timeout(FRAME.saturating_sub(drawn.elapsed())).ok(),
                };
                if wake.is_none() || drawn.elapsed() > 4 * FRAME {
                    if let Some(happened) = wake
                        && self.happened(app, happened, current)?
                    {
                        return Ok(());
                    }
                    break;
                }
            }
            let effects = app.update(Action::Tick(milliseconds(started)));
            if self.carry_out(app, effects, current)? {
                return Ok(());
            }
        }
    }

    /// Takes something that happened; says whether it was the end.
    fn happened(&mut self, app: &mut App, wake: Wake, current: &Generations) -> io::Result<bool> {
        let action = match wake {
            Wake::Terminal(event) => match action_of(event) {
                Some(action) => action,
                None => return Ok(false),
            },
            Wake::Loaded(message) => Action::Loaded(message),
            Wake::Changed => Action::Changed,
            Wake::Signal(SIGTSTP) => {
                self.suspend(app)?;
                return Ok(false);
            }
            Wake::Signal(SIGCONT) => {
                // After SIGSTOP and SIGCONT another program may have changed the terminal's modes.
                crossterm::terminal::disable_raw_mode()?;
                take(self.mouse)?;
                self.enter_again(app)?;
                return Ok(false);
            }
            Wake::Signal(signal) => {
                give_back();
                remembered::save(app.remembered());
                // Ends the process as the signal would have.
                signal_hook::low_level::emulate_default_handler(signal)?;
                return Ok(true);
            }
        };
        let effects = app.update(action);
        self.carry_out(app, effects, current)
    }

    /// Does what the state asks for; says whether it was the end.
    fn carry_out(&mut self, app: &mut App, effects: Vec<Effect>, current: &Generations) -> io::Result<bool> {
        app.publish(current);
        for effect in effects {
            match effect {
                Effect::Job(job) => self.pool.give(job),
                Effect::Copy(text) => copy(&text)?,
                Effect::Write { path, text } => {
                    let written = match text {
                        Some(text) => kwab::output::replace_own(&path, text.as_bytes()),
                        None => std::fs::remove_file(&path).or(Ok(())),
                    };
                    if let Err(error) = written {
                        let text = format!("{}: {error}", path.display());
                        app.update(Action::Loaded(Message::Failed { generation: 0, text }));
                    }
                }
                Effect::Watch(folders) => {
                    app.update(Action::Watched(self.changes.watch(&folders)));
                }
                Effect::Edit { file, line } => self.edit(app, &file, line)?,
                Effect::Redraw => self.enter_again(app)?,
                Effect::Suspend => self.suspend(app)?,
                Effect::Quit => return Ok(true),
            }
        }
        Ok(false)
    }

    /// Lets the user's editor have the terminal, with a source file of the dump at a line. Only a regular file that
    /// the rules for sources find is opened.
    fn edit(&mut self, app: &mut App, file: &str, line: u32) -> io::Result<()> {
        let sources = SourceLines::new(vec![PathBuf::from(".")]);
        let path = sources.path(file).and_then(|path| path.canonicalize().ok());
        let found = path.ok_or_else(|| format!("{file} is not here: neither at that path nor below this directory"));
        let command = found.and_then(|path| editor::command(&editor::of_user(), &path, line));
        let ran = command.and_then(|(program, arguments)| {
            self.gate.close();
            give_back();
            let status = Command::new(&program).args(arguments).status();
            let taken = take(self.mouse);
            self.gate.open();
            taken.map_err(|error| error.to_string())?;
            match status {
                Ok(status) if status.success() => Ok(()),
                Ok(status) => Err(format!("{program}: {status}")),
                Err(error) => Err(format!("{program}: {error}; EDITOR names the editor")),
            }
        });
        if let Err(text) = ran {
            app.update(Action::Loaded(Message::Failed { generation: 0, text }));
        }
        self.enter_again(app)
    }

    /// Gives the terminal back, stops, and takes it again after `fg`.
    fn suspend(&mut self, app: &mut App) -> io::Result<()> {
        give_back();
        signal_hook::low_level::emulate_default_handler(SIGTSTP)?;
        take(self.mouse)?;
        self.enter_again(app)
    }

    /// Draws every cell at the next picture, on a terminal that may have changed its size. `Terminal::clear` would ask
    /// where the cursor is, and the thread that reads the keys would take the answer.
    fn enter_again(&mut self, app: &mut App) -> io::Result<()> {
        let size = self.terminal.size()?;
        self.terminal.resize(Rect::new(0, 0, size.width, size.height))?;
        app.update(Action::Resize(size.width, size.height));
        Ok(())
    }
}

/// Milliseconds since the start.
fn milliseconds(started: Instant) -> u64 {
    u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX)
}

/// Puts a text into the clipboard of the user's own terminal (OSC 52), through SSH and tmux.
fn copy(text: &str) -> io::Result<()> {
    let mut text = text;
    while text.len() > LONGEST_COPY * 3 / 4 {
        let mut end = LONGEST_COPY * 3 / 4;
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text = &text[..end];
    }
    let encoded = base64::engine::general_purpose::STANDARD.encode(text);
    let mut out = io::stdout();
    write!(out, "\u{1b}]52;c;{encoded}\u{7}")?;
    if std::env::var_os("TMUX").is_some() {
        // tmux hands it on only from inside an envelope, unless set-clipboard is on.
        write!(out, "\u{1b}Ptmux;\u{1b}\u{1b}]52;c;{encoded}\u{7}\u{1b}\\")?;
    }
    out.flush()
}

fn action_of(event: Event) -> Option<Action> {
    Some(match event {
        Event::Key(key) if key.kind != KeyEventKind::Release => Action::Key(key),
        Event::Paste(text) => Action::Paste(text),
        Event::Resize(columns, rows) => Action::Resize(columns, rows),
        Event::Mouse(mouse) => Action::Mouse(match mouse.kind {
            MouseEventKind::Down(MouseButton::Left) => Mouse::Click(mouse.column, mouse.row),
            MouseEventKind::ScrollUp => Mouse::Up,
            MouseEventKind::ScrollDown => Mouse::Down,
            _ => return None,
        }),
        _ => return None,
    })
}
