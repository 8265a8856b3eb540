//! Start-up order: from the entry of the kernel proper to the start of init.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::Ordering;

use kernel_logic::signal::sig;
use linux_abi::Errno;
use linux_abi::flags::file::O_RDWR;
use machine::arch::UserFrame;
use machine::boot::BootInfo;
use machine::cpu::{self, CpuId};
use machine::sync::Once;
use machine::thread::{FpuStart, UserStart};

use crate::fs::dentry::Moment;
use crate::fs::mount::{self, FileSystem, Mount};
use crate::fs::open::{self, How};
use crate::fs::tmpfs::{self, TmpFs};
use crate::fs::walk::Walk;
use crate::fs::{Caller, FdTable, FsContext, TableSlot, initramfs};
use crate::mm::{frames, huge, image, prefault};
use crate::sched;
use crate::task::exec::{self, Request};
use crate::task::limits::{self, resource};
use crate::task::process::Actions;
use crate::task::{Process, Task, Thread, ThreadRef, tree};
use crate::time;
use crate::upper::START;
use crate::{crash, inject, log, options, patience, trace, uts};

/// The first processor's way up.
pub fn main(boot: &BootInfo) -> ! {
    frames::start(boot);
    if machine::crash::prepare().is_err() {
        log::warn!("no memory for the crash path's own stacks: it runs on the stack of the code that died");
    }
    options::start(boot.command_line);
    patience::start();
    let chosen = options::get();
    log::set_console_level(chosen.loglevel.unwrap_or(if chosen.quiet { 4 } else { 7 }));
    trace::select(&chosen.debug, trace::refuse);
    log::info!("Linux version {} (kwab) {} on {}", uts::RELEASE, uts::VERSION, boot.platform);
    log::info!("Command line: {}", log::Escaped(&chosen.line));
    inject::start(chosen.inject.as_deref());
    huge::start(chosen.transparent_hugepage.as_deref());
    if let Some(mode) = &chosen.exec_image
        && image::set_mode(mode).is_err()
    {
        log::warn!("exec_image={}: expected off, huge or all", log::Escaped(mode));
    }
    if let Some(pages) = chosen.prefault {
        prefault::set_limit(pages);
    }
    crash::channel::announce();
    crash::description::keep();
    time::start();
    time::vdso::start();
    tmpfs::set_memory(frames::total() as u64);
    log::info!("Memory: {}K/{}K available", frames::free() * 4, frames::total() * 4);
    // There is no second boot that could have set it.
    let _ = RAMDISK.set(boot.initrd);
    let idle_process = Process::new(0, None, Actions::new(), sig::CHLD);
    // Nothing was set before.
    let _ = IDLE_PROCESS.set(idle_process);
    let idle = idle_thread();
    let init = init_thread();
    if chosen.max_cpus.is_none_or(|most| most > 1) && boot.cpus > 1 {
        let running = cpu::start_others();
        log::info!("smp: {running} processors running");
    }
    sched::start_first(init);
    START.enter(idle)
}

/// A further processor's way up.
pub fn ap_main(_cpu: CpuId) -> ! {
    let idle = idle_thread();
    START.enter(idle)
}

static RAMDISK: Once<&'static [u8]> = Once::new();
static IDLE_PROCESS: Once<Arc<Process>> = Once::new();

fn idle_thread() -> ThreadRef {
    let process = IDLE_PROCESS.get().expect("set by the first processor").clone();
    let task = Task::kernel(0, process, b"swapper", true);
    sched::idle_thread(task).expect("memory for an idle thread at boot")
}

