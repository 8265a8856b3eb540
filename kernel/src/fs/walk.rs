//! Resolves path names (path_resolution(7)).
//!
//! A [`Walk`] has the caller, the start and the restrictions of a resolution (`RESOLVE_*` of openat2(2)). The path is
//! read in place: no component is copied, no memory is allocated but for the targets of symbolic links that are shared
//! with the inode.

use alloc::sync::Arc;

use kernel_logic::path::{self as rules, Step, Steps};
use kernel_logic::permission::EXECUTE;
use linux_abi::Errno;
use linux_abi::flags::file::{
    RESOLVE_BENEATH, RESOLVE_IN_ROOT, RESOLVE_NO_MAGICLINKS, RESOLVE_NO_SYMLINKS, RESOLVE_NO_XDEV,
};

use super::attr::{Attr, S_IFLNK};
use super::dentry::{Dentry, Moment};
use super::inode::LinkTarget;
use super::mount;
use super::path::Path;
use super::{Caller, FsContext};
use crate::trace::span::{Id, span};

/// What becomes of a symbolic link as the last component.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Last {
    /// It is followed.
    Follow,
    /// The link itself is meant, unless a slash follows.
    Keep,
}

/// The directory of a path's last component.
pub struct Parent<'p> {
    /// The directory that contains it.
    pub dir: Path,
    /// The last component; `None` for a path that ends in `.` or `..` or is the root.
    pub name: Option<&'p [u8]>,
    /// How the path ends if it has no last name.
    pub ending: Step<'p>,
    /// A slash follows the name.
    pub wants_dir: bool,
}

/// A walk to be made.
pub struct Walk<'a> {
    /// The ids that permission checks use.
    pub who: Caller<'a>,
    /// Root and working directory.
    pub context: &'a FsContext,
    /// Where relative paths begin, if not at the working directory.
    pub base: Option<Path>,
    /// `RESOLVE_*` bits of openat2(2).
    pub restrict: u32,
    /// When a restricted walk began: a rename in between could evade the restriction. Four bytes beside `restrict`, so
    /// that a walk stays small enough to be moved without a call.
    pub began: Moment,
}

/// Whether a symbolic link is followed, and whether it ends the whole walk.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Follow {
    No,
    Inside,
    Trailing,
}

