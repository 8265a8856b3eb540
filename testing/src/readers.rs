//! Other programs' view of a core file: the stacks that gdb, eu-stack and drgn find in it, as addresses.
//!
//! Only physical frames are compared: what is inlined into them has the same address, and every reader shows it in a
//! way of its own. A reader may go on where kwab stops and the other way round, so one stack has to begin with the
//! other, and a reader has to find at least all but the last frame: the outermost is the kernel's entry in assembly,
//! which not all follow.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use anyhow::Result;

use crate::process::Call;
use crate::setup;

/// Stacks by thread number, innermost frame first.
pub type Stacks = BTreeMap<u32, Vec<u64>>;

/// A program that reads core files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reader {
    /// GDB, the GNU debugger.
    Gdb,
    /// `eu-stack` of elfutils.
    EuStack,
    /// The programmable debugger.
    Drgn,
}

/// All of them.
pub const READERS: &[Reader] = &[Reader::Gdb, Reader::EuStack, Reader::Drgn];

/// The longest that a reader may take.
const LIMIT: Duration = Duration::from_secs(120);

/// Prints the stack of every thread for [`frames`].
const DRGN: &str = "import sys, drgn
program = drgn.Program()
program.set_core_dump(sys.argv[1])
program.load_debug_info([sys.argv[2]])
for thread in program.threads():
    print(f'TID {thread.tid}:')
    for number, frame in enumerate(thread.stack_trace()):
        if not frame.is_inline:
            print(f'#{number} {frame.pc:#x} {frame.name}')
";

impl Reader {
    /// The program's name, as it is called and as results print it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Gdb => "gdb",
            Self::EuStack => "eu-stack",
            Self::Drgn => "drgn",
        }
    }
}

/// What a reader finds in a core file of a program; `None` when it is not installed.
///
/// # Errors
/// When it cannot be run.
pub fn stacks_of(reader: Reader, core: &Path, program: &Path) -> Result<Option<Stacks>> {
    let call = match reader {
        Reader::Gdb => {
            let call = Call::new("gdb").args(["-q", "-batch", "-nx", "-iex", "set debuginfod enabled off"]);
            call.args(["-ex", "info threads", "-ex", "thread apply all p/x $pc", "-ex", "thread apply all bt"])
                .arg(program)
                .arg(core)
        }
        Reader::EuStack => Call::new("eu-stack").arg("--core").arg(core).arg("-e").arg(program),
        Reader::Drgn => {
            let python = std::env::var("KWAB_PYTHON").unwrap_or_else(|_| "python3".to_owned());
            if Call::new(&python).args(["-c", "import drgn"]).capture().is_err() {
                return Ok(None);
            }
            Call::new(python).args(["-c", DRGN]).arg(core).arg(program)
        }
    };
    if reader != Reader::Drgn && setup::find(reader.name()).is_none() {
        return Ok(None);
    }
    let text = call.limit(LIMIT).capture_any()?.stdout;
    Ok(Some(if reader == Reader::Gdb { gdb(&text) } else { plain(&text) }))
}

/// `TID 7:` and then `#0 0x… name`, as eu-stack prints.
fn plain(text: &str) -> Stacks {
    let mut stacks = Stacks::new();
    let mut thread = None;
    for line in text.lines() {
        if let Some(number) = line.strip_prefix("TID ") {
            thread = number.trim_end_matches(':').parse().ok();
        } else if let (Some(thread), Some(address)) = (thread, address_of(line)) {
            stacks.entry(thread).or_default().push(address);
        }
    }
    stacks
}

/// gdb's `thread apply all`: `Thread 1 (LWP 7):`, with `$1 = 0x…` for the innermost address and `#1  0x… in name` for a
/// physical frame; frames without an address are inlined into the next, or the innermost one.
fn gdb(text: &str) -> Stacks {
    let mut stacks = Stacks::new();
    let mut thread = None;
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("Thread ") {
            thread = rest.split("LWP ").nth(1).and_then(|rest| rest.split(')').next()?.parse().ok());
        } else if let (Some(thread), Some(value)) = (thread, line.strip_prefix('$')) {
            let value = value.split("= 0x").nth(1).and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok());
            stacks.entry(thread).or_default().extend(value);
        } else if let (Some(thread), Some(address)) = (thread, address_of(line)) {
            let stack = stacks.entry(thread).or_default();
            // The innermost frame has its address printed only in the middle of a line.
            if !(line.starts_with("#0 ") && stack.first() == Some(&address)) {
                stack.push(address);
            }
        }
    }
    stacks
}

