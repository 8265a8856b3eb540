//! The settings of a terminal: `struct termios` of the kernel interface and its flags (termios(3),
//! asm-generic/termbits.h).

/// `struct termios` as TCGETS returns it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Termios {
    /// Input modes: translation of CR and NL, flow control.
    pub iflag: u32,
    /// Output modes: post-processing, NL to CR NL.
    pub oflag: u32,
    /// Control modes: speed, size, parity.
    pub cflag: u32,
    /// Local modes: editing, echo, signals.
    pub lflag: u32,
    /// Number of the line discipline; 0 is this one.
    pub line: u8,
    /// Control characters by the `V*` index; 0 disables one.
    pub cc: [u8; 19],
}

/// Size of the kernel's `struct termios` in bytes.
pub const TERMIOS_SIZE: usize = 36;

impl Termios {
    /// The settings a Linux console starts with.
    pub const fn console() -> Self {
        Self {
            iflag: ICRNL | IXON,
            oflag: OPOST | ONLCR,
            cflag: 0o15 | 0o60 | 0o200 | 0o2000,
            lflag: ISIG | ICANON | ECHO | ECHOE | ECHOK | ECHOCTL | ECHOKE | IEXTEN,
            line: 0,
            cc: [3, 28, 127, 21, 4, 0, 1, 0, 17, 19, 26, 0, 18, 15, 23, 22, 0, 0, 0],
        }
    }

    /// What a new pseudo-terminal is set to: as the console, at 38400 baud.
    pub const fn pseudo() -> Self {
        Self { cflag: 0o17 | 0o60 | 0o200, ..Self::console() }
    }

    /// The bytes of the C structure.
    pub fn to_bytes(&self) -> [u8; TERMIOS_SIZE] {
        let mut bytes = [0; TERMIOS_SIZE];
        for (at, word) in [self.iflag, self.oflag, self.cflag, self.lflag].into_iter().enumerate() {
            bytes[at * 4..at * 4 + 4].copy_from_slice(&word.to_le_bytes());
        }
        bytes[16] = self.line;
        bytes[17..].copy_from_slice(&self.cc);
        bytes
    }

    /// Reads the C structure.
    pub fn from_bytes(bytes: &[u8; TERMIOS_SIZE]) -> Self {
        let word = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let mut cc = [0; 19];
        cc.copy_from_slice(&bytes[17..]);
        Self { iflag: word(0), oflag: word(4), cflag: word(8), lflag: word(12), line: bytes[16], cc }
    }

    /// Whether all of `flags` are set among the local modes.
    #[inline]
    pub const fn local(&self, flags: u32) -> bool {
        self.lflag & flags == flags
    }

    /// Whether `byte` is the control character at `index`, which is not disabled.
    #[inline]
    pub fn is(&self, index: usize, byte: u8) -> bool {
        self.cc[index] == byte && byte != 0
    }
}

/// Index of the interrupt character.
pub const VINTR: usize = 0;
/// Index of the quit character.
pub const VQUIT: usize = 1;
/// Index of the character that erases one character.
pub const VERASE: usize = 2;
/// Index of the character that erases the line.
pub const VKILL: usize = 3;
/// Index of the end-of-file character.
pub const VEOF: usize = 4;
/// Index of the timeout of a raw read, in tenths of a second.
pub const VTIME: usize = 5;
/// Index of the least number of bytes of a raw read.
pub const VMIN: usize = 6;
/// Index of the character that starts output again.
pub const VSTART: usize = 8;
/// Index of the character that stops output.
pub const VSTOP: usize = 9;
/// Index of the suspend character.
pub const VSUSP: usize = 10;
/// Index of an additional end-of-line character.
pub const VEOL: usize = 11;
/// Index of the character that prints the line again.
pub const VREPRINT: usize = 12;
/// Index of the character that erases a word.
pub const VWERASE: usize = 14;
/// Index of the character that quotes the next one.
pub const VLNEXT: usize = 15;
/// Index of the second additional end-of-line character.
pub const VEOL2: usize = 16;

/// Strip input to seven bits.
pub const ISTRIP: u32 = 0o40;
/// Newline becomes carriage return on input.
pub const INLCR: u32 = 0o100;
/// Carriage return is ignored on input.
pub const IGNCR: u32 = 0o200;
/// Carriage return becomes newline on input.
pub const ICRNL: u32 = 0o400;
/// Upper case becomes lower case on input.
pub const IUCLC: u32 = 0o1000;
/// The stop and start characters work.
pub const IXON: u32 = 0o2000;
/// Any character starts stopped output.
pub const IXANY: u32 = 0o4000;
/// Ring the bell when a line is too long.
pub const IMAXBEL: u32 = 0o20000;
/// Erase whole UTF-8 characters.
pub const IUTF8: u32 = 0o40000;

/// Process output at all.
pub const OPOST: u32 = 0o1;
/// Lower case becomes upper case on output.
pub const OLCUC: u32 = 0o2;
/// Newline becomes carriage return and newline on output.
pub const ONLCR: u32 = 0o4;
/// Carriage return becomes newline on output.
pub const OCRNL: u32 = 0o10;
/// No carriage return at column 0.
pub const ONOCR: u32 = 0o20;
/// Newline also returns the carriage, so carriage return is not needed.
pub const ONLRET: u32 = 0o40;
/// Mask of the tab delays.
pub const TABDLY: u32 = 0o14000;
/// Tabs become spaces.
pub const XTABS: u32 = 0o14000;

/// Signal characters work.
pub const ISIG: u32 = 0o1;
/// Lines are edited before they are read.
pub const ICANON: u32 = 0o2;
/// Input is echoed.
pub const ECHO: u32 = 0o10;
/// The erase character erases on the screen.
pub const ECHOE: u32 = 0o20;
/// The kill character is followed by a newline.
pub const ECHOK: u32 = 0o40;
/// Newline is echoed even without `ECHO`.
pub const ECHONL: u32 = 0o100;
/// Signal characters do not flush.
pub const NOFLSH: u32 = 0o200;
/// Background writers get SIGTTOU.
pub const TOSTOP: u32 = 0o400;
/// Control characters are echoed as `^X`.
pub const ECHOCTL: u32 = 0o1000;
/// Erased characters are printed between `\` and `/`.
pub const ECHOPRT: u32 = 0o2000;
/// The kill character erases each character on the screen.
pub const ECHOKE: u32 = 0o4000;
/// The extended characters (word erase, reprint, quote) work.
pub const IEXTEN: u32 = 0o100000;