impl Walk<'_> {
    /// The path that the name `path` resolves to.
    #[inline]
    pub fn find(&self, path: &[u8], last: Last) -> Result<Path, Errno> {
        if path.is_empty() {
            return Err(Errno::ENOENT);
        }
        let start = self.start(path)?;
        self.run(start, path, last, true, &mut 0)
    }

    /// The directory that holds the last component of `path`.
    pub fn parent<'p>(&self, path: &'p [u8]) -> Result<Parent<'p>, Errno> {
        if path.is_empty() {
            return Err(Errno::ENOENT);
        }
        self.parent_from(self.start(path)?, path, &mut 0)
    }

    /// [`Self::parent`] of the target of a symbolic link that stands in `dir`; `links` counts those followed.
    pub fn parent_of_target<'p>(&self, dir: Path, target: &'p [u8], links: &mut u32) -> Result<Parent<'p>, Errno> {
        self.count_link(links)?;
        let start = if rules::is_absolute(target) { self.absolute_start()? } else { dir };
        self.parent_from(start, target, links)
    }

    /// The entry `name` of `dir`, across mounts; a symbolic link is not followed.
    #[inline]
    pub fn child(&self, dir: &Path, name: &[u8]) -> Result<Path, Errno> {
        let mut at = dir.clone();
        let found = self.look_up(&at, name)?;
        self.enter(&mut at, found)?;
        Ok(at)
    }

    fn parent_from<'p>(&self, mut at: Path, path: &'p [u8], links: &mut u32) -> Result<Parent<'p>, Errno> {
        let _span = span(Id::PathWalk);
        let mut steps = Steps::new(path);
        let mut ending = Step::Here;
        while let Some(walked) = steps.next_step() {
            match walked.step {
                Step::Name(name) if walked.last => {
                    at.inode().attr().check_search(&self.who)?;
                    check_length(name)?;
                    return Ok(Parent {
                        dir: at,
                        name: Some(name),
                        ending: walked.step,
                        wants_dir: walked.slash_follows,
                    });
                }
                step => {
                    ending = step;
                    self.step(&mut at, step, Follow::Inside, links)?;
                }
            }
        }
        Ok(Parent { dir: at, name: None, ending, wants_dir: true })
    }

    /// `trailing` says whether the path's last component is the last of the whole walk.
    fn run(&self, mut at: Path, path: &[u8], last: Last, trailing: bool, links: &mut u32) -> Result<Path, Errno> {
        let _span = span(Id::PathWalk);
        let mut steps = Steps::new(path);
        let mut must_be_dir = false;
        while let Some(walked) = steps.next_step() {
            must_be_dir = walked.slash_follows;
            let follow = match walked.last {
                false => Follow::Inside,
                true if !walked.slash_follows && last != Last::Follow => Follow::No,
                true if trailing => Follow::Trailing,
                true => Follow::Inside,
            };
            self.step(&mut at, walked.step, follow, links)?;
        }
        if must_be_dir && !at.inode().attr().is_dir() {
            return Err(Errno::ENOTDIR);
        }
        Ok(at)
    }

    #[inline]
    fn step(&self, at: &mut Path, step: Step<'_>, follow: Follow, links: &mut u32) -> Result<(), Errno> {
        match step {
            Step::Here => at.inode().attr().check_search(&self.who),
            Step::Up => self.ascend(at),
            Step::Name(name) => {
                let found = self.look_up(at, name)?;
                if follow != Follow::No && found.inode.attr().kind() == S_IFLNK {
                    *at = self.follow(at.clone(), &found, follow == Follow::Trailing, links)?;
                    return Ok(());
                }
                self.enter(at, found)
            }
        }
    }

    #[inline]
    fn look_up(&self, at: &Path, name: &[u8]) -> Result<Arc<Dentry>, Errno> {
        check_length(name)?;
        let inode = &at.dentry.inode;
        inode.attr().check_search(&self.who)?;
        inode.lookup(&at.dentry, name)
    }

    /// Goes to `found`, or to the top of what is mounted on it.
    #[inline]
    fn enter(&self, at: &mut Path, found: Arc<Dentry>) -> Result<(), Errno> {
        at.dentry = found;
        while at.dentry.is_mounted_on() {
            let Some(mount) = mount::crossing(at) else { break };
            self.check_crossing()?;
            *at = mount.top();
        }
        Ok(())
    }

    fn ascend(&self, at: &mut Path) -> Result<(), Errno> {
        at.inode().attr().check_search(&self.who)?;
        let restricted = self.restrict & (RESOLVE_BENEATH | RESOLVE_IN_ROOT) as u32 != 0;
        if restricted && self.base_or_cwd().same(at) {
            return if self.restrict & RESOLVE_BENEATH as u32 != 0 { Err(Errno::EXDEV) } else { Ok(()) };
        }
        let root = self.context.root();
        loop {
            if at.same(&root) {
                return Ok(());
            }
            if !at.is_mount_root() {
                if let Some(parent) = at.dentry.parent() {
                    at.dentry = parent;
                }
                // The parent of a directory that was moved out of the base lies outside.
                let moved = restricted && !self.began.holds();
                return if moved { Err(Errno::EAGAIN) } else { Ok(()) };
            }
            let Some(below) = at.mount.mounted_at() else { return Ok(()) };
            self.check_crossing()?;
            *at = below;
        }
    }

    /// Where the symbolic link `link`, which stands in `dir`, leads.
    fn follow(&self, dir: Path, link: &Dentry, trailing: bool, links: &mut u32) -> Result<Path, Errno> {
        self.count_link(links)?;
        if trailing {
            self.check_trailing(&dir, link.inode.attr())?;
        }
        match link.inode.link_target()? {
            LinkTarget::Jump(location) => self.jump(&dir, location),
            LinkTarget::Text(target) => {
                if target.is_empty() {
                    return Err(Errno::ENOENT);
                }
                let start = if rules::is_absolute(&target) { self.absolute_start()? } else { dir };
                self.run(start, &target, Last::Follow, trailing, links)
            }
        }
    }

    /// Follows a link in `dir` that leads to `location` whatever its name: ELOOP or EXDEV where the restrictions forbid
    /// that.
    pub fn jump(&self, dir: &Path, location: Path) -> Result<Path, Errno> {
        if self.restrict & RESOLVE_NO_MAGICLINKS as u32 != 0 {
            return Err(Errno::ELOOP);
        }
        if self.restrict & (RESOLVE_BENEATH | RESOLVE_IN_ROOT) as u32 != 0 {
            return Err(Errno::EXDEV);
        }
        if !Arc::ptr_eq(&dir.mount, &location.mount) {
            self.check_crossing()?;
        }
        Ok(location)
    }

    /// `fs.protected_symlinks`, on: EACCES for a link at the end of a path that stands in a sticky directory all may
    /// write, unless it is the walker's or belongs to the directory's owner.
    pub fn check_trailing(&self, dir: &Path, link: &Attr) -> Result<(), Errno> {
        let around = dir.inode().attr();
        let trap = around.mode() & 0o1002 == 0o1002 && link.uid() != self.who.uid && link.uid() != around.uid();
        if trap { Err(Errno::EACCES) } else { Ok(()) }
    }

    /// Counts one more symbolic link: ELOOP for too many, or for any where none may be followed.
    pub fn count_link(&self, links: &mut u32) -> Result<(), Errno> {
        *links += 1;
        if *links > rules::MAX_SYMLINKS || self.restrict & RESOLVE_NO_SYMLINKS as u32 != 0 {
            return Err(Errno::ELOOP);
        }
        Ok(())
    }

    fn check_crossing(&self) -> Result<(), Errno> {
        if self.restrict & RESOLVE_NO_XDEV as u32 != 0 { Err(Errno::EXDEV) } else { Ok(()) }
    }

    #[inline]
    fn start(&self, path: &[u8]) -> Result<Path, Errno> {
        if rules::is_absolute(path) { self.absolute_start() } else { Ok(self.base_or_cwd()) }
    }

    fn absolute_start(&self) -> Result<Path, Errno> {
        if self.restrict & RESOLVE_BENEATH as u32 != 0 {
            return Err(Errno::EXDEV);
        }
        if self.restrict & RESOLVE_IN_ROOT as u32 != 0 {
            return Ok(self.base_or_cwd());
        }
        Ok(self.context.root())
    }

    fn base_or_cwd(&self) -> Path {
        self.base.clone().unwrap_or_else(|| self.context.cwd())
    }
}

fn check_length(name: &[u8]) -> Result<(), Errno> {
    if name.len() > rules::NAME_MAX { Err(Errno::ENAMETOOLONG) } else { Ok(()) }
}

impl Attr {
    /// Whether `who` may look names up here: ENOTDIR if it is not a directory.
    #[inline]
    pub fn check_search(&self, who: &Caller<'_>) -> Result<(), Errno> {
        if !self.is_dir() {
            return Err(Errno::ENOTDIR);
        }
        self.check(who, EXECUTE)
    }
}
