//! The healthy boots of `cargo xtask linux-crashes --healthy N`: boot number n is always the same machine with the same
//! command line.
//!
//! What differs is what changes a boot log: machine and processor model, processors, memory, devices, words of the
//! command line. Each part is drawn from a table by the number of the boot, so that a further boot adds a further
//! combination and no two runs differ. None of them may end in a death.

use super::kit::Architecture;
use crate::qemu::Model;

/// A boot of `--healthy`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Varied {
    /// The name of its log and of its row.
    pub name: String,
    /// The machine type.
    pub model: Model,
    /// The processor model.
    pub cpu: &'static str,
    /// Number of processors.
    pub cpus: u32,
    /// Memory in MiB.
    pub memory: u32,
    /// Further words of the kernel's command line.
    pub options: String,
    /// Further arguments for QEMU.
    pub devices: Vec<&'static str>,
}

/// Boot `number` of a machine of that architecture.
pub fn boot(number: u32, on: Architecture) -> Varied {
    let mut draw = Draw(u64::from(number) ^ 0x6b77_6162);
    let (models, processors): (&[Model], &[&'static str]) = match on {
        Architecture::Amd64 => (&[Model::Pc, Model::Q35], &CPUS_AMD64),
        Architecture::Arm64 => (&[Model::Virt], &CPUS_ARM64),
    };
    let model = *draw.of(models);
    let options = draw.some_of(OPTIONS, 5).into_iter().chain(match on {
        Architecture::Amd64 => draw.some_of(OPTIONS_AMD64, 3),
        Architecture::Arm64 => Vec::new(),
    });
    let options: Vec<&str> = options.collect();
    let &cpu = draw.of(processors);
    Varied {
        name: format!("varied-{number:03}"),
        model,
        cpu,
        cpus: *draw.of(&[1, 1, 2, 2, 3, 4]),
        memory: *draw.of(&[192, 224, 256, 320, 384, 512, 768, 1024]),
        options: options.join(" "),
        devices: draw.some_of(DEVICES, 3),
    }
}

const CPUS_AMD64: [&str; 8] =
    ["max", "max", "qemu64", "Nehalem-v1", "SandyBridge-v1", "Haswell-v1", "Skylake-Client-v1", "EPYC-v1"];
const CPUS_ARM64: [&str; 4] = ["max,pauth-impdef=on", "cortex-a53", "cortex-a57", "cortex-a72"];

/// Words for every machine. The last ones are words that a reader of logs may fall for.
const OPTIONS: &[&str] = &[
    "quiet",
    "debug",
    "ignore_loglevel",
    "loglevel=8",
    "initcall_debug",
    "printk.time=0",
    "nokaslr",
    "maxcpus=1",
    "memblock=debug",
    "sched_verbose",
    "slub_debug=FZPU",
    "slab_nomerge",
    "page_poison=1",
    "init_on_alloc=1",
    "init_on_free=1",
    "kfence.sample_interval=5",
    "kfence.sample_interval=0",
    "panic=5",
    "oops=panic",
    "panic_on_warn=1",
    "softlockup_panic=1",
    "sysctl.kernel.hung_task_panic=1",
    "nowatchdog",
    "watchdog_thresh=30",
    "threadirqs",
    "preempt=full",
    "preempt=none",
    "isolcpus=1",
    "rcu_nocbs=all",
    "rcupdate.rcu_expedited=1",
    "transparent_hugepage=always",
    "hugepages=4",
    "crashkernel=64M",
    "cgroup_disable=memory",
    "audit=1",
    "apparmor=0",
    "lockdown=integrity",
    "ipv6.disable=1",
    "log_buf_len=4M",
    "no_hash_pointers",
    "random.trust_cpu=off",
    "dyndbg=\"file drivers/base/* +p\"",
    "trace_event=initcall:* tp_printk",
    "ftrace_dump_on_oops",
    "pause_on_oops=5",
    "bootconfig",
    "no_console_suspend",
    "psi=1",
    "nosmt",
    "root=/dev/panic",
    "fail_panic=Oops",
    "kasan.fault=panic",
    "panic_print=0x1f",
    "unhandled_fault=fatal kernel_bug=0 BUG=none",
    "crash_kexec_post_notifiers",
    "sysctl.kernel.panic_on_oops=1",
];

/// Words for a PC.
const OPTIONS_AMD64: &[&str] = &[
    "mitigations=off",
    "nopti",
    "spectre_v2=on",
    "apic=debug",
    "apic=verbose show_lapic=all",
    "nox2apic",
    "pci=nomsi",
    "pci=noacpi",
    "acpi=off",
    "noxsave",
    "nopcid",
    "mce=off",
    "mce=bootlog",
    "nmi_watchdog=1",
    "clocksource=hpet",
    "hpet=verbose",
    "vsyscall=none",
    "memtest=1",
    "earlyprintk=serial,keep",
    "idle=poll",
    "efi=debug",
    "intel_iommu=on",
    "reboot=panic_warm",
    "unknown_nmi_panic",
    "x86_intel_mid_timer=always",
];

/// Arguments for QEMU, `-device` before each.
const DEVICES: &[&str] = &[
    "virtio-rng-pci",
    "virtio-net-pci",
    "virtio-balloon-pci",
    "virtio-serial-pci",
    "virtio-scsi-pci",
    "virtio-gpu-pci",
    "virtio-keyboard-pci",
    "e1000",
    "e1000e",
    "rtl8139",
    "ne2k_pci",
    "pvpanic-pci",
    "i6300esb",
    "qemu-xhci",
    "usb-ehci",
    "ich9-ahci",
    "intel-hda",
    "AC97",
    "ES1370",
    "edu",
    "pci-bridge,chassis_nr=1",
    "pci-testdev",
    "lsi53c895a",
    "megasas",
];

/// A stream of numbers that a seed begins (splitmix64).
struct Draw(u64);

impl Draw {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut value = self.0;
        value = (value ^ value >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        value = (value ^ value >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        value ^ value >> 31
    }

    fn of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.next() as usize % all.len()]
    }

    /// None to `most` different ones.
    fn some_of(&mut self, all: &[&'static str], most: u64) -> Vec<&'static str> {
        let mut chosen = Vec::new();
        for _ in 0..self.next() % (most + 1) {
            let one = *self.of(all);
            if !chosen.contains(&one) {
                chosen.push(one);
            }
        }
        chosen
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn two_hundred_boots_are_two_hundred_machines_and_every_word_and_device_is_in_one() {
        let boots: Vec<Varied> = (1..=200).map(|number| boot(number, Architecture::Amd64)).collect();
        let machine = |boot: &Varied| Varied { name: String::new(), ..boot.clone() };
        for (at, one) in boots.iter().enumerate() {
            assert!(boots[..at].iter().all(|other| machine(other) != machine(one)), "{}", one.name);
        }
        let devices: BTreeSet<&str> = boots.iter().flat_map(|boot| boot.devices.iter().copied()).collect();
        assert_eq!(devices.len(), DEVICES.len());
        for words in OPTIONS.iter().chain(OPTIONS_AMD64) {
            assert!(boots.iter().any(|boot| boot.options.contains(words)), "{words}");
        }
    }
}
