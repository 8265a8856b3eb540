//! A log of bare addresses, by a kernel that no dialect knows and that prints no build-id: `--symbols` names them.

use std::path::PathBuf;

use crate::common::{folder, run, text};

/// A program of a few functions, linked at an address of its own.
fn image() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../testing/data/exchange/process")
}

/// What `kwab inspect --section bt --symbols` says of a log with these addresses.
fn backtrace(addresses: &[u64]) -> String {
    let folder = folder();
    let mut log = "[kernel] up\npanicked at src/total.rs:10:5:\nno pages left\nstack backtrace:\n".to_owned();
    for (index, address) in addresses.iter().enumerate() {
        log.push_str(&format!("  {index}: {address:#018x}\n"));
    }
    std::fs::write(folder.path().join("serial.log"), log).unwrap();
    let image = image();
    let image = image.to_str().unwrap();
    let shown = run(folder.path(), &["inspect", "serial.log", "--section", "bt", "--symbols", image]);
    text(&shown.stdout) + &text(&shown.stderr)
}

#[test]
fn addresses_behind_calls_of_the_image_get_its_names() {
    let shown = backtrace(&[0x40_0160, 0x40_0171, 0x40_01d5, 0x40_014b]);
    for name in ["sum+0x15", "total+0x9", "start+0x5e"] {
        assert!(shown.contains(name), "{name} in {shown}");
    }
}

#[test]
fn kernels_that_print_the_call_instead_are_read_too() {
    let shown = backtrace(&[0x40_0160, 0x40_016c, 0x40_01d0, 0x40_0146]);
    assert!(shown.contains("total+0x4") && shown.contains("start+0x59"), "{shown}");
}

#[test]
fn an_image_of_another_build_is_refused_with_its_figures() {
    let beside_calls = backtrace(&[0x40_0160, 0x40_0179, 0x40_01e1, 0x40_018c]);
    assert!(
        beside_calls.contains("is not the image of this log: 1 of 3 callers are behind a call of it"),
        "{beside_calls}"
    );
    assert!(!beside_calls.contains("start+"), "{beside_calls}");
    let elsewhere = backtrace(&[0xffff_8000_0010_0160, 0xffff_8000_0010_0171, 0xffff_8000_0010_01d5]);
    assert!(elsewhere.contains("is not the image of this log: 0 of 3 addresses lie in its code"), "{elsewhere}");
}
