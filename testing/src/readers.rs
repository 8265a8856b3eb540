//! Other programs' view of a core file: the stacks that gdb, eu-stack, drgn and lldb find in it, with the names that
//! they give to functions and threads.
//!
//! Only physical frames are compared by address: what is inlined into them has the same address, and every reader shows
//! it in a way of its own. A reader may go on where kwab stops and the other way round, so one stack has to begin with
//! the other, and a reader has to find at least all but the last frame: the outermost is the kernel's entry in
//! assembly, which not all follow. At each address that both have, a reader has to name one of the functions that kwab
//! knows there (`names`).

mod names;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use anyhow::Result;

use crate::process::Call;
use crate::setup;

/// Stacks by thread number, innermost frame first.
pub type Stacks = BTreeMap<u32, Vec<u64>>;

/// Last parts of the names of functions, by address.
pub type Names = BTreeMap<u64, BTreeSet<String>>;

/// What is seen in a core file.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct View {
    /// Of each thread that has one.
    pub stacks: Stacks,
    /// What the functions are called.
    pub names: Names,
    /// What the threads are called, as far as the reader says.
    pub threads: BTreeMap<u32, String>,
    /// The reader's doubts about the file.
    pub doubts: Vec<String>,
}

impl View {
    /// Adds a function at an address.
    pub fn name(&mut self, address: u64, function: &str) {
        let last = names::last(function);
        if !last.is_empty() {
            self.names.entry(address).or_default().insert(last);
        }
    }

    fn frame(&mut self, thread: u32, address: u64, function: &str) {
        self.stacks.entry(thread).or_default().push(address);
        self.name(address, function);
    }
}

/// A program that reads core files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reader {
    /// GDB, the GNU debugger.
    Gdb,
    /// `eu-stack` of elfutils.
    EuStack,
    /// The programmable debugger.
    Drgn,
    /// The debugger of the LLVM project.
    Lldb,
}

/// All of them.
pub const READERS: &[Reader] = &[Reader::Gdb, Reader::EuStack, Reader::Drgn, Reader::Lldb];

/// The longest that a reader may take.
const LIMIT: Duration = Duration::from_secs(120);

/// Prints the threads with their numbers and names, and each stack with address, stack pointer and function.
const LLDB: [&str; 3] = [
    "thread list",
    "settings set frame-format \"#${frame.index} ${frame.pc} ${frame.sp} ${function.name}\\n\"",
    "thread backtrace all",
];

/// Prints the stack of every thread for [`gdb`]. `bt` prints an address for frames without a line too, inlined or not.
const GDB: &str = "import gdb
for thread in gdb.selected_inferior().threads():
    thread.switch()
    print(f'TID {thread.ptid[1]}:')
    frame, number = gdb.newest_frame(), 0
    while frame is not None:
        inlined = frame.type() == gdb.INLINE_FRAME
        print('~' if inlined else f'#{number}', hex(frame.pc()), frame.name() or '??')
        number += not inlined
        frame = frame.older()
";

/// Prints the stack of every thread for [`plain`].
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
            Self::Lldb => "lldb",
        }
    }
}

/// What a reader finds in a core file of a program; `None` when it is not installed.
///
/// # Errors
/// When it cannot be run.
pub fn view_of(reader: Reader, core: &Path, program: &Path) -> Result<Option<View>> {
    let call = match reader {
        Reader::Gdb => {
            let call = Call::new("gdb").args(["-q", "-batch", "-nx", "-iex", "set debuginfod enabled off"]);
            // The command takes one line: a string of Rust is one of Python.
            call.arg(program).arg(core).arg("-ex").arg(format!("python exec({GDB:?})"))
        }
        Reader::EuStack => Call::new("eu-stack").arg("--core").arg(core).arg("-e").arg(program),
        Reader::Drgn => {
            let python = std::env::var("KWAB_PYTHON").unwrap_or_else(|_| "python3".to_owned());
            if Call::new(&python).args(["-c", "import drgn"]).capture().is_err() {
                return Ok(None);
            }
            Call::new(python).args(["-c", DRGN]).arg(core).arg(program)
        }
        Reader::Lldb => {
            let call = Call::new("lldb").args(["--no-lldbinit", "-b"]);
            let call = LLDB.iter().fold(call, |call, command| call.args(["-o", command]));
            call.arg("-c").arg(core).arg(program)
        }
    };
    if reader != Reader::Drgn && setup::find(reader.name()).is_none() {
        return Ok(None);
    }
    let output = call.limit(LIMIT).capture_any()?;
    Ok(Some(match reader {
        Reader::Gdb => gdb(&output.stdout, &output.stderr),
        Reader::EuStack | Reader::Drgn => plain(&output.stdout),
        Reader::Lldb => lldb(&output.stdout),
    }))
}

