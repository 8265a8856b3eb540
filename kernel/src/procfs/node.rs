//! The inodes of `/proc`, made at each lookup.

use alloc::sync::Arc;
use alloc::vec::Vec;

use linux_abi::Errno;

use super::text::{Origin, TextFile};
use super::{ProcEntry, Target, What, tables};
use crate::fs::attr::{Attr, S_IFDIR, S_IFLNK, S_IFREG};
use crate::fs::dentry::Dentry;
use crate::fs::file::{File, FileOps, O_ACCMODE, Seeking};
use crate::fs::inode::{Emit, Inode, LinkTarget, NewNode, OpenRequest};
use crate::task::access::{self, By};
use crate::task::{Process, current, tree};

/// What a node is.
pub(super) enum Body {
    /// The top: the system's entries and a directory for each process.
    Root,
    /// A fixed directory.
    Table(&'static [ProcEntry]),
    /// A process or one of its threads.
    Process(&'static [ProcEntry]),
    /// `task`: the threads of a process.
    Threads,
    /// `fd`: its descriptors as links.
    Descriptors,
    /// `fdinfo`: what each descriptor's state is.
    DescriptorInfo,
    /// A file whose text is made when it is read.
    Text(What),
    /// A symbolic link.
    Link(super::Follow),
    /// `fd/N`: one descriptor as a link.
    Descriptor(i32),
    /// The state of one descriptor.
    OneInfo(i32),
}

/// A file of `/proc`.
pub(super) struct ProcNode {
    attr: Attr,
    target: Target,
    body: Body,
}

impl ProcNode {
    pub(super) fn new(dev: u64, ino: u64, mode: u32, target: Target, body: Body) -> Arc<Self> {
        let (uid, gid) = owner(target, mode);
        // A process may list its own descriptors whomever the directory belongs to.
        let open_to = if matches!(body, Body::Descriptors) { target.pid() } else { 0 };
        Arc::new(Self { attr: Attr::with_ino(ino, dev, mode, uid, gid, 0).open_to(open_to), target, body })
    }

    fn child(&self, dir: &Arc<Dentry>, name: &[u8], index: u64, mode: u32, target: Target, body: Body) -> Arc<Dentry> {
        // Process directories are numbered by their ids, everything else below its directory.
        let ino = match body {
            Body::Process(_) => u64::from(target.tid) << 20 | 1 << 19,
            _ => self.attr.ino.wrapping_mul(256).wrapping_add(index + 2),
        };
        Dentry::new(name, Some(dir.clone()), Self::new(self.attr.dev, ino, mode, target, body))
    }

    fn entry(&self, dir: &Arc<Dentry>, entries: &'static [ProcEntry], name: &[u8]) -> Option<Arc<Dentry>> {
        let (index, entry) = entries.iter().enumerate().find(|(_, entry)| entry.name.as_bytes() == name)?;
        let body = match entry.what {
            What::Directory(entries) => Body::Table(entries),
            What::File(_) | What::Constant(_) | What::Control(..) | What::Memory(_) | What::AtOpen(_) => {
                Body::Text(entry.what)
            }
            What::Link(follow) => Body::Link(follow),
            What::Threads => Body::Threads,
            What::Descriptors => Body::Descriptors,
            What::DescriptorInfo => Body::DescriptorInfo,
        };
        Some(self.child(dir, name, index as u64, mode_of(entry), self.target, body))
    }

    fn descriptor(&self, dir: &Arc<Dentry>, name: &[u8]) -> Result<Arc<Dentry>, Errno> {
        if matches!(self.body, Body::DescriptorInfo) {
            self.target.check_access()?;
        }
        let fd = number(name).and_then(|fd| i32::try_from(fd).ok()).ok_or(Errno::ENOENT)?;
        let file = self.target.thread()?.files.get().ok_or(Errno::ENOENT)?.get(fd).map_err(|_| Errno::ENOENT)?;
        if matches!(self.body, Body::DescriptorInfo) {
            return Ok(self.child(dir, name, fd as u64, S_IFREG | 0o400, self.target, Body::OneInfo(fd)));
        }
        let read = if file.is_readable() || file.is_path_only() { 0o500 } else { 0 };
        let write = if file.is_writable() { 0o300 } else { 0 };
        Ok(self.child(dir, name, fd as u64, S_IFLNK | read | write, self.target, Body::Descriptor(fd)))
    }

    fn list_table(&self, entries: &[ProcEntry], from: u64, emit: &mut Emit<'_>) -> bool {
        for (index, entry) in entries.iter().enumerate().skip(from as usize) {
            let ino = self.attr.ino.wrapping_mul(256).wrapping_add(index as u64 + 2);
            if !emit(index as u64 + 1, ino, mode_of(entry), entry.name.as_bytes()) {
                return false;
            }
        }
        true
    }

    /// Processes come behind the fixed entries: the cookie is 1000 more than the next id to look at.
    fn list_processes(from: u64, emit: &mut Emit<'_>) {
        const FIRST: u64 = 1000;
        let mut next = u32::try_from(from.saturating_sub(FIRST)).unwrap_or(u32::MAX);
        while let Some(process) = tree::next_process(next) {
            next = process.pid + 1;
            let name = alloc::format!("{}", process.pid);
            let ino = u64::from(process.pid) << 20 | 1 << 19;
            if !emit(FIRST + u64::from(next), ino, S_IFDIR | 0o555, name.as_bytes()) {
                return;
            }
        }
    }

    fn list_numbers(&self, from: u64, mode: u32, next: impl Fn(u32) -> Option<u32>, emit: &mut Emit<'_>) {
        let mut at = u32::try_from(from).unwrap_or(u32::MAX);
        while let Some(number) = next(at) {
            let name = alloc::format!("{number}");
            at = number.saturating_add(1);
            let ino = self.attr.ino.wrapping_mul(256).wrapping_add(u64::from(number) + 2);
            if !emit(u64::from(at), ino, mode, name.as_bytes()) || at == u32::MAX {
                return;
            }
        }
    }
}

/// A process's files belong to its effective user; to root if it is not dumpable, but for directories all may search.
fn owner(target: Target, mode: u32) -> (u32, u32) {
    if target.identity.is_none() {
        return (0, 0);
    }
    let Ok(thread) = target.thread() else { return (0, 0) };
    if mode == S_IFDIR | 0o555 {
        thread.creds.with(|creds| (creds.euid, creds.egid))
    } else {
        access::owner_in_proc(&thread)
    }
}

impl Inode for ProcNode {
    fn attr(&self) -> &Attr {
        &self.attr
    }

    fn size(&self) -> u64 {
        // What Linux shows for these links, whatever they lead to.
        if matches!(self.body, Body::Descriptor(_)) { 64 } else { 0 }
    }

    fn lookup(&self, dir: &Arc<Dentry>, name: &[u8]) -> Result<Arc<Dentry>, Errno> {
        let process_dir = |process: &Process, tid, entries| {
            let target = Target::of(process, tid);
            self.child(dir, name, 0, S_IFDIR | 0o555, target, Body::Process(entries))
        };
        match self.body {
            Body::Root => {
                // No name of the table begins with a digit.
                if !name.first().is_some_and(u8::is_ascii_digit) {
                    return self.entry(dir, tables::ROOT, name).ok_or(Errno::ENOENT);
                }
                let id = number(name).ok_or(Errno::ENOENT)?;
                if let Some(process) = tree::process(id) {
                    return Ok(process_dir(&process, id, tables::PROCESS));
                }
                // A thread's id works here too, though it is not listed.
                let thread = tree::thread(id).ok_or(Errno::ENOENT)?;
                Ok(process_dir(&thread.process, id, tables::PROCESS))
            }
            Body::Table(entries) => self.entry(dir, entries, name).ok_or(Errno::ENOENT),
            Body::Process(entries) => {
                self.target.process().map_err(|_| Errno::ENOENT)?;
                self.entry(dir, entries, name).ok_or(Errno::ENOENT)
            }
            Body::Threads => {
                let id = number(name).ok_or(Errno::ENOENT)?;
                let thread = tree::thread(id).filter(|thread| self.target.is_of(&thread.process));
                Ok(process_dir(&thread.ok_or(Errno::ENOENT)?.process, id, tables::THREAD))
            }
            Body::Descriptors | Body::DescriptorInfo => self.descriptor(dir, name),
            _ => Err(Errno::ENOTDIR),
        }
    }

    fn readdir(&self, _dir: &Arc<Dentry>, from: u64, emit: &mut Emit<'_>) -> Result<(), Errno> {
        match self.body {
            Body::Root => {
                if self.list_table(tables::ROOT, from, emit) {
                    Self::list_processes(from, emit);
                }
            }
            Body::Process(entries) => {
                self.target.process().map_err(|_| Errno::ENOENT)?;
                self.list_table(entries, from, emit);
            }
            Body::Table(entries) => {
                self.list_table(entries, from, emit);
            }
            Body::Threads => {
                let process = self.target.process()?;
                let mut ids: Vec<u32> = process.threads.list().iter().map(|thread| thread.tid()).collect();
                ids.sort_unstable();
                self.list_numbers(from, S_IFDIR | 0o555, |at| ids.iter().copied().find(|&id| id >= at), emit);
            }
            Body::Descriptors | Body::DescriptorInfo => {
                let Some(files) = self.target.thread()?.files.get() else { return Ok(()) };
                let mode = if matches!(self.body, Body::Descriptors) { S_IFLNK | 0o700 } else { S_IFREG | 0o400 };
                self.list_numbers(from, mode, |at| files.next_open(at).map(|(fd, _)| fd), emit);
            }
            _ => return Err(Errno::ENOTDIR),
        }
        Ok(())
    }

    fn create(&self, _dir: &Arc<Dentry>, _name: &[u8], _new: NewNode) -> Result<Arc<Dentry>, Errno> {
        // A name that is not there cannot be looked up here, which is what comes first.
        Err(Errno::ENOENT)
    }

    fn link_target(&self) -> Result<LinkTarget, Errno> {
        match self.body {
            Body::Link(follow) => follow(self.target),
            Body::Descriptor(fd) => self.target.look(|| {
                let files = self.target.thread()?.files.get().ok_or(Errno::ENOENT)?;
                Ok(LinkTarget::Jump(files.get(fd).map_err(|_| Errno::ENOENT)?.path.clone()))
            }),
            _ => Err(Errno::EINVAL),
        }
    }

    fn truncate(&self, _size: u64) -> Result<(), Errno> {
        // `echo 1 > control` truncates first.
        if matches!(self.body, Body::Text(_)) { Ok(()) } else { Err(Errno::EINVAL) }
    }

    fn open(self: Arc<Self>, request: &OpenRequest) -> Result<Arc<dyn FileOps>, Errno> {
        match self.body {
            // Not even root's privilege makes a constant a setting.
            Body::Text(What::Constant(_)) if request.flags & O_ACCMODE != 0 => Err(Errno::EACCES),
            Body::Text(what @ What::Memory(_)) => {
                let thread = self.target.thread()?;
                let mm = access::memory(&current(), &thread, By::FileSystemIds).map_err(|_| Errno::EACCES)?;
                Ok(Arc::new(TextFile::about(self.target, Origin::Table(what), mm.as_ref())))
            }
            Body::Text(what @ What::AtOpen(read)) => {
                let thread = self.target.thread()?;
                let mm = access::memory(&current(), &thread, By::FileSystemIds).map_err(|_| Errno::EACCES)?;
                let text = mm.map_or(Ok(Vec::new()), |mm| read(&mm))?;
                Ok(Arc::new(TextFile::holding(self.target, Origin::Table(what), text)))
            }
            Body::DescriptorInfo => {
                self.target.check_access()?;
                Ok(self)
            }
            Body::Text(what) => Ok(Arc::new(TextFile::new(self.target, Origin::Table(what)))),
            Body::OneInfo(fd) => Ok(Arc::new(TextFile::new(self.target, Origin::Descriptor(fd)))),
            Body::Link(_) | Body::Descriptor(_) => Err(Errno::ELOOP),
            _ => Ok(self),
        }
    }
}

impl FileOps for ProcNode {
    fn read(&self, _file: &File, _position: u64, _sink: &mut crate::fs::io::Sink<'_>) -> Result<(), Errno> {
        Err(Errno::EISDIR)
    }

    fn seeking(&self) -> Seeking {
        Seeking::Position
    }

    fn readdir(&self, file: &File, from: u64, emit: &mut Emit<'_>) -> Result<(), Errno> {
        Inode::readdir(self, &file.path.dentry, from, emit)
    }
}

fn mode_of(entry: &ProcEntry) -> u32 {
    let kind = match entry.what {
        What::File(_) | What::Constant(_) | What::Control(..) | What::Memory(_) | What::AtOpen(_) => S_IFREG,
        What::Link(_) => S_IFLNK,
        _ => S_IFDIR,
    };
    kind | entry.mode
}

fn number(name: &[u8]) -> Option<u32> {
    if name.first() == Some(&b'0') && name.len() > 1 {
        return None;
    }
    name.iter().all(u8::is_ascii_digit).then(|| core::str::from_utf8(name).ok()?.parse().ok()).flatten()
}
