//! A minimal `/sys`: what programs look for before they go on without it.
//!
//! A tmpfs of this kind's name, filled once; only the files of [`CONTROLS`] change, and of these the settings take what
//! is written to them.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::num::IntErrorKind;

use machine::sync::Once;

use super::attr::{Attr, S_IFDIR, S_IFREG};
use super::dentry::Dentry;
use super::file::{File, FileOps, O_ACCMODE, Seeking};
use super::inode::{Inode, NewNode, OpenRequest};
use super::io::{Sink, Source};
use super::mount::FileSystem;
use super::tmpfs::{self, Archive, TmpFs};
use crate::mm::{huge, pool};
use linux_abi::Errno;

/// Directories that exist, parents first.
const DIRECTORIES: &[&str] = &[
    "block",
    "bus",
    "class",
    "class/tty",
    "class/tty/ttyS0",
    "class/mem",
    "dev",
    "dev/block",
    "dev/char",
    "devices",
    "devices/system",
    "devices/system/cpu",
    "firmware",
    "fs",
    "kernel",
    "kernel/mm",
    "kernel/mm/hugepages",
    "kernel/mm/hugepages/hugepages-2048kB",
    "kernel/mm/transparent_hugepage",
    "module",
    "power",
];

/// Files with constant contents.
const FILES: &[(&str, &str)] = &[
    ("class/tty/ttyS0/dev", "4:64\n"),
    ("devices/system/cpu/kernel_max", "31\n"),
    ("kernel/mm/transparent_hugepage/hpage_pmd_size", "2097152\n"),
];

/// A file that shows what is now.
#[derive(Clone, Copy)]
struct Control {
    text: fn() -> Vec<u8>,
    /// Takes a word that was written; without it a writer is refused, privileged or not (EACCES).
    set: Option<Set>,
}

type Set = fn(&[u8]) -> Result<(), Errno>;

const fn setting(text: fn() -> Vec<u8>, set: Set) -> Control {
    Control { text, set: Some(set) }
}

const fn figure(text: fn() -> Vec<u8>) -> Control {
    Control { text, set: None }
}

/// Files that change, and files that change what the kernel does.
const CONTROLS: &[(&str, Control)] = &[
    (
        "kernel/mm/transparent_hugepage/defrag",
        setting(|| huge::Control::Defrag.text(), |to| huge::Control::Defrag.set(to)),
    ),
    (
        "kernel/mm/transparent_hugepage/enabled",
        setting(|| huge::Control::Enabled.text(), |to| huge::Control::Enabled.set(to)),
    ),
    ("kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", setting(|| line(pool::counts().total), resize)),
    (
        "kernel/mm/hugepages/hugepages-2048kB/nr_overcommit_hugepages",
        setting(
            || line(pool::overcommit()),
            |text| {
                pool::set_overcommit(number(text)?);
                Ok(())
            },
        ),
    ),
    ("kernel/mm/hugepages/hugepages-2048kB/free_hugepages", figure(|| line(pool::counts().free))),
    ("kernel/mm/hugepages/hugepages-2048kB/resv_hugepages", figure(|| line(pool::counts().reserved))),
    ("kernel/mm/hugepages/hugepages-2048kB/surplus_hugepages", figure(|| line(pool::counts().surplus))),
];

fn line(number: usize) -> Vec<u8> {
    alloc::format!("{number}\n").into_bytes()
}

/// Resizes the pool of huge pages to a number in decimal.
fn resize(text: &[u8]) -> Result<(), Errno> {
    pool::resize(number(text)?);
    Ok(())
}

/// A number in decimal: EINVAL for another text, ERANGE for one that is too large.
fn number(text: &[u8]) -> Result<usize, Errno> {
    let number = core::str::from_utf8(text).map_err(|_| Errno::EINVAL)?.parse::<usize>();
    number.map_err(|error| match error.kind() {
        IntErrorKind::PosOverflow => Errno::ERANGE,
        _ => Errno::EINVAL,
    })
}

/// A file of [`CONTROLS`].
struct ControlFile {
    attr: Attr,
    what: Control,
}

/// The most bytes one write of a setting has.
const LONGEST_SETTING: usize = 4096;

impl Inode for ControlFile {
    fn attr(&self) -> &Attr {
        &self.attr
    }

    fn size(&self) -> u64 {
        LONGEST_SETTING as u64
    }

    fn truncate(&self, _size: u64) -> Result<(), Errno> {
        // `echo always > enabled` truncates first.
        Ok(())
    }

