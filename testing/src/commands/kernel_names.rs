//! The step `kernel-names` of `cargo xtask test`: every name of this workspace's kernel that `kwab` looks for or prints
//! is the name of a function in the kernel's image.
//!
//! Functions that are inlined everywhere have no symbol, so the names of the debugging information count too.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result, ensure};
use kwab::analysis::keepers;
use kwab::symbols::{demangle, kernel_rows};
use object::{Object as _, ObjectSection as _, ObjectSymbol as _};

use crate::{kernel, paths};

/// Compares the tables with the kernel of today.
pub fn check() -> Result<()> {
    let image = kernel::build()?;
    let bytes = std::fs::read(&image).with_context(|| format!("cannot read {}", paths::shown(&image)))?;
    let names = names(&bytes)?;
    let rows = kernel_rows().filter(|row| !begins_one(&names, row));
    let kept = keepers::names().filter(|name| !names.contains(name.trim_start_matches('<')));
    let stale: Vec<&str> = rows.chain(kept).collect();
    println!("{} functions and statics; {} names of kwab's are not among them", names.len(), stale.len());
    ensure!(stale.is_empty(), "no function of the kernel has the names {}", stale.join(", "));
    Ok(())
}

/// Every name in an image, demangled: symbols, and the linkage names of the debugging information. The `<` before an
/// implementation is left out.
fn names(image: &[u8]) -> Result<BTreeSet<String>> {
    let file = object::File::parse(image).context("the image of the kernel is not an ELF file")?;
    let strings = file.section_by_name(".debug_str").context("the kernel's image has no debugging information")?;
    let strings = strings.uncompressed_data().context("the kernel's .debug_str")?;
    let linked = strings.split(|byte| *byte == 0).filter_map(|name| std::str::from_utf8(name).ok());
    let linked = linked.filter(|name| name.starts_with("_ZN") || name.starts_with("_R"));
    let symbols = file.symbols().filter_map(|symbol| symbol.name().ok());
    Ok(symbols.chain(linked).map(|name| demangle(name).trim_start_matches(['<', '&', ' ']).to_owned()).collect())
}

fn begins_one(names: &BTreeSet<String>, row: &str) -> bool {
    names.range(row.to_owned()..).next().is_some_and(|name| name.starts_with(row))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_stale_unless_a_name_begins_so() {
        let names = BTreeSet::from(["kernel::sched::wake".to_owned(), "machine::sync::SpinLock".to_owned()]);
        assert!(begins_one(&names, "kernel::sched::") && begins_one(&names, "kernel::sched::wake"));
        assert!(!begins_one(&names, "kernel::sched::wake_all") && !begins_one(&names, "kernel::trap"));
    }
}
