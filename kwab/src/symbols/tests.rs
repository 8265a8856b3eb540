//! Symbols of a real executable, the running test itself, judged by the addr2line crate.

use std::fs;
use std::io::Write;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use object::{Object, ObjectSection};

use super::*;

fn me() -> PathBuf {
    std::env::current_exe().unwrap()
}

/// Addresses spread over the code of an ELF file, the same ones every time.
fn code_addresses(path: &Path, count: u64) -> Vec<u64> {
    let bytes = fs::read(path).unwrap();
    let elf = object::File::parse(&*bytes).unwrap();
    let text = elf.section_by_name(".text").unwrap();
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 16
    };
    (0..count).map(|_| text.address() + next() % text.size()).collect()
}

type Chain = Vec<(Option<String>, Option<String>, Option<u32>)>;

fn judged(loader: &addr2line::Loader, addr: u64) -> Chain {
    let mut frames = loader.find_frames(addr).unwrap();
    let mut chain = Vec::new();
    while let Some(frame) = frames.next().unwrap() {
        let name = frame.function.map(|name| demangle(&name.raw_name().unwrap()));
        let (file, line) = frame.location.map_or((None, None), |l| (l.file.map(str::to_owned), l.line));
        chain.push((name, file, line));
    }
    chain
}

fn ours(location: &Location) -> Chain {
    let text = |text: &Option<Arc<str>>| text.as_ref().map(ToString::to_string);
    location.frames.iter().map(|f| (text(&f.function), text(&f.file), f.line)).collect()
}

#[test]
fn inline_chains_files_and_lines_are_those_that_addr2line_finds() {
    let image = Image::open(&me(), &IndexCache::none()).unwrap();
    let loader = addr2line::Loader::new(me()).unwrap();
    let (mut equal, mut inlined, mut odd) = (0, 0, Vec::new());
    for addr in code_addresses(&me(), 4000) {
        let (expected, found) = (judged(&loader, addr), ours(&image.locate(addr, Probe::Exact).unwrap()));
        inlined += usize::from(found.len() > 1);
        if expected == found { equal += 1 } else { odd.push((addr, expected, found)) }
    }
    // Identical functions that the linker folded have several names for one address; either is right.
    assert!(equal >= 3990, "{equal} of 4000 agree; first that do not: {:#x?}", &odd[..odd.len().min(3)]);
    assert!(inlined > 1000, "the executable has inlined code at only {inlined} of 4000 addresses");
}

#[test]
fn symbols_without_debug_info_still_give_name_and_offset() {
    let image = Image::open(&me(), &IndexCache::none()).unwrap();
    let bytes = fs::read(me()).unwrap();
    let elf = object::File::parse(&*bytes).unwrap();
    use object::ObjectSymbol;
    let main = elf.symbols().find(|symbol| symbol.name() == Ok("main")).unwrap();
    let symbol = image.locate(main.address() + 3, Probe::Exact).unwrap().symbol.unwrap();
    assert_eq!((&*symbol.name, symbol.offset), ("main", 3));
}

#[test]
fn a_return_address_behind_the_last_instruction_belongs_to_the_caller() {
    let image = Image::open(&me(), &IndexCache::none()).unwrap();
    let bytes = fs::read(me()).unwrap();
    let elf = object::File::parse(&*bytes).unwrap();
    use object::ObjectSymbol;
    let main = elf.symbols().find(|symbol| symbol.name() == Ok("main")).unwrap();
    let location = image.locate(main.address() + main.size(), Probe::Return).unwrap();
    assert_eq!(location.symbol.map(|s| (s.name.to_string(), s.offset)), Some(("main".into(), main.size())));
}

#[test]
fn the_second_open_takes_the_index_from_the_cache_and_says_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let cache = IndexCache::in_dir(dir.path().to_path_buf());
    let first = Image::open(&me(), &cache).unwrap();
    let files: Vec<_> = fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(files.len(), 1, "one index and no temporary files: {files:?}");
    let written = fs::metadata(&files[0]).unwrap().modified().unwrap();
    let second = Image::open(&me(), &cache).unwrap();
    for addr in code_addresses(&me(), 500) {
        let both = [&first, &second].map(|image| image.locate(addr, Probe::Exact).unwrap());
        assert_eq!(both[0], both[1]);
    }
    assert_eq!(fs::metadata(&files[0]).unwrap().modified().unwrap(), written, "it was built again");
}

