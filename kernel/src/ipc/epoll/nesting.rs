//! Nested epolls: at most [`MAX_DEPTH`] deep, without cycles, with a bounded number of paths from a file to the top.
//!
//! Wake-ups and `poll` follow those paths one call inside the other, so their number and length bound work and stack.
//! The limits are Linux's (`EP_MAX_NESTS`, `path_limits` of fs/eventpoll.c).

use alloc::collections::BTreeSet;
use alloc::sync::Arc;
use alloc::vec::Vec;

use linux_abi::Errno;

use super::{Epoll, of};
use crate::fs::file::File;
use crate::sched;
use crate::sync::Mutex;

/// Orders additions of an epoll to another, so that no two close a circle together. The edges are in the epolls.
pub(super) static ALONE: Mutex<()> = Mutex::new(());

/// Epolls in a row, the one on top included.
const MAX_DEPTH: usize = 5;
/// Most paths from one file to epolls that are not watched, by the number of epolls between the two.
const MOST_PATHS: [u32; MAX_DEPTH] = [u32::MAX, 500, 100, 50, 10];

/// ELOOP if `outer`, which is to watch `inner`, is below it already, or the row through both becomes too long.
pub(super) fn check_depth(outer: &Arc<Epoll>, inner: &Arc<Epoll>) -> Result<(), Errno> {
    let below = levels(inner, inner_epolls, |epoll| Arc::ptr_eq(epoll, outer)).ok_or(Errno::ELOOP)?;
    let above = levels(outer, Epoll::parents, |_| false).ok_or(Errno::ELOOP)?;
    if below + above > MAX_DEPTH { Err(Errno::ELOOP) } else { Ok(()) }
}

/// EINVAL if `file`, or one that it watches over other epolls, has too many paths to the tops.
pub(super) fn check_paths(file: &Arc<File>) -> Result<(), Errno> {
    let Some(epoll) = of(file) else { return count_paths(&file.watchers()) };
    let mut seen = BTreeSet::new();
    let mut level = alloc::vec![epoll.clone()];
    while !level.is_empty() {
        let mut next = Vec::new();
        for epoll in &level {
            for file in epoll.files() {
                match of(&file) {
                    Some(inner) if seen.insert(Arc::as_ptr(inner).addr()) => next.push(inner.clone()),
                    Some(_) => {}
                    None if seen.insert(Arc::as_ptr(&file).addr()) => count_paths(&file.watchers())?,
                    None => {}
                }
                sched::breathe();
            }
        }
        level = next;
    }
    Ok(())
}

fn inner_epolls(epoll: &Epoll) -> Vec<Arc<Epoll>> {
    epoll.files().iter().filter_map(|file| of(file).cloned()).collect()
}

/// The length of the longest row from `from` on, `from` included; `None` for one over [`MAX_DEPTH`] or through
/// `forbidden`.
fn levels(
    from: &Arc<Epoll>,
    neighbours: impl Fn(&Epoll) -> Vec<Arc<Epoll>>,
    forbidden: impl Fn(&Arc<Epoll>) -> bool,
) -> Option<usize> {
    // Level by level, each epoll once in each: there is no circle yet, so the last level that is not empty is the
    // longest row.
    let mut level = alloc::vec![from.clone()];
    let mut count = 0;
    while !level.is_empty() {
        count += 1;
        if count > MAX_DEPTH || level.iter().any(&forbidden) {
            return None;
        }
        let mut seen = BTreeSet::new();
        let mut next = Vec::new();
        for epoll in &level {
            next.extend(neighbours(epoll).into_iter().filter(|other| seen.insert(Arc::as_ptr(other).addr())));
            sched::breathe();
        }
        level = next;
    }
    Some(count)
}

/// EINVAL if more paths lead from the epolls `first` to those that are not watched than [`MOST_PATHS`] permits.
fn count_paths(first: &[Arc<Epoll>]) -> Result<(), Errno> {
    let mut found = [0; MAX_DEPTH];
    let mut open: Vec<(Arc<Epoll>, usize)> = first.iter().map(|epoll| (epoll.clone(), 0)).collect();
    while let Some((epoll, depth)) = open.pop() {
        let parents = epoll.parents();
        if parents.is_empty() {
            found[depth] += 1;
            if found[depth] > MOST_PATHS[depth] {
                return Err(Errno::EINVAL);
            }
        } else if depth + 1 == MAX_DEPTH {
            return Err(Errno::EINVAL);
        }
        open.extend(parents.into_iter().map(|parent| (parent, depth + 1)));
    }
    Ok(())
}
