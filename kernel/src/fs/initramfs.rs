//! Fills the root from the initial ramdisk: one or several cpio archives, each plain or gzip.
//!
//! Contents are not copied: a file refers to its range of the archive, which stays in memory, and gets frames of its
//! own page by page when it is mapped or written. A cpio archive does not align contents to pages, so those frames are
//! copies; they are made once and then shared.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;

use kernel_logic::cpio::{Defect, Entry, Reader, Source};
use kernel_logic::gz::{self, GzError};
use linux_abi::Errno;

use super::attr::{S_IFCHR, S_IFDIR, S_IFLNK, S_IFMT, S_IFREG};
use super::dentry::Dentry;
use super::dev;
use super::inode::NewNode;
use super::tmpfs::{self, Archive};

/// Why the ramdisk could not be unpacked, or not whole; what came before the defect is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnpackError {
    /// The archive is damaged.
    Archive(Defect),
    /// The compressed file is damaged.
    Gzip(GzError),
    /// A member could not be made.
    Member(Errno),
}

/// What was unpacked.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unpacked {
    /// Number of archive members.
    pub members: usize,
    /// Bytes of contents.
    pub bytes: usize,
}

/// Bytes of an archive.
enum Store {
    Loaded(&'static [u8]),
    Inflated { chunks: Vec<Box<[u8]>>, length: usize },
}

/// Size of the pieces an inflated archive is kept in.
const CHUNK: usize = 64 << 10;

impl Store {
    fn piece(&self, at: usize) -> &[u8] {
        match self {
            Self::Loaded(bytes) => bytes.get(at..).unwrap_or(&[]),
            Self::Inflated { chunks, .. } => {
                chunks.get(at / CHUNK).and_then(|chunk| chunk.get(at % CHUNK..)).unwrap_or(&[])
            }
        }
    }
}

impl Source for &Store {
    fn len(&self) -> usize {
        match self {
            Store::Loaded(bytes) => bytes.len(),
            Store::Inflated { length, .. } => *length,
        }
    }

    fn read(&self, at: usize, into: &mut [u8]) -> usize {
        let mut done = 0;
        while done < into.len() {
            let piece = self.piece(at + done);
            let count = piece.len().min(into.len() - done);
            if count == 0 {
                break;
            }
            into[done..done + count].copy_from_slice(&piece[..count]);
            done += count;
        }
        done
    }
}

/// The contents of one member.
struct Range {
    store: Arc<Store>,
    start: usize,
    length: usize,
}

impl Archive for Range {
    fn len(&self) -> usize {
        self.length
    }