    fn open(self: Arc<Self>, request: &OpenRequest) -> Result<Arc<dyn FileOps>, Errno> {
        if request.flags & O_ACCMODE != 0 && self.what.set.is_none() {
            return Err(Errno::EACCES);
        }
        Ok(self)
    }
}

impl FileOps for ControlFile {
    fn read(&self, _file: &File, position: u64, sink: &mut Sink<'_>) -> Result<(), Errno> {
        let text = (self.what.text)();
        let start = usize::try_from(position).unwrap_or(usize::MAX).min(text.len());
        sink.put(&text[start..]).map(|_| ())
    }

    fn write(&self, _file: &File, position: u64, source: &mut Source<'_>) -> Result<u64, Errno> {
        let mut bytes = alloc::vec![0; source.left().min(LONGEST_SETTING)];
        source.take(&mut bytes)?;
        let set = self.what.set.ok_or(Errno::EIO);
        if let Err(error) = set.and_then(|set| set(bytes.trim_ascii_end())) {
            source.untake(bytes.len());
            return Err(error);
        }
        Ok(position)
    }

    fn seeking(&self) -> Seeking {
        Seeking::Position
    }
}

struct Constant(Vec<u8>);

impl Archive for Constant {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn piece(&self, at: usize) -> &[u8] {
        self.0.get(at..).unwrap_or(&[])
    }
}

/// The file system, the same for every mount.
pub fn file_system() -> Arc<dyn FileSystem> {
    static FS: Once<Arc<TmpFs>> = Once::new();
    loop {
        if let Some(fs) = FS.get() {
            return fs.clone();
        }
        let fs = TmpFs::new("sysfs", 1024, 0o555, b"");
        if let Err(error) = fill(&fs.root()) {
            crate::log::warn!("sysfs: {error}");
        }
        fs.fix();
        // Of two that come here at once, one is used.
        let _ = FS.set(fs);
    }
}

fn fill(root: &Arc<Dentry>) -> Result<(), Errno> {
    for path in DIRECTORIES {
        make(root, path, S_IFDIR | 0o555)?;
    }
    for (path, text) in FILES {
        set(&make(root, path, S_IFREG | 0o444)?, text.as_bytes());
    }
    for (path, what) in CONTROLS {
        let rights = if what.set.is_some() { 0o644 } else { 0o444 };
        let attr = Attr::new(root.inode.attr().dev, S_IFREG | rights, 0, 0, 0);
        // The link below counts its name.
        attr.set_nlink(0);
        attr.set_linkable();
        attach(root, path, Arc::new(ControlFile { attr, what: *what }))?;
    }
    let online = machine::cpu::online();
    let last = 63 - online.leading_zeros().min(63);
    let all = if last == 0 { alloc::string::String::from("0\n") } else { alloc::format!("0-{last}\n") };
    for name in ["online", "possible", "present"] {
        let path = alloc::format!("devices/system/cpu/{name}");
        set(&make(root, &path, S_IFREG | 0o444)?, all.as_bytes());
    }
    for number in (0..64).filter(|number| online >> number & 1 != 0) {
        make(root, &alloc::format!("devices/system/cpu/cpu{number}"), S_IFDIR | 0o555)?;
    }
    Ok(())
}

fn make(root: &Arc<Dentry>, path: &str, mode: u32) -> Result<Arc<Dentry>, Errno> {
    let (dir, name) = parent(root, path)?;
    dir.inode.create(&dir, name, NewNode { mode, uid: 0, gid: 0, rdev: 0 })
}

fn attach(root: &Arc<Dentry>, path: &str, file: Arc<dyn Inode>) -> Result<(), Errno> {
    let (dir, name) = parent(root, path)?;
    dir.inode.link(&dir, name, &file)
}

/// The directory that a path is in, and the name there.
fn parent<'a>(root: &Arc<Dentry>, path: &'a str) -> Result<(Arc<Dentry>, &'a [u8]), Errno> {
    let (above, name) = path.rsplit_once('/').unwrap_or(("", path));
    let mut dir = root.clone();
    for part in above.split('/').filter(|part| !part.is_empty()) {
        dir = dir.inode.lookup(&dir, part.as_bytes())?;
    }
    Ok((dir, name.as_bytes()))
}

fn set(file: &Arc<Dentry>, text: &[u8]) {
    tmpfs::set_archive(&file.inode, Arc::new(Constant(text.to_vec())));
}
