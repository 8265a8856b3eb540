//! Builds the TCG plugins that count and record what a guest executes (`testing/plugin`).

use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, Result};

use crate::paths;
use crate::process::Call;
use crate::setup::{self, Consent, Tool};

/// Builds a plugin. It takes its functions from the QEMU that loads it, so the linker must not look for them.
pub fn build(name: &str, consent: Consent) -> Result<PathBuf> {
    setup::require(&[Tool::MuslGcc], consent)?;
    let source = paths::root().join("testing/plugin").join(name).with_extension("c");
    let result = paths::build("guest")?.join(name).with_extension("so");
    let part = paths::part(&result);
    Call::new("gcc")
        .args(["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-O2", "-fPIC", "-shared", "-fvisibility=hidden"])
        .args(["-Wl,--unresolved-symbols=ignore-all", "-o"])
        .arg(&part)
        .arg(&source)
        .capture()
        .with_context(|| format!("building the plugin {name}"))?;
    fs::rename(&part, &result).with_context(|| format!("cannot keep {}", paths::shown(&result)))?;
    Ok(result)
}
