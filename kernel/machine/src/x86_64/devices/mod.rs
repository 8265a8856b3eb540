//! Device drivers, and the firmware tables that list devices.

pub(crate) mod acpi;
pub(crate) mod hpet;
pub(crate) mod ioapic;
pub(crate) mod pci;
pub(crate) mod power;
pub(crate) mod rtc;
pub(crate) mod uart;
pub(crate) mod virtio;
