//! What a thread can wait for, by name: one table, which queues are made with and dumps print.

use machine::describe::Entry;

macro_rules! reasons {
    ($($name:ident = $text:literal,)*) => {
        /// What a sleeping thread waits for.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub enum WaitReason {
            $(#[doc = $text] $name,)*
        }

        const TEXTS: &[&str] = &[$($text,)*];
        /// All of them, in order, each with a line feed behind it.
        const JOINED: &str = concat!($($text, "\n",)*);
    };
}

reasons! {
    ChildChange = "a change of a child",
    EpollEvent = "an event of an epoll set",
    EventfdCount = "a count of an eventfd",
    EventfdRoom = "room in an eventfd",
    FileLock = "a file lock",
    Futex = "a futex",
    FutexOwnership = "the ownership of a priority-inheriting futex",
    Message = "a message of a message queue",
    MessageRoom = "room in a message queue",
    Mutex = "a mutex of the kernel",
    OtherThreads = "the end of the process's other threads",
    PipeData = "data in a pipe",
    PipeRoom = "room in a pipe",
    Poll = "one of the polled files",
    ProcessEnd = "the end of a process",
    PtyMaster = "output or room of a pseudo-terminal",
    ReadTurn = "its turn to read a terminal",
    Signal = "a signal",
    SignalfdSignal = "a signal of a signalfd",
    SocketData = "data or a connection of a socket",
    SocketRoom = "room to send or to connect",
    Stopped = "SIGCONT",
    TerminalInput = "input of a terminal",
    TerminalOutput = "output of a terminal to go on",
    Time = "a point in time",
    TimerfdExpiry = "an expiry of a timerfd",
    Vfork = "the exec or the end of a vfork child",
    WallClock = "a time of the wall clock",
}

/// The texts in [`machine::describe`]: a line for each number from 1 on.
pub static FIELDS: [Entry; 2] = [Entry::address("reasons", JOINED), Entry::number("reasons.length", JOINED.len())];

impl WaitReason {
    /// A number that is not 0, which stands for no reason.
    pub const fn number(self) -> u8 {
        self as u8 + 1
    }

    /// The name of the reason with this number; `None` for 0.
    pub fn text(number: u8) -> Option<&'static str> {
        TEXTS.get(usize::from(number.checked_sub(1)?)).copied()
    }
}
