//! Credentials: user and group ids, supplementary groups, capabilities.
//!
//! Credentials are immutable; a change makes a new value and puts it into the thread's slot, so that a holder of an
//! `Arc` sees one consistent identity. Capabilities follow the traditional rule: effective user 0 has all of them.

use alloc::vec::Vec;

pub use linux_abi::capabilities as cap;
pub use linux_abi::capabilities::ALL as ALL_CAPS;

use linux_abi::Errno;

use super::account::Account;

/// What makes user 0 less special (capabilities(7), "The securebits flags"); each flag has its lock one bit above.
pub mod secure {
    /// Executing as root gives no capabilities.
    pub const NOROOT: u32 = 1;
    /// Changes of user ids leave the capabilities alone.
    pub const NO_SETUID_FIXUP: u32 = 1 << 2;
    /// Giving up all root ids keeps the permitted set (`PR_SET_KEEPCAPS`).
    pub const KEEP_CAPS: u32 = 1 << 4;
    /// All flags: the three, and the one that forbids to raise ambient capabilities.
    pub const ALL: u32 = 0x55;
    /// The locks of all flags.
    pub const LOCKS: u32 = ALL << 1;
}

/// Capabilities that go with file system user 0: CHOWN, DAC_OVERRIDE, DAC_READ_SEARCH, FOWNER, FSETID, LINUX_IMMUTABLE,
/// MKNOD and MAC_OVERRIDE.
const FILE_CAPS: u64 = 0x1f | 1 << 9 | 1 << 27 | 1 << 32;

/// User and group ids, and capabilities (credentials(7), capabilities(7)).
#[derive(Clone, Debug)]
pub struct Creds {
    /// Real user id.
    pub uid: u32,
    /// What is counted for the real user.
    pub account: Account,
    /// Effective user id.
    pub euid: u32,
    /// Saved set-user-id (setresuid(2)).
    pub suid: u32,
    /// File system user id.
    pub fsuid: u32,
    /// Real group id.
    pub gid: u32,
    /// Effective group id.
    pub egid: u32,
    /// Saved set-group-id (setresgid(2)).
    pub sgid: u32,
    /// File system group id.
    pub fsgid: u32,
    /// Supplementary group ids.
    pub groups: Vec<u32>,
    /// Effective capability set.
    pub effective: u64,
    /// Permitted capability set.
    pub permitted: u64,
    /// Inheritable capability set.
    pub inheritable: u64,
    /// Capability bounding set.
    pub bounding: u64,
    /// Set by `PR_SET_NO_NEW_PRIVS`: exec grants no privilege.
    pub no_new_privs: bool,
    /// `PR_SET_SECUREBITS`: bits of [`secure`].
    pub securebits: u32,
}

impl Creds {
    /// What init starts with.
    pub const fn root() -> Self {
        Self {
            uid: 0,
            account: Account::root(),
            euid: 0,
            suid: 0,
            fsuid: 0,
            gid: 0,
            egid: 0,
            sgid: 0,
            fsgid: 0,
            groups: Vec::new(),
            effective: ALL_CAPS,
            permitted: ALL_CAPS,
            inheritable: 0,
            bounding: ALL_CAPS,
            no_new_privs: false,
            securebits: 0,
        }
    }

    /// Whether it holds a capability of [`cap`].
    pub const fn capable(&self, capability: u32) -> bool {
        self.effective & (1 << capability) != 0
    }

    /// Whether a flag of [`secure`] is set.
    pub const fn has_secure(&self, flag: u32) -> bool {
        self.securebits & flag != 0
    }

    /// Replaces the securebits: EPERM for a flag that is locked, for opening a lock, for unknown bits, and without
    /// CAP_SETPCAP.
    pub fn set_securebits(&mut self, bits: u64) -> Result<(), Errno> {
        let old = u64::from(self.securebits);
        let locks = u64::from(secure::LOCKS);
        let locked = (old & locks) >> 1 & (old ^ bits);
        let unknown = bits & !(locks | u64::from(secure::ALL));
        if locked != 0 || old & locks & !bits != 0 || unknown != 0 || !self.capable(cap::SETPCAP) {
            return Err(Errno::EPERM);
        }
        self.securebits = bits as u32;
        Ok(())
    }

    /// Settles account and capabilities after the user ids changed from `old` (capabilities(7), "Effect of user ID
    /// changes").
    pub fn after_uid_change(&mut self, old: &Creds) {
        if self.uid != old.uid {
            self.account = Account::of(self.uid);
        }
        self.fsuid = self.euid;
        if self.has_secure(secure::NO_SETUID_FIXUP) {
            return;
        }
        let had_root = old.uid == 0 || old.euid == 0 || old.suid == 0;
        let has_root = self.uid == 0 || self.euid == 0 || self.suid == 0;
        if had_root && !has_root && !self.has_secure(secure::KEEP_CAPS) {
            self.permitted = 0;
            self.effective = 0;
        }
        if old.euid == 0 && self.euid != 0 {
            self.effective = 0;
        }
        if old.euid != 0 && self.euid == 0 {
            self.effective = self.permitted;
        }
    }

    /// Settles ids and capabilities for a program executed from a file with these set-id bits; whether the program must
    /// distrust its environment (`AT_SECURE`).
    pub fn after_exec(&mut self, set_uid: Option<u32>, set_gid: Option<u32>) -> bool {
        if !self.no_new_privs {
            self.euid = set_uid.unwrap_or(self.euid);
            self.egid = set_gid.unwrap_or(self.egid);
        }
        self.suid = self.euid;
        self.fsuid = self.euid;
        self.sgid = self.egid;
        self.fsgid = self.egid;
        if (self.euid == 0 || self.uid == 0) && !self.has_secure(secure::NOROOT) {
            self.permitted = self.inheritable | self.bounding;
            self.effective = if self.euid == 0 { self.permitted } else { 0 };
        } else {
            self.permitted = 0;
            self.effective = 0;
        }
        self.securebits &= !secure::KEEP_CAPS;
        self.uid != self.euid || self.gid != self.egid
    }

    /// Settles effective capabilities after the file system user changed from `old` (capabilities(7)): those about
    /// files go with user 0 and come back with it, as far as they are permitted.
    pub fn after_fsuid_change(&mut self, old: u32) {
        if self.has_secure(secure::NO_SETUID_FIXUP) {
            return;
        }
        if old == 0 && self.fsuid != 0 {
            self.effective &= !FILE_CAPS;
        } else if old != 0 && self.fsuid == 0 {
            self.effective |= FILE_CAPS & self.permitted;
        }
    }

    /// Whether these let their holder do what `old` did not, or act with other ids.
    pub fn differs_for_others(&self, old: &Creds) -> bool {
        (self.euid, self.egid, self.fsuid, self.fsgid) != (old.euid, old.egid, old.fsuid, old.fsgid)
            || self.permitted & !old.permitted != 0
    }
}
