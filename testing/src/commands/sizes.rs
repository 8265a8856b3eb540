//! The step `memory-sizes` of `cargo xtask test`: our kernel boots in machines of 64 MiB to 64 GiB, finds their memory,
//! and can use more of it than it prepares at boot.
//!
//! QEMU's memory costs the host what the guest touches, so that 64 GiB need no such host; the rows that fill memory say
//! how much.

use anyhow::{Result, ensure};

use crate::boot;
use crate::kernel::Which;
use crate::qemu::{self, Ending, Limits, run::Next};
use crate::setup::{self, Consent, Tool};

/// MiB of the machine, and MiB that a file on tmpfs fills.
const SIZES: &[(u32, u32)] = &[(64, 0), (1365, 0), (1366, 0), (4096, 1408), (65536, 0)];
/// MiB that are written at a time.
const PIECE: u32 = 16;
/// The least part of the memory that must be the system's, in percent: the kernel, the initramfs and the tables are the
/// rest.
const LEAST: u64 = 85;

/// Boots each size.
pub fn check(consent: Consent) -> Result<()> {
    setup::require(&[Tool::Qemu], consent)?;
    for (mib, fill) in SIZES {
        let total = total_kib(*mib, *fill, consent)?;
        println!("ok      {mib} MiB: {total} KiB, {fill} MiB filled");
        ensure!(total * 100 >= u64::from(*mib) * 1024 * LEAST, "{mib} MiB: the kernel finds only {total} KiB");
    }
    Ok(())
}

/// What `/proc/meminfo` says in a machine of this size, after a file of `fill` MiB was written and its ends were read
/// back.
fn total_kib(mib: u32, fill: u32, consent: Consent) -> Result<u64> {
    let write = match fill {
        0 => String::new(),
        _ => {
            // All of it is written; the first and the last pieces are read back, since comparing bytes is slow under
            // emulation.
            let pieces = fill / PIECE;
            let (one, four) = (u64::from(PIECE) << 20, u64::from(PIECE) << 22);
            format!(
                "yes kwab | head -c {one} > /tmp/p; for i in $(seq {pieces}); do cat /tmp/p; done > /tmp/f; \
                 (head -c {one} /tmp/f | cmp - /tmp/p && tail -c {four} /tmp/f > /tmp/t && \
                 cat /tmp/p /tmp/p /tmp/p /tmp/p | cmp - /tmp/t) || echo differs; ls -l /tmp/f;"
            )
        }
    };
    let script = format!("grep MemTotal /proc/meminfo; mount -t tmpfs none /tmp 2>/dev/null; {write} echo done");
    let arguments = boot::Options::once(Which::Ours, &["sh", "-c", &script]).memory(mib);
    let machine = boot::machine(&arguments, consent)?;
    let mut lines = Vec::new();
    let outcome = qemu::run(&machine, Limits::seconds(300), |line| {
        lines.push(line.to_owned());
        Next::Go
    })?;
    let whole = outcome.ending == Ending::Exited(0) && lines.iter().any(|line| line == "done");
    let total = lines.iter().find_map(|line| line.strip_prefix("MemTotal:")?.split_whitespace().next()?.parse().ok());
    ensure!(whole, "{mib} MiB: {:?} after\n{}", outcome.ending, lines.join("\n"));
    ensure!(!lines.iter().any(|line| line == "differs"), "{mib} MiB: what was written to memory is not read back");
    let length = format!(" {} ", u64::from(fill) << 20);
    ensure!(fill == 0 || lines.iter().any(|line| line.contains(&length)), "{mib} MiB: not all was written");
    total.ok_or_else(|| anyhow::anyhow!("{mib} MiB: no MemTotal in\n{}", lines.join("\n")))
}
