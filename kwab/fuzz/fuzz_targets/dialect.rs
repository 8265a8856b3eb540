//! A file of dialects of any text, and a log that a row with the fuzzer's templates reads. A zero byte parts the two;
//! the lines of the first are the templates.
//!
//! A file is a set of rows or an error, and the import with any row ends.
#![no_main]

use kwab::import::{Dialects, Options, import_with};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let parted = data.iter().position(|byte| *byte == 0).unwrap_or(data.len());
    let (file, log) = (String::from_utf8_lossy(&data[..parted]), data.get(parted + 1..).unwrap_or_default());
    let _ = Dialects::from_toml(&file);
    let mut lines = file.lines();
    let mut template = || serde_json::to_string(lines.next().unwrap_or_default()).expect("a text");
    let row = format!(
        "[[dialect]]\nname = \"fuzz\"\nprefix = [{}]\nbegins = [{{ line = {}, class = \"panic\", title = {} }}]\n\
         lines = [{}]\nframes = [{}]\nmarks = [{}]\nends = [{}]\n",
        template(),
        template(),
        template(),
        template(),
        template(),
        template(),
        template(),
    );
    let Ok(dialects) = Dialects::from_toml(&row) else { return };
    let options = Options { source: "log".into(), folder: None };
    let (report, _) = import_with(log, &options, dialects, &mut |_| {}).expect("memory does not fail");
    assert!(report.bytes <= log.len() as u64);
});