/// `TID 7:` and then `#0 0x… name`, as eu-stack prints.
fn plain(text: &str) -> View {
    let (mut view, mut thread) = (View::default(), None);
    for line in text.lines() {
        if let Some(number) = line.strip_prefix("TID ") {
            thread = number.trim_end_matches(':').parse().ok();
        } else if let (Some(thread), Some(address)) = (thread, address_of(line)) {
            let behind = line.split_once("0x").and_then(|(_, rest)| rest.split_once(' '));
            view.frame(thread, address, behind.map_or("", |(_, name)| name));
        }
    }
    view
}

/// What [`GDB`] prints: as [`plain`], and `~ 0x… name` for a function that is inlined into the frame there.
fn gdb(text: &str, doubts: &str) -> View {
    let mut view = plain(text);
    for line in text.lines().filter_map(|line| line.strip_prefix("~ 0x")) {
        if let Some((address, name)) = line.split_once(' ')
            && let Ok(address) = u64::from_str_radix(address, 16)
        {
            view.name(address, name);
        }
    }
    view.doubts = doubts.lines().filter(|line| line.contains("may not match")).map(str::to_owned).collect();
    view
}

/// What [`LLDB`] prints: `thread #1, name = 'x'` is followed by frames, of which those with the stack pointer of the
/// one before are inlined into it.
fn lldb(text: &str) -> View {
    let (mut view, mut ids, mut thread, mut last) = (View::default(), BTreeMap::new(), None, None);
    for line in text.lines().map(|line| line.trim_start_matches([' ', '*'])) {
        if let Some(rest) = line.strip_prefix("thread #") {
            let number = rest.split([',', ':']).next().and_then(|number| number.trim().parse::<u32>().ok());
            let id = line.split_once("tid = ").and_then(|(_, rest)| rest.split(',').next()?.parse::<u32>().ok());
            ids.extend(number.zip(id));
            thread = number.and_then(|number| ids.get(&number).copied());
            last = None;
            let name = line.split_once("name = '").and_then(|(_, rest)| rest.split('\'').next());
            view.threads.extend(thread.zip(name.map(str::to_owned)));
        } else if let (Some(thread), Some(address)) = (thread, address_of(line)) {
            let mut words = line.splitn(4, ' ').skip(2);
            let (pointer, function) = (words.next().map(str::to_owned), words.next().unwrap_or_default());
            if pointer != last {
                let (outer, inner) = function.split_once(" [inlined] ").unwrap_or((function, ""));
                view.frame(thread, address, outer);
                view.name(address, inner);
            }
            last = pointer;
        }
    }
    view
}

/// The address of a `#3  0x… …` line.
fn address_of(line: &str) -> Option<u64> {
    let mut words = line.strip_prefix('#')?.split_whitespace();
    u64::from_str_radix(words.nth(1)?.strip_prefix("0x")?, 16).ok()
}

