//! What the core file of a kernel says about the kernel, as lines of `NAME=VALUE`.
//!
//! A Linux whose memory is in the dump has left such lines for readers of cores: they go into the note `VMCOREINFO`,
//! byte for byte. Whatever finds a note of that name takes the kernel for a Linux (drgn and crash look for its
//! structures, and drgn refuses a file whose note does not name its page tables). So what is known of another kernel,
//! or of a Linux without its memory, is a note of our own, `KWAB`, with the same names for the same facts.

use crate::model::Case;
use crate::symbols::BuildId;

/// Owner of the note that Linux made.
pub(super) const VMCOREINFO: &[u8] = b"VMCOREINFO\0";
/// Owner of our own.
pub(super) const KWAB: &[u8] = b"KWAB\0";

/// The lines of our own note.
pub(super) fn lines(case: &Case<'_>, bias: Option<u64>) -> String {
    let mut lines = String::new();
    let mut line = |name: &str, value: Option<String>| {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            lines.push_str(&format!("{name}={value}\n"));
        }
    };
    let Some(identity) = case.identities.first() else { return lines };
    // A value ends where its first word does: what follows could be read as a line of its own.
    let word = |bytes: Option<&[u8]>| {
        let first = bytes?.split(|byte| !byte.is_ascii_graphic()).next()?;
        str::from_utf8(first).ok().map(str::to_owned)
    };
    line("KERNEL", word(identity.kernel_name));
    line("OSRELEASE", word(identity.kernel_version));
    line("BUILD-ID", identity.kernel_build_id.map(|id| BuildId(id.to_vec()).to_string()));
    line("PAGESIZE", identity.page_size.map(|size| size.to_string()));
    line("KERNELOFFSET", identity.kernel_offset.or(bias).map(|offset| format!("{offset:x}")));
    line("DIRECTMAP", identity.direct_map.map(|start| format!("{start:x}")));
    line("CRASHTIME", identity.wall_ns.map(|ns| ns.div_euclid(1_000_000_000).to_string()));
    lines
}
