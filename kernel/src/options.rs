//! The kernel command line: the kernel's options, and what is passed on to init.
//!
//! One table ([`OPTIONS`]) names every option. A word that is none of them goes to init as on Linux: `name=value` into
//! its environment (unless the name has a dot: a module parameter), a plain word into its arguments, and everything
//! after `--` into its arguments as it is.

use alloc::vec::Vec;

use machine::sync::Once;

use level::Level;

pub mod level;

/// What the command line said.
#[derive(Debug, Default)]
pub struct Options {
    /// `init=`: tried first.
    pub init: Option<Vec<u8>>,
    /// `rdinit=`: tried in the initramfs instead of `/init`.
    pub rdinit: Option<Vec<u8>>,
    /// `console=`: the last one names `/dev/console`.
    pub console: Option<Vec<u8>>,
    /// `debug=`: trace categories, separated by commas.
    pub debug: Vec<u8>,
    /// `panic=`: seconds before a reboot, 0 never, negative at once.
    pub panic: i64,
    /// `loglevel=`: messages below it reach the console.
    pub loglevel: Option<u8>,
    /// `coredump=`: where programs that a signal ends are dumped to.
    pub core_dump: CoreDump,
    /// `dump=`: how much memory a dump of the kernel holds.
    pub dump: Level,
    /// `watchdog=`: seconds a processor may be stuck, 0 for ever.
    pub watchdog: u64,
    /// `hung_task=`: seconds a thread may be blocked, 0 for ever.
    pub hung_task: u64,
    /// `stall=`: when a system in which no program runs is one that hangs.
    pub stall: Stall,
    /// `nmi_watchdog=`: a timer watches for processors that take no interrupt.
    pub nmi_watchdog: bool,
    /// `dumpdisk`: the first disk is the crash path's to overwrite.
    pub dump_disk: bool,
    /// `dumpparity`: dumps on the console have lines that mend what is lost on the way.
    pub dump_parity: bool,
    /// `prefault=`: pages of its files that exec maps at most.
    pub prefault: Option<u64>,
    /// `exec_image=`: which parts of programs are assembled to 2 MiB.
    pub exec_image: Option<Vec<u8>>,
    /// `ghost-fork`: a child of fork(2) runs in its parent's memory, as one of vfork(2).
    pub ghost_fork: bool,
    /// `idle_zero=`: frames that an idle processor keeps cleared for page tables, at most 64.
    pub idle_zero: Option<usize>,
    /// `quiet`: no progress on the console.
    pub quiet: bool,
    /// `norandmaps`: addresses are not randomized.
    pub norandmaps: bool,
    /// `maxcpus=` / `nosmp`
    pub max_cpus: Option<u32>,
    /// `inject=`: a known bug to plant. It is not in [`Options::line`]: a reader of the dump has to find it.
    pub inject: Option<Vec<u8>>,
    /// `transparent_hugepage=`: which ranges get 2 MiB pages.
    pub transparent_hugepage: Option<Vec<u8>>,
    /// Further arguments of init.
    pub init_args: Vec<Vec<u8>>,
    /// Further environment of init.
    pub init_env: Vec<Vec<u8>>,
    /// The line itself, for `/proc/cmdline`.
    pub line: Vec<u8>,
}

/// Where programs that a signal ends are dumped to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CoreDump {
    /// Into the memory region or onto the disk, if there is one.
    #[default]
    Auto,
    /// Likewise, or else in armour on the serial console.
    Serial,
    /// No dump is written.
    Off,
}

/// When a system in which no program runs is one that hangs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stall {
    /// If nothing can wake a program, after as long as `watchdog=` says.
    #[default]
    Provable,
    /// Also after so many seconds whatever can wake one; 0 for never.
    After(u64),
}

type Apply = fn(&mut Options, &[u8]);

