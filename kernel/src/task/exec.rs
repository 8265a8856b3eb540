//! execve(2): opens the file, follows `#!`, builds the new memory, and only then drops the old.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::Ordering;

use kernel_logic::elf;
use kernel_logic::permission::READ;
use kernel_logic::sigstack::AltStack;
use linux_abi::Errno;
use machine::arch::UserFrame;
use machine::thread::running;

use super::access;
use super::account::Kind;
use super::creds::cap;
use super::limits::resource;
use super::loader::{self, Given, Loaded, Program};
use super::{Above, Creds, Observer, Thread};
use crate::fs::attr::S_IFREG;
use crate::fs::dentry::Moment;
use crate::fs::fdtable::FdTable;
use crate::fs::io::Sink;
use crate::fs::mount::MS_NOSUID;
use crate::fs::open;
use crate::fs::walk::{Last, Walk};
use crate::fs::{Caller, File, Headers, Path};
use crate::mm::Owner as _;
use crate::sched;
use crate::trace;
use crate::trace::span::{Id, span};
use crate::upper::Kwab;

/// What execve was given.
pub struct Request {
    /// The path, as given.
    pub path: Vec<u8>,
    /// Where a relative path begins, if not at the working directory.
    pub base: Option<Path>,
    /// The file itself (`AT_EMPTY_PATH`).
    pub location: Option<Path>,
    /// Do not follow a last symbolic link.
    pub keep_link: bool,
    /// Argument strings without their NULs.
    pub argv: Vec<Vec<u8>>,
    /// Environment strings without their NULs.
    pub envp: Vec<Vec<u8>>,
}

/// Most interpreters in a row (`#!` of `#!`).
const MAX_DEPTH: usize = 5;
/// Bytes looked at for `#!` (`BINPRM_BUF_SIZE`).
const START_BYTES: usize = 256;

/// Executes; on success `frame` begins the new program.
pub fn exec(me: &Thread, frame: &mut UserFrame, mut request: Request) -> Result<(), Errno> {
    let _whole = span(Id::Exec);
    if me.exceeds_processes.load(Ordering::Relaxed) {
        let threads = me.creds.with(|creds| creds.account.sum(Kind::Threads));
        if threads > me.process.limit(resource::NPROC) {
            return Err(Errno::EAGAIN);
        }
        me.exceeds_processes.store(false, Ordering::Relaxed);
    }
    let opening = span(Id::ExecOpen);
    let file = open_file(me, &request)?;
    let (file, start) = follow_shebang(me, file, &mut request)?;
    drop(opening);
    // Those of the interpreter: a script's own are ignored, since it could be exchanged before it is read (execve(2)).
    let (set_uid, set_gid) = set_ids(&file);
    let has_set_id = set_uid.is_some() || set_gid.is_some();
    let program = read_program(me, file, start)?;
    let old_creds = me.creds();
    let mut creds = (*old_creds).clone();
    let secure = creds.after_exec(set_uid, set_gid);
    let old_stack = me.process.limit(resource::STACK);
    if secure {
        // Another process in its directory could move it under the program; threads that go away with the execution
        // cannot.
        only_thread(me)?;
        if shares_context(me) && !old_creds.capable(cap::SETUID) {
            creds = (*old_creds).clone();
            creds.after_exec(Some(old_creds.uid), Some(old_creds.gid));
        }
    }
    let readable = is_readable(&old_creds, &program);
    let given = Given {
        argv: &request.argv,
        envp: &request.envp,
        execfn: &request.path,
        creds: &creds,
        secure,
        stack_limit: if secure { old_stack.min(SECURE_STACK) } else { old_stack },
        limits: me.memory_limits(),
    };
    let loaded = loader::load(&program, &given)?;
    let alone = span(Id::ExecAlone);
    only_thread(me)?;
    drop(alone);
    // A table that is shared with other processes is copied before close-on-exec acts on it.
    let files = me.files.own()?.unwrap_or_else(|| me.files());
    // From here on the old program is gone and nothing may fail.
    let name = request.path.rsplit(|b| *b == b'/').next().unwrap_or(b"");
    me.set_comm(name);
    let argv0 = request.argv.first().map_or(&b""[..], Vec::as_slice);
    let own = (old_creds.uid, old_creds.gid) == (old_creds.euid, old_creds.egid);
    let dumpable = readable && own && !creds.differs_for_others(&old_creds);
    loaded.mm.dumpable.store(dumpable, Ordering::Relaxed);
    let no_huge = me.mm.with(|mm| mm.is_some_and(|mm| mm.no_huge.load(Ordering::Relaxed)));
    loaded.mm.no_huge.store(no_huge, Ordering::Relaxed);
    settle_secure(me, &old_creds, &creds, secure, has_set_id && !old_creds.no_new_privs);
    trace::flight::exec(loaded.entry, loaded.sp);
    trace::event::exec(me.pid(), argv0, loaded.entry);
    become_program(me, frame, loaded, creds, &files);
    <Kwab as Observer>::program_executed(me);
    Ok(())
}

