//! Symbolises addresses of an ELF file, as `cargo xtask bench-symbols` measures it.
//!
//! `symbolize addresses ELF COUNT` prints that many addresses of its code, the same ones each time. `symbolize kwab
//! ELF` and `symbolize addr2line ELF` read addresses from stdin and print all frames of each: with kwab's index, or
//! with the addr2line crate. One blank line ends an address, as llvm-symbolizer writes it.

use std::io::{self, BufWriter, Read as _, Write};
use std::path::Path;
use std::process::ExitCode;

use kwab::symbols::{Image, IndexCache, Probe, demangle};
use object::{Object as _, ObjectSection as _};

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let mut out = BufWriter::with_capacity(1 << 16, io::stdout().lock());
    let done = match words.as_slice() {
        ["addresses", elf, count] => addresses(Path::new(elf), count.parse().unwrap_or(0), &mut out),
        ["kwab", elf] => by_index(Path::new(elf), &mut out),
        ["addr2line", elf] => by_crate(Path::new(elf), &mut out),
        _ => Err("usage: symbolize addresses ELF COUNT | kwab ELF | addr2line ELF".into()),
    };
    match done.and_then(|()| Ok(out.flush()?)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("symbolize: {error}");
            ExitCode::FAILURE
        }
    }
}

type Done = Result<(), Box<dyn std::error::Error>>;

fn addresses(path: &Path, count: u64, out: &mut dyn Write) -> Done {
    let bytes = std::fs::read(path)?;
    let elf = object::File::parse(&*bytes)?;
    let text = elf.section_by_name(".text").ok_or("no .text")?;
    let mut state = 1_u64;
    for _ in 0..count {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        writeln!(out, "{:#x}", text.address() + (state >> 16) % text.size().max(1))?;
    }
    Ok(())
}

fn asked() -> io::Result<Vec<u64>> {
    let mut text = String::new();
    io::stdin().lock().read_to_string(&mut text)?;
    let parse = |line: &str| u64::from_str_radix(line.trim().trim_start_matches("0x"), 16).ok();
    Ok(text.lines().filter_map(parse).collect())
}

fn by_index(path: &Path, out: &mut dyn Write) -> Done {
    let image = Image::open(path, &IndexCache::of_user())?;
    for addr in asked()? {
        let location = image.locate(addr, Probe::Exact)?;
        for frame in &location.frames {
            let (function, file) = (frame.function.as_deref().unwrap_or("??"), frame.file.as_deref().unwrap_or("??"));
            writeln!(out, "{function}\n{file}:{}", frame.line.unwrap_or(0))?;
        }
        writeln!(out)?;
    }
    Ok(())
}

fn by_crate(path: &Path, out: &mut dyn Write) -> Done {
    let loader = addr2line::Loader::new(path).map_err(|error| error.to_string())?;
    for addr in asked()? {
        let mut frames = loader.find_frames(addr).map_err(|error| error.to_string())?;
        while let Some(frame) = frames.next()? {
            let name = frame.function.and_then(|name| Some(demangle(&name.raw_name().ok()?)));
            let (file, line) = frame.location.map_or((None, None), |place| (place.file, place.line));
            writeln!(out, "{}\n{}:{}", name.as_deref().unwrap_or("??"), file.unwrap_or("??"), line.unwrap_or(0))?;
        }
        writeln!(out)?;
    }
    Ok(())
}