/// Every option: its name, and what its value does.
const OPTIONS: &[(&[u8], Apply)] = &[
    (b"console", |o, v| o.console = Some(v.to_vec())),
    (b"coredump", |o, v| {
        o.core_dump = match v {
            b"serial" => CoreDump::Serial,
            b"off" => CoreDump::Off,
            _ => CoreDump::Auto,
        };
    }),
    (b"dump", |o, v| o.dump = Level::named(v).unwrap_or_default()),
    // The machine's own: it sets the memory aside before the kernel runs.
    (b"dumpmem", |_, _| {}),
    (b"debug", |o, v| {
        if !o.debug.is_empty() {
            o.debug.push(b',');
        }
        o.debug.extend_from_slice(v);
    }),
    (b"dumpdisk", |o, _| o.dump_disk = true),
    (b"dumpparity", |o, _| o.dump_parity = true),
    (b"hung_task", |o, v| o.hung_task = number(v).map_or(HUNG_TASK, |n| n.max(0) as u64)),
    (b"nmi_watchdog", |o, v| o.nmi_watchdog = number(v) != Some(0)),
    (b"stall", |o, v| o.stall = number(v).map_or(Stall::Provable, |n| Stall::After(n.max(0) as u64))),
    (b"watchdog", |o, v| o.watchdog = number(v).map_or(WATCHDOG, |n| n.max(0) as u64)),
    (b"exec_image", |o, v| o.exec_image = Some(v.to_vec())),
    (b"ghost-fork", |o, _| o.ghost_fork = true),
    (b"idle_zero", |o, v| o.idle_zero = number(v).map(|n| n.clamp(0, 64) as usize)),
    (b"init", |o, v| o.init = Some(v.to_vec())),
    (b"inject", |o, v| o.inject = Some(v.to_vec())),
    (b"loglevel", |o, v| o.loglevel = number(v).map(|n| n.clamp(0, 15) as u8)),
    (b"maxcpus", |o, v| o.max_cpus = number(v).map(|n| n.clamp(0, 64) as u32)),
    (b"norandmaps", |o, _| o.norandmaps = true),
    // The machine's own too: where memory is mapped is settled by then.
    (b"nokaslr", |_, _| {}),
    (b"nosmp", |o, _| o.max_cpus = Some(1)),
    (b"panic", |o, v| o.panic = number(v).unwrap_or(0)),
    (b"prefault", |o, v| o.prefault = number(v).map(|n| n.max(0) as u64)),
    (b"quiet", |o, _| o.quiet = true),
    (b"rdinit", |o, v| o.rdinit = Some(v.to_vec())),
    (b"transparent_hugepage", |o, v| o.transparent_hugepage = Some(v.to_vec())),
];

/// Default of `watchdog=`, as Linux's soft lockup: twice ten seconds.
pub const WATCHDOG: u64 = 20;
/// Default of `hung_task=`, Linux's too.
const HUNG_TASK: u64 = 120;

static CHOSEN: Once<Options> = Once::new();

/// Reads the command line; once.
pub fn start(line: &[u8]) {
    let options = parse(line);
    level::set(options.dump);
    // A second call would find the options set and change nothing.
    let _ = CHOSEN.set(options);
}

/// What the command line said; defaults before [`start`].
pub fn get() -> &'static Options {
    static DEFAULT: Options = Options {
        init: None,
        rdinit: None,
        console: None,
        debug: Vec::new(),
        panic: 0,
        loglevel: None,
        core_dump: CoreDump::Auto,
        dump: Level::Auto,
        watchdog: WATCHDOG,
        hung_task: HUNG_TASK,
        stall: Stall::Provable,
        nmi_watchdog: true,
        dump_disk: false,
        dump_parity: false,
        prefault: None,
        exec_image: None,
        ghost_fork: false,
        idle_zero: None,
        quiet: false,
        norandmaps: false,
        max_cpus: None,
        inject: None,
        transparent_hugepage: None,
        init_args: Vec::new(),
        init_env: Vec::new(),
        line: Vec::new(),
    };
    CHOSEN.get().unwrap_or(&DEFAULT)
}

fn parse(line: &[u8]) -> Options {
    let mut options = Options {
        line: without_inject(line),
        watchdog: WATCHDOG,
        hung_task: HUNG_TASK,
        nmi_watchdog: true,
        ..Options::default()
    };
    let mut words = Words(line);
    while let Some(word) = words.next() {
        if word == b"--" {
            options.init_args.extend(words.by_ref());
            break;
        }
        let equals = word.iter().position(|b| *b == b'=');
        let (name, value) = equals.map_or((&word[..], &b""[..]), |at| (&word[..at], &word[at + 1..]));
        if let Some((_, apply)) = OPTIONS.iter().find(|(known, _)| *known == name) {
            apply(&mut options, value);
        } else if equals.is_none() {
            options.init_args.push(word);
        } else if !name.contains(&b'.') {
            options.init_env.push(word);
        }
    }
    options
}

/// The line without the words that plant a bug.
fn without_inject(line: &[u8]) -> Vec<u8> {
    let words = line.split(|byte| *byte == b' ').filter(|word| !word.starts_with(b"inject="));
    words.collect::<Vec<_>>().join(&b' ')
}

/// Words separated by blanks; double quotes keep blanks and vanish.
struct Words<'a>(&'a [u8]);

impl Iterator for Words<'_> {
    type Item = Vec<u8>;

    fn next(&mut self) -> Option<Vec<u8>> {
        let start = self.0.iter().position(|b| !b.is_ascii_whitespace())?;
        let mut word = Vec::new();
        let mut quoted = false;
        let mut at = start;
        while let Some(&byte) = self.0.get(at) {
            match byte {
                b'"' => quoted = !quoted,
                _ if byte.is_ascii_whitespace() && !quoted => break,
                _ => word.push(byte),
            }
            at += 1;
        }
        self.0 = &self.0[at..];
        Some(word)
    }
}

fn number(text: &[u8]) -> Option<i64> {
    core::str::from_utf8(text).ok()?.parse().ok()
}
