//! Prints `kwab.h`, the header of the C library, as cbindgen makes it of `c-library/src/lib.rs`.
//!
//! `cargo xtask examples` compares it with the one that is kept, and writes it with `--write-header`.

use std::path::Path;

use cbindgen::{Builder, Config, DocumentationStyle, Language};

fn main() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../c-library/src/lib.rs");
    let config = Config {
        language: Language::C,
        header: Some(
            "/* kwab-crash for kernels in C, made by cbindgen of src/lib.rs. See docs/in-your-kernel.md. */".into(),
        ),
        include_guard: Some("KWAB_H".into()),
        no_includes: true,
        sys_includes: ["stdbool.h", "stddef.h", "stdint.h"].map(String::from).into(),
        usize_is_size_t: true,
        cpp_compat: true,
        documentation_style: DocumentationStyle::C,
        line_length: 120,
        tab_width: 4,
        ..Config::default()
    };
    match Builder::new().with_config(config).with_src(&source).generate() {
        Ok(header) => header.write(std::io::stdout()),
        Err(error) => {
            eprintln!("{}: {error}", source.display());
            std::process::exit(1);
        }
    }
}