impl Reader {
    /// Compares what a reader found with what we see: frames and names that agree. drgn takes a file only when its
    /// program headers are loaded, which those of a kernel are not: it walks by frame pointers then, and where the
    /// innermost function has not yet made its own, that skips the caller.
    ///
    /// # Errors
    /// The first difference, in words.
    pub fn compare(self, ours: &View, theirs: &View) -> Result<(usize, usize), String> {
        if let Some(doubt) = theirs.doubts.first() {
            return Err(doubt.clone());
        }
        let frames = match agree(&ours.stacks, &theirs.stacks) {
            Err(difference) if self == Self::Drgn => {
                let without_caller =
                    |stack: &Vec<u64>| stack.iter().take(1).chain(stack.iter().skip(2)).copied().collect();
                let skipped = ours.stacks.iter().map(|(thread, stack)| (*thread, without_caller(stack))).collect();
                agree(&skipped, &theirs.stacks).map_err(|_| difference)?
            }
            result => result?,
        };
        for (thread, name) in &theirs.threads {
            if let Some(known) = ours.threads.get(thread).filter(|known| *known != name) {
                return Err(format!("thread {thread} is {known:?} here, {name:?} there"));
            }
        }
        Ok((frames, names::agree(&ours.stacks, &ours.names, &theirs.names)?))
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

    fn named(names: &[(u64, &str)]) -> Names {
        let mut all = Names::new();
        names.iter().for_each(|(address, name)| {
            all.entry(*address).or_default().insert((*name).to_owned());
        });
        all
    }

    #[test]
    fn what_gdb_prints_becomes_physical_frames_with_the_names_of_what_is_inlined() {
        let text = "[New LWP 7]\nTID 7:\n~ 0xff10 a::inner\n#0 0xff10 outer\n~ 0xff20 twice\n#1 0xff20 a::caller<u8>\n\
                    #2 0xff20 a::caller<u8>\n#3 0x0 ??\n";
        let view = gdb(text, "warning: core file may not match specified executable file.\n");
        assert_eq!(view.stacks, Stacks::from([(7, vec![0xff10, 0xff20, 0xff20, 0])]));
        let names = [(0xff10, "inner"), (0xff10, "outer"), (0xff20, "twice"), (0xff20, "caller")];
        assert_eq!(view.names, named(&names));
        assert_eq!(view.doubts.len(), 1);
    }

    #[test]
    fn what_lldb_prints_becomes_physical_frames_of_named_threads() {
        let text = "* thread #1: tid = 14, 0xff10, name = 'sh', stop reason = signal SIGABRT\n\
                    \x20 thread #2: tid = 1, 0xff30\n(lldb) thread backtrace all\n* thread #1, name = 'sh'\n\
                    \x20 * #0 0xff10 0x900 a::outer [inlined] a::inner\n    #1 0xff0c 0x900 a::outer\n\
                    \x20   #2 0xff20 0x940 entry\n  thread #2\n    #0 0xff30 0x500 idle\n";
        let view = lldb(text);
        assert_eq!(view.stacks, Stacks::from([(14, vec![0xff10, 0xff20]), (1, vec![0xff30])]));
        assert_eq!(view.names, named(&[(0xff10, "inner"), (0xff10, "outer"), (0xff20, "entry"), (0xff30, "idle")]));
        assert_eq!(view.threads, BTreeMap::from([(14, "sh".to_owned())]));
    }

    #[test]
    fn another_name_no_name_another_thread_and_a_doubt_are_differences() {
        let view = |name: &str, thread: &str| View {
            stacks: Stacks::from([(7, vec![1, 2])]),
            names: named(&[(1, name)]),
            threads: BTreeMap::from([(7, thread.to_owned())]),
            doubts: Vec::new(),
        };
        let ours = view("panic", "sh");
        let difference = |theirs: &View| Reader::Lldb.compare(&ours, theirs).expect_err("differs");
        assert_eq!(Reader::Lldb.compare(&ours, &view("panic", "sh")), Ok((2, 1)));
        assert!(difference(&view("halt", "sh")).contains("{\"panic\"} here, {\"halt\"} there"));
        assert!(difference(&view("panic", "init")).contains("\"sh\" here, \"init\" there"));
        assert!(difference(&View { names: Names::new(), ..view("", "sh") }).contains("no name there"));
        assert_eq!(difference(&View { doubts: vec!["no match".to_owned()], ..view("panic", "sh") }), "no match");
    }
}
