//! What runs the guest's instructions: QEMU's translator, or the processor's own virtualisation where it has it.
//!
//! A `/dev/kvm` says little: in a virtual machine without nested virtualisation it may open, and guests hang in it.
//! [`Accel::Auto`] therefore asks the processor (flag `vmx` or `svm`), and then whether the device may be opened.

use std::fs;

use anyhow::{Result, bail};
use clap::ValueEnum;

use crate::process::Call;

/// What a command line asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Accel {
    /// Hardware virtualisation if the processor has it, else QEMU's translator.
    Auto,
    /// QEMU's translator, with which all figures are comparable.
    #[default]
    Tcg,
    /// Linux's, on a processor with VT-x or AMD-V.
    Kvm,
    /// That of macOS.
    Hvf,
}

/// What the host offers, and why not.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Offers {
    kvm: Result<(), String>,
    hvf: Result<(), String>,
}

impl Accel {
    /// What QEMU is told: never [`Accel::Auto`], and an error for one that the host lacks.
    pub fn resolve(self) -> Result<Self> {
        if self == Self::Tcg { Ok(self) } else { self.among(&Offers::of_host()) }
    }

    fn among(self, offers: &Offers) -> Result<Self> {
        match (self, offers) {
            (Self::Auto, Offers { kvm: Ok(()), .. }) => Ok(Self::Kvm),
            (Self::Auto, Offers { hvf: Ok(()), .. }) => Ok(Self::Hvf),
            (Self::Auto | Self::Tcg, _) => Ok(Self::Tcg),
            (Self::Kvm, Offers { kvm: Err(why), .. }) => bail!("no hardware KVM: {why} (use --accel tcg)"),
            (Self::Hvf, Offers { hvf: Err(why), .. }) => bail!("no hardware virtualisation: {why} (use --accel tcg)"),
            (available, _) => Ok(available),
        }
    }

    /// QEMU's name of it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Tcg => "tcg",
            Self::Kvm => "kvm",
            Self::Hvf => "hvf",
        }
    }
}

impl Offers {
    fn of_host() -> Self {
        let processor = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let opened = fs::OpenOptions::new().read(true).write(true).open("/dev/kvm").map(drop);
        let says_yes = || {
            let asked = Call::new("sysctl").args(["-n", "kern.hv_support"]).capture();
            asked.is_ok_and(|said| said.stdout.trim() == "1")
        };
        let hvf = match cfg!(all(target_os = "macos", target_arch = "x86_64")) && says_yes() {
            true => Ok(()),
            false => Err("not a Mac with an x86-64 processor whose kern.hv_support is 1".to_owned()),
        };
        Self { kvm: kvm(&processor, opened), hvf }
    }
}

/// Whether KVM is of the processor, by the text of `/proc/cpuinfo` and the attempt to open its device.
fn kvm(processor: &str, opened: std::io::Result<()>) -> Result<(), String> {
    let mut flags = processor.lines().filter(|line| line.starts_with("flags")).flat_map(str::split_whitespace);
    if !flags.any(|flag| matches!(flag, "vmx" | "svm")) {
        return Err("the processor shows neither vmx nor svm".to_owned());
    }
    opened.map_err(|error| format!("/dev/kvm: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTEL: &str = "processor\t: 0\nflags\t\t: fpu vmx sse2\nvmx flags\t: vnmi\n";
    const NONE: &str = "processor\t: 0\nflags\t\t: fpu hypervisor svm_lock\nvmx flags\t: vmx\n";

    fn offers(processor: &str, opened: std::io::Result<()>) -> Offers {
        Offers { kvm: kvm(processor, opened), hvf: Err("no Mac".to_owned()) }
    }

    #[test]
    fn a_device_without_the_processors_flag_is_not_chosen_and_not_accepted() {
        let hollow = offers(NONE, Ok(()));
        assert_eq!(Accel::Auto.among(&hollow).unwrap(), Accel::Tcg);
        let said = Accel::Kvm.among(&hollow).unwrap_err().to_string();
        assert!(said.contains("neither vmx nor svm"), "{said}");
    }

    #[test]
    fn a_flag_without_a_device_that_opens_is_not_enough() {
        let closed = offers(INTEL, Err(std::io::ErrorKind::PermissionDenied.into()));
        assert_eq!(Accel::Auto.among(&closed).unwrap(), Accel::Tcg);
        let said = Accel::Kvm.among(&closed).unwrap_err().to_string();
        assert!(said.contains("/dev/kvm: permission denied"), "{said}");
    }

    #[test]
    fn hardware_is_chosen_where_it_is_and_tcg_when_asked_for() {
        let real = offers(INTEL, Ok(()));
        let chosen = [Accel::Auto, Accel::Kvm, Accel::Tcg].map(|accel| accel.among(&real).unwrap());
        assert_eq!(chosen, [Accel::Kvm, Accel::Kvm, Accel::Tcg]);
        assert!(Accel::Hvf.among(&real).is_err());
    }
}
