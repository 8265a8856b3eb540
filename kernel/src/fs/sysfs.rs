//! A minimal `/sys`: what programs look for before they go on without it.
//!
//! A tmpfs of this kind's name, filled once; nothing in it can be changed by writing.

use alloc::sync::Arc;

use machine::sync::Once;

use super::attr::{S_IFDIR, S_IFREG};
use super::dentry::Dentry;
use super::inode::NewNode;
use super::mount::FileSystem;
use super::tmpfs::{self, Archive, TmpFs};
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
    "kernel/mm/transparent_hugepage",
    "module",
    "power",
];

/// Files with constant contents.
const FILES: &[(&str, &str)] = &[
    ("class/tty/ttyS0/dev", "4:64\n"),
    ("devices/system/cpu/kernel_max", "31\n"),
    ("kernel/mm/transparent_hugepage/enabled", "always madvise [never]\n"),
    ("kernel/mm/transparent_hugepage/hpage_pmd_size", "2097152\n"),
];

struct Constant(alloc::vec::Vec<u8>);

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
    let mut dir = root.clone();
    let mut parts = path.split('/').peekable();
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return dir.inode.create(&dir, part.as_bytes(), NewNode { mode, uid: 0, gid: 0, rdev: 0 });
        }
        dir = dir.inode.lookup(&dir, part.as_bytes())?;
    }
    Err(Errno::EINVAL)
}

fn set(file: &Arc<Dentry>, text: &[u8]) {
    tmpfs::set_archive(&file.inode, Arc::new(Constant(text.to_vec())));
}