/// The address of a `#3  0x… …` line.
fn address_of(line: &str) -> Option<u64> {
    let mut words = line.strip_prefix('#')?.split_whitespace();
    u64::from_str_radix(words.nth(1)?.strip_prefix("0x")?, 16).ok()
}

impl Reader {
    /// Compares what a reader found with our stacks. drgn takes a file only when its program headers are loaded, which
    /// those of a kernel are not: it walks by frame pointers then, and where the innermost function has not yet made
    /// its own, that skips the caller.
    ///
    /// # Errors
    /// The first difference, in words.
    pub fn compare(self, ours: &Stacks, theirs: &Stacks) -> Result<usize, String> {
        let difference = match agree(ours, theirs) {
            Err(difference) if self == Self::Drgn => difference,
            result => return result,
        };
        let without_caller = |stack: &Vec<u64>| stack.iter().take(1).chain(stack.iter().skip(2)).copied().collect();
        let skipped = ours.iter().map(|(thread, stack)| (*thread, without_caller(stack))).collect();
        agree(&skipped, theirs).map_err(|_| difference)
    }
}

/// How many frames of all threads agree.
///
/// # Errors
/// The first difference, in words.
fn agree(ours: &Stacks, theirs: &Stacks) -> Result<usize, String> {
    let mut frames = 0;
    for (thread, own) in ours {
        let Some(found) = theirs.get(thread) else { return Err(format!("thread {thread} is missing")) };
        // Behind the outermost frame readers print an address of zero.
        let found: Vec<u64> = found.iter().copied().take_while(|address| *address != 0 || own.contains(&0)).collect();
        let same = own.iter().zip(&found).take_while(|(a, b)| a == b).count();
        let whole = same == own.len().min(found.len());
        if !whole || found.len() + 1 < own.len() {
            let at = |stack: &[u64]| stack.get(same).map_or("nothing".to_owned(), |address| format!("{address:#x}"));
            return Err(format!("thread {thread}, frame {same}: {} here, {} there", at(own), at(&found)));
        }
        frames += same;
    }
    Ok(frames)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_that_loses_a_thread_or_two_frames_or_finds_another_caller_is_told_apart() {
        let stacks = |frames: &[u64]| Stacks::from([(7, frames.to_vec())]);
        let ours = stacks(&[1, 2, 3]);
        assert_eq!(agree(&ours, &stacks(&[1, 2, 3, 0])), Ok(3));
        assert_eq!(agree(&ours, &stacks(&[1, 2])), Ok(2));
        assert!(agree(&ours, &stacks(&[1])).unwrap_err().contains("frame 1: 0x2 here, nothing there"));
        assert!(agree(&ours, &stacks(&[1, 9, 3])).unwrap_err().contains("0x2 here, 0x9 there"));
        assert!(agree(&ours, &Stacks::new()).unwrap_err().contains("missing"));
    }

    #[test]
    fn what_gdb_prints_becomes_physical_frames() {
        let text = "Thread 1 (LWP 7):\n$1 = 0xff10\n\nThread 1 (LWP 7):\n#0  inner () at a.rs:1\n\
                    #1  outer () at a.rs:9\n#2  0xff20 in caller () at b.rs:2\n#3  0x0 in ?? ()\n";
        assert_eq!(gdb(text), Stacks::from([(7, vec![0xff10, 0xff20, 0])]));
        let text = "Thread 1 (LWP 7):\n$1 = 0xff10\nThread 1 (LWP 7):\n#0  0xff10 in inner ()\n";
        assert_eq!(gdb(text), Stacks::from([(7, vec![0xff10])]));
    }
}