#[test]
fn several_writers_at_once_leave_one_sound_index() {
    let dir = tempfile::tempdir().unwrap();
    let cache = IndexCache::in_dir(dir.path().to_path_buf());
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| Image::open(&me(), &cache).unwrap());
        }
    });
    let names: Vec<_> = fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(names.len(), 1, "{names:?}");
    Index::open(fs::File::open(dir.path().join(&names[0])).unwrap()).unwrap();
}

#[test]
fn a_damaged_index_is_found_out_and_built_again() {
    let dir = tempfile::tempdir().unwrap();
    let cache = IndexCache::in_dir(dir.path().to_path_buf());
    let sound = Image::open(&me(), &cache).unwrap();
    let path = fs::read_dir(dir.path()).unwrap().next().unwrap().unwrap().path();
    let whole = fs::read(&path).unwrap();
    let addresses = code_addresses(&me(), 20);
    for step in 0..40 {
        let mut broken = whole.clone();
        let at = whole.len() / 40 * step;
        broken[at] ^= 0x10;
        fs::write(&path, &broken).unwrap();
        let image = Image::open(&me(), &cache).unwrap();
        for &addr in &addresses {
            let location = image.locate(addr, Probe::Exact).unwrap();
            assert_eq!(location, sound.locate(addr, Probe::Exact).unwrap(), "flip at {at}");
        }
    }
    for keep in [0, 7, 60, 200, whole.len() / 2] {
        fs::write(&path, &whole[..keep]).unwrap();
        let image = Image::open(&me(), &cache).unwrap();
        let location = image.locate(addresses[0], Probe::Exact).unwrap();
        assert_eq!(location, sound.locate(addresses[0], Probe::Exact).unwrap(), "cut at {keep}");
    }
}

#[test]
fn an_image_with_another_build_id_is_refused_with_both_ids_unless_forced() {
    let own = Image::open(&me(), &IndexCache::none()).unwrap().build_id().unwrap();
    let name = me().file_name().unwrap().to_str().unwrap().to_owned();
    let other = vec![0x41; own.0.len()];
    let wanted = Wanted { build_id: Some(&other), name: Some(&name) };
    let error = Finder::new(vec![me()], false).with_debug_dirs(vec![]).find(wanted).unwrap_err();
    let text = error.to_string();
    assert!(text.contains(&own.to_string()) && text.contains(&BuildId(other.clone()).to_string()), "{text}");
    let forced = Finder::new(vec![me()], true).with_debug_dirs(vec![]).find(wanted).unwrap();
    assert_eq!(forced.name(), me().display().to_string());
    let right = Wanted { build_id: Some(&own.0), name: Some("/somewhere/else") };
    assert!(Finder::new(vec![me()], false).with_debug_dirs(vec![]).find(right).is_ok());
}