fn walk_from<R>(me: &Thread, base: Option<Path>, run: impl FnOnce(&Walk<'_>) -> R) -> R {
    let creds = me.creds();
    let context = me.fs();
    run(&Walk { who: caller(&creds), context: &context, base, restrict: 0, began: Moment::ANY })
}

fn caller(creds: &Creds) -> Caller<'_> {
    Caller { uid: creds.fsuid, gid: creds.fsgid, groups: &creds.groups, capabilities: creds.effective }
}

fn open_file(me: &Thread, request: &Request) -> Result<Arc<File>, Errno> {
    let last = if request.keep_link { Last::Keep } else { Last::Follow };
    walk_from(me, request.base.clone(), |walk| match &request.location {
        Some(location) => open::exec_found(walk, location.clone()),
        None => open::open_exec(walk, &request.path, last),
    })
}

/// User and group the file's set-id bits ask for.
fn set_ids(file: &File) -> (Option<u32>, Option<u32>) {
    let attr = file.inode().attr();
    let (mode, uid, gid) = attr.mode_and_owner();
    if file.path.mount.flags() & MS_NOSUID != 0 || attr.kind() != S_IFREG {
        return (None, None);
    }
    let set_uid = (mode & 0o4000 != 0).then_some(uid);
    let set_gid = (mode & 0o2010 == 0o2010).then_some(gid);
    (set_uid, set_gid)
}

/// The headers of a program that was executed before, or how another one begins.
type Start = Result<Arc<Headers>, Vec<u8>>;

fn follow_shebang(me: &Thread, mut file: Arc<File>, request: &mut Request) -> Result<(Arc<File>, Start), Errno> {
    // The name of the program stays that of the first script (`comm`, AT_EXECFN).
    let mut path = request.path.clone();
    for _ in 0..=MAX_DEPTH {
        if let Some(headers) = loader::known_headers(&file) {
            return Ok((file, Ok(headers)));
        }
        let mut start = alloc::vec![0; START_BYTES];
        let got = file.read_at(0, &mut Sink::kernel(&mut start))?;
        start.truncate(got);
        let Some((interpreter, argument)) = elf::shebang(&start) else { return Ok((file, Err(start))) };
        let interpreter = interpreter.to_vec();
        let script = core::mem::replace(&mut path, interpreter.clone());
        let mut argv = Vec::new();
        argv.try_reserve_exact(request.argv.len() + 3).map_err(|_| Errno::ENOMEM)?;
        argv.push(interpreter.clone());
        argv.extend(argument.map(<[u8]>::to_vec));
        argv.push(script);
        argv.extend(request.argv.drain(..).skip(1));
        request.argv = argv;
        file = walk_from(me, None, |walk| open::open_exec(walk, &interpreter, Last::Follow))?;
    }
    Err(Errno::ELOOP)
}

fn read_program(me: &Thread, file: Arc<File>, start: Start) -> Result<Program, Errno> {
    let headers = start.or_else(|start| loader::read_headers(&file, &start))?;
    let interpreter = match &headers.interpreter {
        None => None,
        Some(path) => Some(open_interpreter(me, path.as_deref().map_err(|error| *error)?)?),
    };
    Ok(Program { file, headers, interpreter })
}

