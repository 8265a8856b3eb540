//! Splits a path into components and decides what each one asks of the walk.
//!
//! The rules of path_resolution(7): repeated slashes count as one, a trailing slash demands a directory and makes the
//! walk follow a final symlink, `.` and `..` are steps of their own, a component longer than `NAME_MAX` is ENAMETOOLONG
//! and a walk through more than forty symlinks is ELOOP.

/// Longest file name, in bytes (`NAME_MAX`).
pub const NAME_MAX: usize = 255;
/// Longest path with its terminating zero, in bytes (`PATH_MAX`).
pub const PATH_MAX: usize = 4096;
/// Symlinks one walk may follow (`MAXSYMLINKS`).
pub const MAX_SYMLINKS: u32 = 40;

/// One step of a walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step<'p> {
    /// `.`: stay, but it must be a directory.
    Here,
    /// `..`: the parent, or stay at the root.
    Up,
    /// A name to look up.
    Name(&'p [u8]),
}

/// The components of a path, front to back.
#[derive(Debug, Clone, Copy)]
pub struct Steps<'p> {
    rest: &'p [u8],
}

impl<'p> Steps<'p> {
    /// The steps of `path`; leading slashes are skipped, see [`is_absolute`].
    pub fn new(path: &'p [u8]) -> Self {
        Self { rest: skip_slashes(path) }
    }

    /// The next step, with whether it is the last and whether slashes follow it.
    #[inline]
    pub fn next_step(&mut self) -> Option<Walked<'p>> {
        let rest = self.rest;
        if rest.is_empty() {
            return None;
        }
        let length = rest.iter().position(|&byte| byte == b'/').unwrap_or(rest.len());
        let (name, tail) = rest.split_at(length);
        self.rest = skip_slashes(tail);
        let step = match name {
            b"." => Step::Here,
            b".." => Step::Up,
            _ => Step::Name(name),
        };
        Some(Walked { step, last: self.rest.is_empty(), slash_follows: !tail.is_empty() })
    }

    /// What is still to be walked, without leading slashes.
    pub fn rest(&self) -> &'p [u8] {
        self.rest
    }
}

/// A step and what follows it in the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Walked<'p> {
    /// What to do.
    pub step: Step<'p>,
    /// Nothing but slashes follows.
    pub last: bool,
    /// At least one slash follows, so the result must be a directory.
    pub slash_follows: bool,
}

/// Whether the walk starts at the root.
pub fn is_absolute(path: &[u8]) -> bool {
    path.first() == Some(&b'/')
}

/// Splits `path` into its directory part and its last name, as `basename` and `dirname` of the walk see it.
pub fn file_name(path: &[u8]) -> &[u8] {
    path.rsplit(|&byte| byte == b'/').next().unwrap_or(path)
}

#[inline]
fn skip_slashes(path: &[u8]) -> &[u8] {
    let mut rest = path;
    while let [b'/', tail @ ..] = rest {
        rest = tail;
    }
    rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    fn walk(path: &str) -> Vec<(Step<'_>, bool, bool)> {
        let mut steps = Steps::new(path.as_bytes());
        core::iter::from_fn(|| steps.next_step()).map(|w| (w.step, w.last, w.slash_follows)).collect()
    }

    #[test]
    fn repeated_and_trailing_slashes_make_no_empty_component() {
        assert_eq!(walk("//usr///bin/"), [(Step::Name(b"usr"), false, true), (Step::Name(b"bin"), true, true)]);
        assert_eq!(walk("/"), []);
        assert_eq!(walk(""), []);
    }

    #[test]
    fn dots_are_steps_but_three_dots_are_a_name() {
        assert_eq!(
            walk("./../.../.a"),
            [
                (Step::Here, false, true),
                (Step::Up, false, true),
                (Step::Name(b"..."), false, true),
                (Step::Name(b".a"), true, false)
            ]
        );
    }
}