#[test]
fn images_are_found_in_directories_debug_directories_and_initramfs_archives() {
    let own = Image::open(&me(), &IndexCache::none()).unwrap().build_id().unwrap();
    let wanted = Wanted { build_id: Some(&own.0), name: None };
    let dir = tempfile::tempdir().unwrap();
    let deep = dir.path().join("a/b");
    fs::create_dir_all(&deep).unwrap();
    fs::write(deep.join("readme"), "text").unwrap();
    fs::copy(me(), deep.join("program")).unwrap();
    let found = Finder::new(vec![dir.path().to_path_buf()], false).with_debug_dirs(vec![]).find(wanted).unwrap();
    assert_eq!(found.name(), deep.join("program").display().to_string());

    let debug = tempfile::tempdir().unwrap();
    let id = own.to_string();
    let by_id = debug.path().join(".build-id").join(&id[..2]);
    fs::create_dir_all(&by_id).unwrap();
    fs::copy(me(), by_id.join(format!("{}.debug", &id[2..]))).unwrap();
    Finder::new(vec![], false).with_debug_dirs(vec![debug.path().to_path_buf()]).find(wanted).unwrap();

    let archive = newc(&[("bin/program", &fs::read(me()).unwrap()), ("etc/motd", b"hello")]);
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gz.write_all(&archive).unwrap();
    for (name, bytes) in [("plain.cpio", archive), ("packed.cpio.gz", gz.finish().unwrap())] {
        let path = dir.path().join(name);
        fs::write(&path, bytes).unwrap();
        let found = Finder::new(vec![path.clone()], false).with_debug_dirs(vec![]).find(wanted).unwrap();
        assert_eq!(found.name(), format!("{}:bin/program", path.display()));
        let image = Image::from_bytes(found, &IndexCache::none()).unwrap();
        // Some of a program has no debugging information, as libraries that came without.
        let has_name = |addr: &u64| image.locate(*addr, Probe::Exact).is_ok_and(|found| found.function().is_some());
        let named = code_addresses(&me(), 64).iter().filter(|addr| has_name(addr)).count();
        assert!(named > 32, "{named} of 64 addresses have a function");
    }
}

/// A `newc` archive with these files.
fn newc(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut add = |name: &str, mode: u32, data: &[u8]| {
        write!(out, "070701{:08x}{mode:08x}{:08x}{:08x}{:08x}{:08x}", 1, 0, 0, 1, 0).unwrap();
        write!(out, "{:08x}{:08x}{:08x}{:08x}{:08x}{:08x}{:08x}", data.len(), 0, 0, 0, 0, name.len() + 1, 0).unwrap();
        out.extend_from_slice(name.as_bytes());
        out.push(0);
        out.resize(out.len().next_multiple_of(4), 0);
        out.extend_from_slice(data);
        out.resize(out.len().next_multiple_of(4), 0);
    };
    for (name, data) in files {
        add(name, 0o100_755, data);
    }
    add("TRAILER!!!", 0, &[]);
    out
}

#[test]
fn an_archive_cut_anywhere_gives_the_whole_files_before_the_cut() {
    let archive = newc(&[("a", b"first"), ("b", b"second")]);
    let whole: Vec<_> = cpio::entries(&archive).map(|entry| entry.name.to_owned()).collect();
    assert_eq!(whole, ["a", "b"]);
    for cut in 0..archive.len() {
        let names: Vec<_> = cpio::entries(&archive[..cut]).map(|entry| entry.name.to_owned()).collect();
        assert!(whole.starts_with(&names), "cut at {cut}: {names:?}");
    }
}

#[test]
fn panic_machinery_is_marked_and_the_code_that_panicked_is_not() {
    for name in ["core::panicking::panic_fmt", "rust_begin_unwind", "<core::option::Option<T>>::unwrap", "__rust_try"] {
        assert!(is_machinery(name), "{name}");
    }
    for name in ["kernel::mm::fault::handle", "malloc", "my_core::thing", "<kernel::A as core::fmt::Debug>::fmt"] {
        assert!(!is_machinery(name), "{name}");
    }
    assert_eq!(demangle("_ZN4core9panicking9panic_fmt17h0123456789abcdefE"), "core::panicking::panic_fmt");
}

#[test]
fn the_shim_that_calls_a_closure_is_machinery_and_the_closure_is_not() {
    for name in [
        "core::ops::function::FnOnce::call_once",
        "core::ops::function::FnOnce::call_once{{vtable.shim}}",
        "<fn() as core::ops::function::FnOnce<()>>::call_once",
        "<kernel::fs::write::{closure#0} as core::ops::function::FnOnce<()>>::call_once::{shim:vtable#0}",
    ] {
        assert!(is_machinery(name), "{name}");
    }
    for name in ["kernel::fs::write::{closure#0}", "kernel::fs::write::{{closure}}"] {
        assert!(!is_machinery(name), "{name}");
    }
}