fn open_interpreter(me: &Thread, path: &[u8]) -> Result<(Arc<File>, Arc<Headers>), Errno> {
    let file = walk_from(me, None, |walk| open::open_exec(walk, path, Last::Follow))?;
    if let Some(headers) = loader::known_headers(&file) {
        return Ok((file, headers));
    }
    let mut start = [0; elf::HEADER_BYTES];
    let got = file.read_at(0, &mut Sink::kernel(&mut start))?;
    let headers = loader::read_headers(&file, &start[..got]).map_err(|_| Errno::ELIBBAD)?;
    Ok((file, headers))
}

/// Whether a process besides this one, whose other threads are gone, stands in the same directories (`CLONE_FS`).
fn shares_context(me: &Thread) -> bool {
    let context = me.fs();
    // One reference is the slot's, one is ours; a reader in /proc drops its reference soon.
    for _ in 0..PATIENCE {
        if Arc::strong_count(&context) <= 2 {
            return false;
        }
        sched::yield_now();
    }
    true
}

/// Whether the caller may read all the program is made of, and so may look at its memory.
fn is_readable(creds: &Creds, program: &Program) -> bool {
    let who = caller(creds);
    let readable = |file: &File| file.inode().attr().check(&who, READ).is_ok();
    readable(&program.file) && program.interpreter.as_ref().is_none_or(|(file, ..)| readable(file))
}

/// Takes away what the caller set up for itself and could turn against a program with other ids (execve(2),
/// personality(2)).
fn settle_secure(me: &Thread, old: &Creds, new: &Creds, secure: bool, has_set_id: bool) {
    if secure || new.differs_for_others(old) {
        me.parent_death_signal.store(0, Ordering::Relaxed);
    }
    if has_set_id {
        me.process.set_personality(me.process.personality() & !CLEARED_PERSONALITY);
    }
    if secure {
        me.process.accounting.change_limits(|limits| {
            let stack = &mut limits.0[resource::STACK];
            stack.soft = stack.soft.min(SECURE_STACK);
        });
    }
}

/// Looks for others in the same directories, one turn of the processor apart.
const PATIENCE: u32 = 100;
/// The largest stack a program with other ids than its caller's starts with (`_STK_LIM`).
const SECURE_STACK: u64 = 8 << 20;
/// `PER_CLEAR_ON_SETID`: READ_IMPLIES_EXEC, ADDR_COMPAT_LAYOUT, MMAP_PAGE_ZERO, ADDR_NO_RANDOMIZE.
const CLEARED_PERSONALITY: u32 = 0x0074_0000;

/// Ends every other thread of the process and waits until they are gone. `EAGAIN` if the process itself must end.
fn only_thread(me: &Thread) -> Result<(), Errno> {
    if me.process.threads.dismiss_others(me.tid())? {
        let old = me.tid();
        // First, so that nothing more queues for the old number.
        super::tree::take_over(me);
        <Kwab as Above>::renumber(old, me.process.pid);
    }
    Ok(())
}

fn become_program(me: &Thread, frame: &mut UserFrame, loaded: Loaded, creds: Creds, files: &FdTable) {
    let Loaded { mm, entry, sp } = loaded;
    <Kwab as Above>::release_futexes(me, true);
    mm.audit("exec");
    let switching = span(Id::ExecSwitch);
    me.set_space(Some(mm.space.clone()));
    let old = access::switch(me, mm, Arc::new(creds));
    if let Some(old) = old {
        me.process.accounting.note_resident(&old);
        drop(old);
    }
    drop(switching);
    me.finish_vfork();
    let closing = span(Id::ExecClose);
    files.close_on_exec();
    drop(closing);
    reset_signals(me);
    me.rseq.addr.store(0, Ordering::Relaxed);
    me.process.timers.clear();
    crate::task::signal::discard_timers(me);
    me.process.family.executed();
    running::reset();
    *frame = UserFrame::new(entry, sp);
    frame.forget_syscall();
}

/// Takes handlers and the alternate stack away (execve(2)).
fn reset_signals(me: &Thread) {
    let _span = span(Id::ExecSignals);
    me.process.signals.forget_handlers();
    me.signals.alt_stack.set(AltStack::default());
}