    fn piece(&self, at: usize) -> &[u8] {
        let piece = self.store.piece(self.start + at);
        &piece[..piece.len().min(self.length.saturating_sub(at))]
    }
}

/// Makes what the kernel itself needs in a root, as Linux's built-in archive does: `/dev/console` and `/root`.
pub fn prepare(root: &Arc<Dentry>) -> Result<(), Errno> {
    let dir = |name: &[u8], mode| root.inode.create(root, name, node(S_IFDIR | mode, 0));
    let dev = dir(b"dev", 0o755)?;
    dev.inode.create(&dev, b"console", node(S_IFCHR | 0o600, dev::CONSOLE))?;
    dir(b"root", 0o700)?;
    Ok(())
}

/// Unpacks `ramdisk` into the tree at `root`.
pub fn unpack(root: &Arc<Dentry>, ramdisk: &'static [u8]) -> (Unpacked, Result<(), UnpackError>) {
    let mut total = Unpacked::default();
    let mut rest = ramdisk;
    while let Some(first) = rest.iter().position(|&byte| byte != 0) {
        rest = &rest[first..];
        if !gz::is_gzip(rest) {
            let result = fill(root, Store::Loaded(rest), &mut total);
            // What follows a plain archive and is not an archive may be a compressed one: go on there.
            match result {
                Err(UnpackError::Archive(Defect::BadMagic(at))) if at > 0 && gz::is_gzip(&rest[at..]) => {
                    rest = &rest[at..];
                }
                other => return (total, other),
            }
            continue;
        }
        match inflate(rest) {
            Ok((store, taken)) => {
                if let Err(error) = fill(root, store, &mut total) {
                    return (total, Err(error));
                }
                rest = &rest[taken..];
            }
            Err(error) => return (total, Err(UnpackError::Gzip(error))),
        }
    }
    (total, Ok(()))
}

fn inflate(file: &[u8]) -> Result<(Store, usize), GzError> {
    let mut chunks: Vec<Box<[u8]>> = Vec::new();
    let mut current = Vec::with_capacity(CHUNK);
    let mut length = 0;
    let taken = gz::inflate(file, &mut |mut piece| {
        length += piece.len();
        while !piece.is_empty() {
            let count = piece.len().min(CHUNK - current.len());
            current.extend_from_slice(&piece[..count]);
            piece = &piece[count..];
            if current.len() == CHUNK {
                chunks.push(core::mem::replace(&mut current, Vec::with_capacity(CHUNK)).into_boxed_slice());
            }
        }
        true
    })?;
    chunks.push(current.into_boxed_slice());
    Ok((Store::Inflated { chunks, length }, taken))
}

fn fill(root: &Arc<Dentry>, store: Store, total: &mut Unpacked) -> Result<(), UnpackError> {
    let store = Arc::new(store);
    let mut linked: BTreeMap<(u32, (u32, u32)), Arc<Dentry>> = BTreeMap::new();
    for entry in Reader::new(&*store) {
        let entry = entry.map_err(UnpackError::Archive)?;
        total.members += 1;
        total.bytes += entry.size;
        add(root, &store, &entry, &mut linked).map_err(UnpackError::Member)?;
    }
    Ok(())
}

fn add(
    root: &Arc<Dentry>,
    store: &Arc<Store>,
    entry: &Entry,
    linked: &mut BTreeMap<(u32, (u32, u32)), Arc<Dentry>>,
) -> Result<(), Errno> {
    let (dir, name) = parent(root, &entry.name)?;
    if name.is_empty() || name == b"." {
        return Ok(());
    }
    if let Ok(existing) = dir.inode.lookup(&dir, name) {
        if existing.inode.attr().is_dir() {
            if entry.mode & S_IFMT == S_IFDIR {
                settle(&existing, entry);
            }
            return Ok(());
        }
        dir.inode.remove(&dir, &existing, false)?;
    }
    let key = (entry.ino, entry.dev);
    let hard_linked = entry.nlink > 1 && entry.mode & S_IFMT != S_IFDIR;
    if hard_linked && let Some(first) = linked.get(&key) {
        dir.inode.link(&dir, name, &first.inode)?;
        if entry.size > 0 {
            tmpfs::set_archive(&first.inode, range(store, entry));
        }
        settle(first, entry);
        return Ok(());
    }
    let rdev = dev::number(u64::from(entry.rdev.0), u64::from(entry.rdev.1));
    let new = NewNode { mode: entry.mode, uid: entry.uid, gid: entry.gid, rdev };
    let dentry = match entry.mode & S_IFMT {
        S_IFLNK => {
            let mut target = alloc::vec![0; entry.size];
            (&**store).read(entry.start, &mut target);
            dir.inode.symlink(&dir, name, &target, new)?
        }
        _ => dir.inode.create(&dir, name, new)?,
    };
    if entry.mode & S_IFMT == S_IFREG && entry.size > 0 {
        tmpfs::set_archive(&dentry.inode, range(store, entry));
    }
    settle(&dentry, entry);
    if hard_linked {
        linked.insert(key, dentry);
    }
    Ok(())
}

fn range(store: &Arc<Store>, entry: &Entry) -> Arc<dyn Archive> {
    Arc::new(Range { store: store.clone(), start: entry.start, length: entry.size })
}

/// Gives a member the attributes the archive states.
fn settle(dentry: &Arc<Dentry>, entry: &Entry) {
    let attr = dentry.inode.attr();
    attr.set_permissions(entry.mode);
    attr.set_owner(entry.uid, entry.gid);
    let time = i64::from(entry.mtime) * 1_000_000_000;
    attr.set_times(Some(time), Some(time));
}

/// The directory a member belongs into, made if the archive forgot it, and its last name.
fn parent<'n>(root: &Arc<Dentry>, name: &'n [u8]) -> Result<(Arc<Dentry>, &'n [u8]), Errno> {
    let mut dir = root.clone();
    let mut parts = name.split(|&byte| byte == b'/').filter(|part| !part.is_empty()).peekable();
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return Ok((dir, part));
        }
        dir = match dir.inode.lookup(&dir, part) {
            Err(Errno::ENOENT) => dir.inode.create(&dir, part, node(S_IFDIR | 0o755, 0))?,
            other => other?,
        };
    }
    Ok((dir, b""))
}

fn node(mode: u32, rdev: u64) -> NewNode {
    NewNode { mode, uid: 0, gid: 0, rdev }
}