#[test]
fn source_text_is_shown_from_a_root_when_the_recorded_path_is_of_another_machine() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir_all(dir.path().join("src/mm")).unwrap();
    fs::write(dir.path().join("src/mm/fault.rs"), "line one\n    line two\n").unwrap();
    let mut sources = SourceLines::new(vec![dir.path().to_path_buf()]);
    assert_eq!(sources.line("/build/elsewhere/kernel/src/mm/fault.rs", 2, SourceVersion::Unknown), Some("line two"));
    assert_eq!(sources.line("/build/elsewhere/kernel/src/mm/fault.rs", 3, SourceVersion::Unknown), None);
    assert_eq!(sources.line("/build/elsewhere/other.rs", 1, SourceVersion::Unknown), None);
}

#[test]
fn files_that_are_no_images_are_errors_that_name_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("notes.txt");
    fs::write(&path, "hello").unwrap();
    let text = Image::open(&path, &IndexCache::none()).unwrap_err().to_string();
    assert!(text.contains("notes.txt"), "{text}");
    assert!(Image::open(&dir.path().join("absent"), &IndexCache::none()).is_err());
    let bytes = fs::read(me()).unwrap();
    for cut in [4, 20, 63, 64, 100, 1000, bytes.len() / 3, bytes.len() / 2] {
        // A cut image may open with less in it; it must not panic.
        let cut = ImageBytes::Memory { name: "cut".into(), bytes: bytes[..cut].into() };
        let _ = Image::from_bytes(cut, &IndexCache::none());
    }
}

/// A segment whose bytes would go on behind the last address holds none below it.
#[test]
fn a_segment_that_leaves_the_address_space_is_cut_there() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testing/data/unwind/chain-fp.elf");
    let mut bytes = fs::read(path).unwrap();
    let table = u64::from_le_bytes(bytes[32..40].try_into().unwrap()) as usize;
    let count = u16::from_le_bytes(bytes[56..58].try_into().unwrap()) as usize;
    for at in (table..table + count * 56).step_by(56) {
        bytes[at + 16..at + 24].copy_from_slice(&(u64::MAX - 0xfff).to_le_bytes());
        bytes[at + 32..at + 40].copy_from_slice(&0x2000u64.to_le_bytes());
    }
    let memory = ImageBytes::Memory { name: "cut".into(), bytes: bytes.into() };
    let image = Image::from_bytes(memory, &IndexCache::none()).unwrap();
    let mut out = [0; 16];
    assert_eq!(image.read(0x10, &mut out), 0);
    assert!(image.read(u64::MAX - 0xfff, &mut out) > 0);
    assert!(
        image
            .loaded()
            .all(|(start, offset, length)| start.checked_add(length).and(offset.checked_add(length)).is_some())
    );
}

#[test]
fn functions_printed_by_name_and_size_are_found_and_those_of_another_size_are_not() {
    let image = Image::open(&me(), &IndexCache::none()).unwrap();
    let symbols =
        code_addresses(&me(), 300).into_iter().filter_map(|addr| image.locate(addr, Probe::Exact).unwrap().symbol);
    let symbols: Vec<Symbol> = symbols.filter(|symbol| symbol.size > 0).collect();
    let wanted = |more: u64| -> Vec<PrintedFunction> {
        let printed = |symbol: &Symbol| PrintedFunction::new(&symbol.name, Some(symbol.size + more), None).unwrap();
        symbols.iter().map(printed).collect()
    };
    let found = image.find_printed(&wanted(0));
    assert!(found.iter().flatten().count() * 100 >= symbols.len() * 95, "{} of {}", found.len(), symbols.len());
    for (symbol, link) in symbols.iter().zip(&found) {
        let Some(link) = link else { continue };
        assert_eq!(image.locate(*link, Probe::Exact).unwrap().symbol.unwrap().name, symbol.name);
    }
    assert!(image.find_printed(&wanted(1 << 24)).iter().all(Option::is_none));
}

/// A module compiled from a source file of a folder.
fn module_of(folder: &Path, source: &str) -> PathBuf {
    let (file, module) = (folder.join("module.c"), folder.join("a-module.ko"));
    fs::write(&file, source).unwrap();
    let compiler = std::process::Command::new("cc").args(["-g", "-O1", "-c", "-o"]).arg(&module).arg(&file).status();
    assert!(compiler.unwrap().success());
    module
}