fn init_thread() -> ThreadRef {
    let pid = tree::allocate().expect("the first process id is free");
    let process = Process::new(pid, None, Actions::new(), sig::CHLD);
    let mut task = Task::kernel(pid, process.clone(), b"init", false);
    task.kernel_thread = false;
    task.becomes_init.store(true, Ordering::Relaxed);
    task.files = TableSlot::new(Some(FdTable::first()));
    let frame = UserFrame::new(0, 0);
    let start = UserStart { frame: &frame, tls: 0, fpu: FpuStart::Fresh, space: None };
    let thread = Thread::user(task, &start).expect("memory for the first thread at boot");
    process.threads.add_first(&thread);
    tree::add_process(&process, thread.tid(), None, &thread);
    thread
}

/// Turns the first thread into init: root file system, console, program.
pub fn become_init(me: &Thread, frame: &mut UserFrame) {
    let root = TmpFs::new("rootfs", tmpfs::half_of_memory(), 0o755, b"");
    let top = root.root();
    let mount = Mount::new(root, top.clone(), b"rootfs", 0);
    mount::set_root(&mount);
    if let Err(errno) = initramfs::prepare(&top) {
        log::error!("root: {errno:?}");
    }
    let ramdisk = RAMDISK.get().copied().unwrap_or(&[]);
    let began = machine::time::now();
    let (unpacked, outcome) = initramfs::unpack(&top, ramdisk);
    if let Err(error) = outcome {
        log::error!("Initramfs unpacking failed: {error:?}");
    }
    let took = (machine::time::now() - began) / 1000;
    log::info!("initramfs: {} members, {} bytes in {took} us", unpacked.members, unpacked.bytes);
    let context = Arc::new(FsContext::new(mount.top()));
    drop(me.fs.set(Some(context.clone())));
    open_console(me, &context);
    permit_dumps(me);
    run_init(me, frame);
}

/// Lets programs be dumped if the command line gave dumps a destination. Without one the soft limit is Linux's default,
/// 0.
fn permit_dumps(me: &Thread) {
    if crash::dumps_processes() {
        me.process.accounting.change_limits(|limits| limits.0[resource::CORE].soft = limits::INFINITY);
    }
}

fn open_console(me: &Thread, context: &FsContext) {
    let walk = Walk { who: Caller::KERNEL, context, base: None, restrict: 0, began: Moment::ANY };
    let Ok(file) = open::open(&walk, b"/dev/console", How { flags: O_RDWR as u32, mode: 0 }) else {
        log::warn!("Warning: unable to open an initial console.");
        return;
    };
    for _ in 0..3 {
        // The table is empty: there is room for three.
        let _ = me.files().install(file.clone(), 0, 1024, false);
    }
}

/// Tries the programs Linux tries, in its order.
fn run_init(me: &Thread, frame: &mut UserFrame) {
    let chosen = options::get();
    let mut candidates: Vec<&[u8]> = Vec::new();
    candidates.push(chosen.rdinit.as_deref().unwrap_or(b"/init"));
    candidates.extend(chosen.init.as_deref());
    candidates.extend([&b"/sbin/init"[..], b"/etc/init", b"/bin/init", b"/bin/sh"]);
    for path in candidates {
        match try_init(me, frame, path) {
            Ok(()) => {
                log::info!("Run {} as init process", log::Escaped(path));
                return;
            }
            Err(Errno::ENOENT) => {}
            Err(errno) => {
                log::error!("Starting init: {} exists but couldn't execute it ({errno:?})", log::Escaped(path));
            }
        }
    }
    panic!("No working init found.  Try passing init= option to kernel.");
}

fn try_init(me: &Thread, frame: &mut UserFrame, path: &[u8]) -> Result<(), Errno> {
    let chosen = options::get();
    let mut argv = alloc::vec![path.to_vec()];
    argv.extend(chosen.init_args.iter().cloned());
    let mut envp = alloc::vec![b"HOME=/".to_vec(), b"TERM=linux".to_vec()];
    envp.extend(chosen.init_env.iter().cloned());
    let request = Request { path: path.to_vec(), base: None, location: None, keep_link: false, argv, envp };
    exec::exec(me, frame, request)
}
