//! Records which code of our kernel each system call of a guest runs, for `kwab oracle --good-paths --bad-paths`.
//!
//! The plugin `testing/plugin/paths.c` does the work; here it learns where the kernel's entries lie. It follows one
//! processor, whose clock counts instructions, so that two runs of the same kernel take the same paths. The console
//! prints every call in the same run: both number the calls of the machine alike.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use kwab::symbols::demangle;
use object::{Object as _, ObjectSymbol as _, SymbolKind};

use crate::paths;
use crate::plugin;
use crate::qemu::{Clock, Machine};
use crate::setup::Consent;

/// What the kernel has to print, and that it stays where its file says.
pub const OPTIONS: &str = "debug=syscall,buffers,process,signal nokaslr norandmaps";

/// The symbols that the plugin has to know, by its own words for them.
const PLACES: [(&str, &str); 4] =
    [("entry", "syscall_entry"), ("traps", "trap_stubs"), ("switch", "switch_stacks"), ("begin", "user_begin")];
/// Modules whose functions only record, with what they call.
const RECORDING: [&str; 4] =
    ["kernel::trace::event::", "kernel::trace::calls::", "kernel::trace::ring::", "kernel::trace::buffers::"];

/// A plugin that is built, with what it is told of a kernel.
#[derive(Clone, Debug)]
pub struct Recorder {
    plugin: PathBuf,
    places: String,
}

impl Recorder {
    /// For a kernel of ours.
    pub fn of(kernel: &Path, consent: Consent) -> Result<Self> {
        let bytes = fs::read(kernel).with_context(|| paths::shown(kernel))?;
        let elf = object::File::parse(&*bytes).context("the kernel is not an ELF file")?;
        let mut places = String::new();
        for (word, name) in PLACES {
            let symbol = elf.symbols().find(|symbol| symbol.name() == Ok(name));
            let symbol = symbol.with_context(|| format!("{} has no symbol {name}", paths::shown(kernel)))?;
            places.push_str(&format!(",{word}={:x}", symbol.address()));
        }
        let code = elf.symbols().filter(|symbol| symbol.kind() == SymbolKind::Text);
        for symbol in code {
            let name = symbol.name().map(demangle).unwrap_or_default();
            if RECORDING.iter().any(|module| name.contains(module)) {
                places.push_str(&format!(",skip={:x}", symbol.address()));
            }
        }
        Ok(Self { plugin: plugin::build("paths", consent)?, places })
    }

    /// Makes a machine record into `file`. It gets one processor and a clock of instructions.
    pub fn put(&self, machine: &mut Machine, file: &Path) {
        machine.cpus = 1;
        if machine.clock == Clock::Host {
            machine.clock = Clock::Instructions;
        }
        let plugin = format!("{},output={}{}", self.plugin.display(), file.display(), self.places);
        machine.extra.extend(["-plugin".into(), plugin]);
    }
}
