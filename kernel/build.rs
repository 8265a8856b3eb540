//! Tells the linker where the kernel lives.

fn main() {
    let script = format!("{}/kernel.ld", std::env::var("CARGO_MANIFEST_DIR").unwrap_or_default());
    println!("cargo::rerun-if-changed={script}");
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("none") {
        for arg in [
            "-T",
            &script,
            "--build-id=sha1",
            "-zmax-page-size=4096",
            "-zseparate-code",
            "-znoexecstack",
            "-znorelro",
            "--pack-dyn-relocs=relr",
        ] {
            println!("cargo::rustc-link-arg-bins={arg}");
        }
    }
}
