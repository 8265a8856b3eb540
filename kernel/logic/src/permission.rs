//! Decides whether credentials may do something to a file: the owner, group and other bits, and the capabilities that
//! override them (inode(7), capabilities(7) CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH, unlink(2) on sticky directories).

/// Wish to read, as in access(2).
pub const READ: u32 = 4;
/// Wish to write.
pub const WRITE: u32 = 2;
/// Wish to execute, or to search a directory.
pub const EXECUTE: u32 = 1;

const TYPE_MASK: u32 = 0o170_000;
const DIRECTORY: u32 = 0o040_000;

/// The caller's relation to one file, and the capabilities that override the permission bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standing {
    /// The file system user id is the owner.
    pub owner: bool,
    /// The file system group id or a supplementary group is the file's group.
    pub group: bool,
    /// The caller has `CAP_DAC_OVERRIDE`: read and write always, execute if any execute bit is set.
    pub overrides: bool,
    /// The caller has `CAP_DAC_READ_SEARCH`: read always, and search of directories.
    pub reads: bool,
}

/// Whether all of `wish` is granted on a file of `mode`.
#[inline]
pub const fn allowed(mode: u32, standing: Standing, wish: u32) -> bool {
    let bits = if standing.owner {
        mode >> 6
    } else if standing.group {
        mode >> 3
    } else {
        mode
    };
    if bits & wish == wish {
        return true;
    }
    if standing.reads && (wish == READ || (mode & TYPE_MASK == DIRECTORY && wish & WRITE == 0)) {
        return true;
    }
    // The capability reads and writes everything and searches every directory, but executes only a file with an execute
    // bit.
    standing.overrides && (wish & EXECUTE == 0 || mode & 0o111 != 0 || mode & TYPE_MASK == DIRECTORY)
}

/// Whether an entry owned by `entry_owner` may be removed from or renamed in a directory: in a sticky directory only
/// its owner, the directory's owner or a caller with `CAP_FOWNER` may.
pub const fn may_remove(dir_mode: u32, owns_dir: bool, owns_entry: bool, overrides: bool) -> bool {
    dir_mode & 0o1000 == 0 || owns_dir || owns_entry || overrides
}

/// The mode after a write, truncation or chown without `CAP_FSETID`: set-user-ID is cleared, and set-group-ID where the
/// group may execute (else it means mandatory locking).
pub const fn without_set_id(mode: u32) -> u32 {
    let mode = mode & !0o4000;
    if mode & 0o2010 == 0o2010 { mode & !0o2000 } else { mode }
}

/// The mode a new file gets in a directory of `dir_mode`: not set-group-ID and executable at once where it takes over
/// the group of a directory whose group the creator is not in (`in_group`), unless it has `CAP_FSETID`
/// (`keeps_set_id`).
pub const fn mode_in(dir_mode: u32, in_group: bool, keeps_set_id: bool, mode: u32) -> u32 {
    let foreign = dir_mode & 0o2000 != 0 && !in_group && !keeps_set_id;
    if foreign && mode & TYPE_MASK != DIRECTORY && mode & 0o2010 == 0o2010 { mode & !0o2000 } else { mode }
}

/// The credentials of a process that decide whether another process may inspect it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    /// Real, effective and saved user.
    pub users: [u32; 3],
    /// Real, effective and saved group.
    pub groups: [u32; 3],
    /// The permitted capability set, bit n for capability n.
    pub capabilities: u64,
    /// The flag of prctl(2) `PR_GET_DUMPABLE`.
    pub dumpable: bool,
}

/// Whether a caller with the user and group `ids` and `capabilities` may look into a process of another thread group
/// (ptrace(2), "Ptrace access mode checking"); `traces` is CAP_SYS_PTRACE, which always may.
pub fn may_look_into(ids: (u32, u32), capabilities: u64, traces: bool, target: &Identity) -> bool {
    let same = target.users == [ids.0; 3] && target.groups == [ids.1; 3];
    traces || (same && target.dumpable && target.capabilities & !capabilities == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OTHER: Standing = Standing { owner: false, group: false, overrides: false, reads: false };
    const OWNER: Standing = Standing { owner: true, group: true, overrides: false, reads: false };
    const ROOT: Standing = Standing { owner: false, group: false, overrides: true, reads: false };

    #[test]
    fn the_owner_is_judged_by_his_own_bits_even_if_others_may_more() {
        assert!(!allowed(0o100_077, OWNER, READ));
        assert!(allowed(0o100_077, OTHER, READ | WRITE | EXECUTE));
    }

    #[test]
    fn root_does_not_execute_what_nobody_may_execute() {
        assert!(!allowed(0o100_644, ROOT, EXECUTE));
        assert!(allowed(0o100_645, ROOT, EXECUTE | WRITE));
        assert!(allowed(0o040_000, ROOT, EXECUTE | WRITE));
    }

    #[test]
    fn only_the_same_ids_without_more_capabilities_look_into_a_dumpable_process() {
        let target = Identity { users: [1; 3], groups: [2; 3], capabilities: 4, dumpable: true };
        assert!(may_look_into((1, 2), 4, false, &target));
        assert!(!may_look_into((1, 2), 2, false, &target));
        assert!(!may_look_into((1, 1), 4, false, &target));
        assert!(!may_look_into((1, 2), 4, false, &Identity { users: [1, 1, 0], ..target }));
        assert!(!may_look_into((1, 2), 4, false, &Identity { dumpable: false, ..target }));
        assert!(may_look_into((5, 5), 0, true, &Identity { dumpable: false, ..target }));
    }

    #[test]
    fn a_foreign_group_is_not_given_by_its_directory() {
        assert_eq!(mode_in(0o042_777, false, false, 0o102_755), 0o100_755);
        assert_eq!(mode_in(0o042_777, false, false, 0o102_745), 0o102_745);
        assert_eq!(mode_in(0o042_777, true, false, 0o102_755), 0o102_755);
        assert_eq!(mode_in(0o042_777, false, true, 0o102_755), 0o102_755);
        assert_eq!(mode_in(0o040_777, false, false, 0o102_755), 0o102_755);
    }

    #[test]
    fn a_sticky_directory_protects_the_files_of_others() {
        assert!(!may_remove(0o041_777, false, false, false));
        assert!(may_remove(0o041_777, false, true, false));
        assert!(may_remove(0o040_777, false, false, false));
    }

    #[test]
    fn a_write_takes_the_set_id_bits_but_leaves_the_locking_bit() {
        assert_eq!(without_set_id(0o106_755), 0o100_755);
        assert_eq!(without_set_id(0o102_644), 0o102_644);
    }
}
