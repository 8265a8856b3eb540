//! The names of the system (uname(2)).

use alloc::sync::Arc;
use alloc::vec::Vec;

use linux_abi::Errno;
use machine::describe::Entry;
use machine::sync::SpinLock;

/// What `uname -r` shows: the interface this kernel follows, and whose it is.
pub const RELEASE: &str = "6.1.0-kwab";
/// What `uname -v` shows.
pub const VERSION: &str = "#1 SMP kwab";
/// The two in [`machine::describe`].
pub static FIELDS: [Entry; 4] = [
    Entry::address("release", RELEASE),
    Entry::number("release.length", RELEASE.len()),
    Entry::address("version", VERSION),
    Entry::number("version.length", VERSION.len()),
];
/// Bytes of each of uname's six fields.
pub const FIELD: usize = 65;

/// Number of the field with the host name.
pub const HOST: usize = 1;
/// Number of the field with the domain name.
pub const DOMAIN: usize = 5;

/// The six fields of `uname` as a program gets them: names of at most 64 bytes, each with NULs behind it.
#[derive(Clone)]
pub struct Names([u8; 6 * FIELD]);

impl Names {
    fn at_boot() -> Self {
        let mut names = Self([0; 6 * FIELD]);
        for (field, text) in ["Linux", "(none)", RELEASE, VERSION, "x86_64", "(none)"].into_iter().enumerate() {
            names.field_mut(field)[..text.len()].copy_from_slice(text.as_bytes());
        }
        names
    }

    /// All six, as `uname` stores them.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    fn field_mut(&mut self, field: usize) -> &mut [u8] {
        &mut self.0[field * FIELD..(field + 1) * FIELD]
    }

    fn text(&self, field: usize) -> Vec<u8> {
        self.0[field * FIELD..(field + 1) * FIELD].iter().copied().take_while(|byte| *byte != 0).collect()
    }
}

/// The names as they are; a change makes new ones, so that a copy to a program needs no lock.
static NAMES: SpinLock<Option<Arc<Names>>> = SpinLock::new(None);

/// The six names as they are.
pub fn names() -> Arc<Names> {
    Arc::clone(NAMES.lock().get_or_insert_with(|| Arc::new(Names::at_boot())))
}

/// Sets one of the six: EINVAL for more than 64 bytes.
pub fn set(field: usize, name: &[u8]) -> Result<(), Errno> {
    if name.len() >= FIELD {
        return Err(Errno::EINVAL);
    }
    let mut names = NAMES.lock();
    let changed = Arc::make_mut(names.get_or_insert_with(|| Arc::new(Names::at_boot()))).field_mut(field);
    changed.fill(0);
    changed[..name.len()].copy_from_slice(name);
    Ok(())
}

/// The host name, for `/proc/sys/kernel/hostname`.
pub fn host_name() -> Vec<u8> {
    names().text(HOST)
}

/// The domain name, for `/proc/sys/kernel/domainname`.
pub fn domain_name() -> Vec<u8> {
    names().text(DOMAIN)
}

/// Sets the host name: EINVAL for more than 64 bytes.
pub fn set_host_name(name: &[u8]) -> Result<(), Errno> {
    set(HOST, name)
}

/// Sets the domain name: EINVAL for more than 64 bytes.
pub fn set_domain_name(name: &[u8]) -> Result<(), Errno> {
    set(DOMAIN, name)
}
