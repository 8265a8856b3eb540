//! Who may have left a wrong value: earlier calls that ran other methods of the type in which two paths part.
//!
//! Where the paths of a call part and those of all calls before it are the same, the call decides by a value that an
//! earlier one left. Fields are written by methods of their type: those that ran in few earlier calls, and not in this
//! one, are named, the last call first.

use std::collections::HashSet;

use super::{FoundParting, PathSearch};

/// Methods that are named.
const MOST: usize = 4;
/// Calls with right answers in which a method may have run.
const MOST_CALLS: usize = 3;
/// Calls before the parting that are looked at.
const MOST_EARLIER: usize = 512;
/// Functions before the parting whose types count.
const BEFORE: usize = 3;

impl PathSearch<'_> {
    /// The methods, by how often each function ran in calls with right answers.
    pub(super) fn writers(&mut self, found: &FoundParting, often: &dyn Fn(u32) -> usize) -> Vec<u32> {
        let parted = &found.parted;
        let near = parted.asked.into_iter().chain([parted.function]).chain(parted.before.iter().copied().take(BEFORE));
        let types: HashSet<String> = near.filter_map(|near| owner_type(self.functions.name(near))).collect();
        let mut writers = Vec::new();
        let earlier: Vec<u32> = self.earlier.iter().rev().take(MOST_EARLIER).map(|(_, bad)| *bad).collect();
        for call in earlier {
            let Some(path) = self.bad.paths.calls.get(&call).map(|visit| visit.path) else { continue };
            let way = self.bad.way(path, &mut self.functions);
            let mut here: Vec<u32> = way.list.iter().rev().map(|place| place.function).collect();
            let mut seen = HashSet::new();
            here.retain(|function| seen.insert(*function) && !found.ran.contains(function));
            let fits = |function: &u32| {
                let name = self.functions.name(*function);
                self.functions.tells(*function)
                    && often(*function) <= MOST_CALLS
                    && owner_type(name).is_some_and(|of| types.contains(&of))
                    && !writers.contains(function)
            };
            let fitting: Vec<u32> = here.into_iter().filter(fits).collect();
            writers.extend(fitting);
            if writers.len() >= MOST {
                break;
            }
        }
        writers.truncate(MOST);
        writers
    }
}

/// The type whose method a function is, without its parameters; `None` of a function that is none.
fn owner_type(function: &str) -> Option<String> {
    let bare = |name: &str| name.split('<').next().unwrap_or(name).trim_end_matches("::").to_owned();
    if let Some((_, rest)) = function.split_once("<impl ") {
        return Some(bare(rest.split(['>', '<']).next()?.rsplit(" for ").next()?));
    }
    if let Some(rest) = function.strip_prefix('<') {
        return Some(bare(rest.split(" as ").next()?));
    }
    let path = function.rsplit_once("::")?.0;
    let path = bare(path);
    let last = path.rsplit("::").next()?;
    last.starts_with(|letter: char| letter.is_ascii_uppercase()).then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_type_of_a_method_is_told_from_modules() {
        let of = |name| owner_type(name).unwrap_or_default();
        assert_eq!(of("kernel::fs::mount::Mount::flags"), "kernel::fs::mount::Mount");
        assert_eq!(of("kernel_logic::signal::Pending<Ticket>::push"), "kernel_logic::signal::Pending");
        assert_eq!(of("kernel::fs::path::<impl kernel::fs::mount::Path>::check_writable"), "kernel::fs::mount::Path");
        assert_eq!(of("<kernel::task::Task as kernel::sched::Schedulable>::number"), "kernel::task::Task");
        assert_eq!(of("<kernel_logic::runqueue::Queued<T> as core::cmp::Ord>::cmp"), "kernel_logic::runqueue::Queued");
        assert_eq!(of("kernel::fs::open::create_at"), "");
    }
}
