//! Tells the linker where the kernel lives.

fn main() {
    let script = format!("{}/../boot/kernel.ld", std::env::var("CARGO_MANIFEST_DIR").unwrap_or_default());
    println!("cargo::rerun-if-changed={script}");
    for arg in ["-T", &script, "--build-id=sha1", "-znoexecstack"] {
        println!("cargo::rustc-link-arg-bins={arg}");
    }
}