#[test]
fn a_cut_or_changed_module_is_refused_or_read_without_a_panic() {
    let folder = tempfile::tempdir().unwrap();
    let source = "static int table[2]; int first(int x) { return table[x & 1] * 7; }\nint (*second)(int) = first;\n";
    let whole = fs::read(module_of(folder.path(), source)).unwrap();
    let used = |bytes: Vec<u8>| {
        let memory = ImageBytes::Memory { name: "hostile.ko".into(), bytes: bytes.into() };
        let Ok(image) = Image::from_bytes(memory, &IndexCache::none()) else { return };
        let wanted = [PrintedFunction::new("first", None, None).unwrap()];
        for link in image.find_printed(&wanted).into_iter().flatten() {
            let _ = image.locate(link, Probe::Exact);
            let _ = image.read(link, &mut [0; 16]);
        }
    };
    (0..whole.len()).step_by(7).for_each(|cut| used(whole[..cut].to_vec()));
    for at in 0..whole.len() {
        for value in [0, 0x7f, 0x80, 0xff].into_iter().filter(|value| *value != whole[at]) {
            // Every byte of the header, then a part of them: sections, relocations and debug information.
            if at < 64 || (at + usize::from(value)) % 5 == 0 {
                let mut bytes = whole.clone();
                bytes[at] = value;
                used(bytes);
            }
        }
    }
}

#[test]
fn lines_of_a_relocatable_module_are_those_of_its_source_in_every_section() {
    let folder = tempfile::tempdir().unwrap();
    let source = "int first(int x)\n{\n    return x * 7;\n}\n\n__attribute__((section(\".init.text\")))\n\
                  int second(int *x)\n{\n    *x += 3;\n    return *x;\n}\n";
    let image = Image::open(&module_of(folder.path(), source), &IndexCache::none()).unwrap();
    for (name, lines) in [("first", 1..=4), ("second", 6..=11)] {
        let link = image.find_printed(&[PrintedFunction::new(name, None, None).unwrap()])[0].expect("a function");
        let location = image.locate(link, Probe::Exact).unwrap();
        let frame = &location.frames[0];
        assert_eq!(frame.function.as_deref(), Some(name));
        assert!(frame.file.as_deref().unwrap().ends_with("module.c"), "{location:?}");
        assert!(lines.contains(&frame.line.unwrap()), "{location:?}");
    }
    let mut finder = Finder::new(vec![folder.path().to_path_buf()], false).with_debug_dirs(Vec::new());
    assert_eq!(finder.by_module(Some("a_module")).len(), 1, "a dash in a file's name is an underscore in the kernel's");
    assert_eq!((finder.by_module(Some("module")).len(), finder.by_module(None).len()), (0, 0));
    assert!(finder.find(Wanted { build_id: None, name: Some("a-module.ko") }).is_err(), "a module is not the kernel");
}

#[test]
fn an_archive_or_file_that_gives_no_image_says_why() {
    use std::io::Write as _;
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    fs::write(at("serial.log"), "not an image").unwrap();
    // Of a newc header, then zeros: packed they shrink more than any initramfs does.
    let mut packed =
        flate2::write::GzEncoder::new(fs::File::create(at("bomb.gz")).unwrap(), flate2::Compression::best());
    packed.write_all(b"070701").unwrap();
    packed.write_all(&vec![0; 80 << 20]).unwrap();
    packed.finish().unwrap();
    let paths = vec![at("serial.log"), at("bomb.gz"), dir.path().to_path_buf(), me()];
    let mut finder = Finder::new(paths, false);
    assert_eq!(finder.remarks(), Vec::<String>::new(), "nothing was looked into");
    assert!(finder.find(Wanted { build_id: Some(&[1, 2, 3]), name: None }).is_err());
    let remarks = finder.remarks();
    let told = ["serial.log: neither an ELF image", "bomb.gz: unpacks to more than", ": there is no ELF image in it"];
    assert_eq!(remarks.len(), told.len(), "{remarks:?}");
    for (remark, words) in remarks.iter().zip(told) {
        assert!(remark.contains(words), "{remark}");
    }
}

