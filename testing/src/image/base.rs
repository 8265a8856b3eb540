//! Decides what every guest has: BusyBox with its applets, an `/etc` a person expects, mount points, our own programs.
//!
//! The text files lie in `testing/guest/etc` as they appear in the guest. Applets are links, listed by the BusyBox that
//! goes in, so the list cannot disagree with the program.

use std::path::Path;

use anyhow::{Context as _, Result};

use super::{Image, Node};
use crate::process::Call;
use crate::setup::Consent;
use crate::{debian, guest, kept, paths};

/// BusyBox, `/etc`, mount points the one-shot init and the demo's program.
pub fn base(consent: Consent) -> Result<Image> {
    let mut image = Image::default();
    for folder in ["dev", "proc", "sys", "run", "mnt", "root", "var/log", "var/run", "usr/bin", "usr/sbin"] {
        image.put(folder, 0o755, Node::Folder);
    }
    image.put("/tmp", 0o1777, Node::Folder);
    image.put("/dev/console", 0o600, Node::Device(5, 1));
    image.put("/dev/null", 0o666, Node::Device(1, 3));
    add_busybox(&mut image, &debian::busybox(consent)?)?;
    image.tree("/etc", &paths::root().join("testing/guest/etc")).context("the guest's /etc")?;
    image.put("/etc/init.d/rcS", 0o755, Node::File(include_bytes!("../../guest/etc/init.d/rcS").to_vec()));
    image.put("/etc/shadow", 0o600, Node::File(include_bytes!("../../guest/etc/shadow").to_vec()));
    image.put("/init", 0o777, Node::Link("/sbin/init".into()));
    image.program("/sbin/oneshot", &guest::program("oneshot", consent)?)?;
    image.program("/bin/crasher", &guest::program("crasher", consent)?)?;
    Ok(image)
}

fn add_busybox(image: &mut Image, busybox: &Path) -> Result<()> {
    image.program("/bin/busybox", busybox)?;
    kept::keep(busybox);
    let applets = Call::new(busybox).arg("--list-full").capture().context("listing BusyBox's applets")?.stdout;
    for applet in applets.lines().map(str::trim).filter(|line| !line.is_empty() && *line != "bin/busybox") {
        image.put(applet, 0o777, Node::Link("/bin/busybox".into()));
    }
    Ok(())
}