#[test]
fn a_search_tells_how_far_it_is_and_ends_when_it_is_told_to() {
    let dir = tempfile::tempdir().unwrap();
    for name in 0..10 {
        fs::write(dir.path().join(format!("{name}")), "no image").unwrap();
    }
    let mut finder = Finder::new(vec![dir.path().to_path_buf()], false);
    let mut last = 0;
    let ended = finder.look(&mut |files, most| {
        assert!(most > 10);
        last = files;
        if files < 3 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    assert!(ended.is_break() && last == 3, "{last}");
    assert!(finder.remarks()[0].ends_with("the search ended after 3 files"), "{:?}", finder.remarks());
    let mut again = |_, _| panic!("it is looked into once");
    assert!(finder.look(&mut again).is_continue());
}

/// A program of one function in a file that was written an hour before it, with its image.
fn program_of(folder: &Path) -> (PathBuf, PathBuf) {
    let (source, program) = (folder.join("only.c"), folder.join("only"));
    fs::write(&source, "int main(void)\n{\n    return 7;\n}\n").unwrap();
    let earlier = std::time::SystemTime::now() - std::time::Duration::from_secs(3600);
    fs::File::options().append(true).open(&source).unwrap().set_modified(earlier).unwrap();
    let arguments = ["-g", "-O0", "-Wl,--build-id=sha1", "-o"];
    let compiler = std::process::Command::new("cc").args(arguments).arg(&program).arg(&source).status();
    assert!(compiler.unwrap().success());
    (source, program)
}

/// What the source says at the entry of `main`, and what is said of its version.
fn line_of_main(image: &Image) -> (Option<String>, Vec<String>) {
    let (main, _) = image.find_symbol("main").unwrap();
    let frame = image.locate(main, Probe::Exact).unwrap().frames.remove(0);
    let mut sources = SourceLines::new(Vec::new());
    let text = sources.line(frame.file.as_deref().unwrap(), frame.line.unwrap(), frame.version);
    (text.map(str::to_owned), sources.remarks())
}

#[test]
fn the_source_of_a_kept_image_is_shown_only_while_it_is_that_of_the_build() {
    let folder = tempfile::tempdir().unwrap();
    let (source, program) = program_of(folder.path());
    let open = |bytes| Image::from_bytes(bytes, &IndexCache::none()).unwrap();
    let built = open(ImageBytes::File(program.clone()));
    let added = Store::in_folder(folder.path().join("store")).add(&ImageBytes::File(program)).unwrap();
    let main = built.find_symbol("main").unwrap();
    let (small, _) = slim::slim(&built, &[main].into(), &[]).unwrap();
    let whole = slim::whole(&built).unwrap();
    let memory = |bytes: &[u8]| open(ImageBytes::Memory { name: "kept".to_owned(), bytes: bytes.into() });
    let again = slim::whole(&memory(&whole)).unwrap();
    let kept = [open(ImageBytes::File(added.path)), memory(&small), memory(&whole), memory(&again)];
    let shown = Some("{".to_owned());
    assert_eq!(line_of_main(&built), (shown.clone(), Vec::new()));
    kept.iter().for_each(|image| assert_eq!(line_of_main(image), (shown.clone(), Vec::new())));

    fs::write(&source, "\nint main(void)\n{\n    return 7;\n}\n").unwrap();
    for image in &kept {
        let (text, remarks) = line_of_main(image);
        assert_eq!(text, None);
        assert!(remarks[0].ends_with("its lines are not shown"), "{remarks:?}");
    }
    let later = std::time::SystemTime::now() + std::time::Duration::from_secs(3600);
    fs::File::options().append(true).open(&source).unwrap().set_modified(later).unwrap();
    let (text, remarks) = line_of_main(&built);
    assert_eq!(text.as_deref(), Some("int main(void)"));
    assert!(remarks[0].contains("was changed after the image was built"), "{remarks:?}");
}

#[test]
fn an_image_that_was_built_here_is_no_part_of_a_dump_that_carries_others_or_none() {
    let folder = tempfile::tempdir().unwrap();
    let (_, program) = program_of(folder.path());
    let built = Image::open(&program, &IndexCache::none()).unwrap();
    let id = built.build_id().unwrap();
    let wanted = Wanted { build_id: Some(&id.0), name: None };
    let (small, _) = slim::slim(&built, &[built.find_symbol("main").unwrap()].into(), &[]).unwrap();
    let carried = ImageBytes::Memory { name: "carried".to_owned(), bytes: small.into() };
    for (inside, is_of_dump) in [(Vec::new(), false), (vec![carried], true)] {
        let mut finder = Finder::new(Vec::new(), false).offline().and_by_id(vec![program.clone()]);
        finder.add_inside(inside);
        finder.find(wanted).unwrap();
        assert_eq!(finder.took_beside(), is_of_dump);
    }
}

/// An image whose function `main` has so many blocks inside each other, and whose static lies in so many namespaces.
fn nested(blocks: usize, spaces: usize) -> Image {
    let rows = format!(
        "
        .text\n.globl main\n.type main, @function\nmain: ret\n.size main, . - main
        .section .debug_abbrev, \"\", @progbits
        .byte 1, 0x11, 1, 0, 0
        .byte 2, 0x2e, 1, 3, 8, 0x11, 1, 0x12, 6, 0, 0
        .byte 3, 0x0b, 1, 0x11, 1, 0x12, 6, 0, 0
        .byte 4, 0x39, 1, 3, 8, 0, 0
        .byte 5, 0x34, 0, 3, 8, 2, 0x18, 0, 0
        .byte 0
        .section .debug_info, \"\", @progbits
        .long 2f - 1f\n1: .short 4\n.long 0\n.byte 8
        .byte 1
        .byte 2\n.asciz \"main\"\n.quad main\n.long 1
        .rept {blocks}\n.byte 3\n.quad main\n.long 1\n.endr
        .fill {blocks} + 1
        .rept {spaces}\n.byte 4\n.asciz \"n\"\n.endr
        .byte 5\n.asciz \"v\"\n.byte 9, 3\n.quad main
        .fill {spaces} + 1
        2:\n.section .note.GNU-stack, \"\", @progbits\n"
    );
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("deep.s"), rows).unwrap();
    let mut compiler = std::process::Command::new("cc");
    compiler.current_dir(&folder).args(["-no-pie", "-Wl,--build-id=sha1", "deep.s", "-o", "deep"]);
    assert!(compiler.status().unwrap().success());
    let bytes = fs::read(folder.path().join("deep")).unwrap();
    Image::from_bytes(ImageBytes::Memory { name: "deep".to_owned(), bytes: bytes.into() }, &IndexCache::none()).unwrap()
}

#[test]
fn scopes_and_namespaces_inside_each_other_do_not_use_up_the_stack() {
    for (blocks, spaces) in [(3, 3), (60_000, 3), (3, 60_000)] {
        let image = nested(blocks, spaces);
        let (bytes, is_cut) = slim::slim(&image, &[image.find_symbol("main").unwrap()].into(), &[]).unwrap();
        let bytes = ImageBytes::Memory { name: "slim".to_owned(), bytes: bytes.into() };
        let small = Image::from_bytes(bytes, &IndexCache::none()).unwrap();
        let (main, _) = small.find_symbol("main").unwrap();
        assert_eq!(small.locate(main, Probe::Exact).unwrap().frames.len(), 1);
        let (mut above, mut found) = (0, 0);
        info::Info::of(&small).unwrap().each(0, None, &mut |_, entry| {
            above += usize::from(entry.tag == gimli::DW_TAG_namespace);
            found += usize::from(entry.tag == gimli::DW_TAG_variable);
            true
        });
        // A static lies in the deepest namespace that is followed, or it is said that not all are there.
        assert!((above, found) == (spaces.min(64), 1) || is_cut, "{blocks} {spaces}: {above} {found}");
        assert!(!is_cut || blocks > 3);
    }
}
