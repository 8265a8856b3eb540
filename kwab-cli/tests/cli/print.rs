//! `kwab print` on a dump of a small program whose statics have known values.

use std::path::Path;

use crate::common::values::{dump, program};
use crate::common::{folder, run, text};
use serde_json::Value;

fn printed(folder: &Path, arguments: &[&str], status: i32) -> String {
    let program = program();
    let own = ["print", "p.kwab", "--symbols", program.to_str().expect("a path")];
    let output = run(folder, &[&own, arguments].concat());
    assert_eq!(output.status.code(), Some(status), "{arguments:?}: {}", text(&output.stderr));
    text(if status == 2 { &output.stderr } else { &output.stdout })
}

#[test]
fn statics_are_printed_as_lines_and_as_json_that_keeps_to_its_schema() {
    let folder = folder();
    dump(folder.path(), 0);
    let page = printed(folder.path(), &["RECORD"], 0);
    for line in
        ["RECORD: Record  at 0x", "  name: &str = \"the record\"\n", "    Shape = Circle\n      radius: u16 = 500\n"]
    {
        assert!(page.contains(line), "{line}: {page}");
    }
    assert!(printed(folder.path(), &["RECORD.shapes[0].radius"], 0).contains("u16 = 500"));
    assert!(printed(folder.path(), &["RECORD", "--depth", "1"], 0).contains("shapes: [Shape; 3] …"));
    let value: Value = serde_json::from_str(&printed(folder.path(), &["RECORD", "--json"], 0)).expect("JSON");
    let schema = Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas/print.json");
    let schema: Value = serde_json::from_str(&std::fs::read_to_string(schema).expect("there")).expect("JSON");
    let validator = jsonschema::validator_for(&schema).expect("a schema");
    let errors: Vec<_> = validator.iter_errors(&value).map(|error| error.to_string()).collect();
    assert!(errors.is_empty(), "{errors:?}");
    assert_eq!((&value["schema"], &value["incomplete"]), (&1.into(), &false.into()));
}

#[test]
fn what_was_not_captured_has_status_3_and_what_does_not_exist_status_2() {
    let folder = folder();
    dump(folder.path(), u64::MAX);
    let page = printed(folder.path(), &["RECORD.id"], 3);
    assert!(page.contains("u64 <not captured> at 0x"), "{page}");
    dump(folder.path(), 0);
    for (arguments, words) in [
        (&["NOTHING"][..], "is called NOTHING"),
        (&["RECORD."], "expected .field"),
        (&["RECORD.id.x"], "does not fit a value of type u64"),
        (&["--frame", "3"], "frame 3"),
        (&["--task", "8"], "thread 8"),
    ] {
        let said = printed(folder.path(), arguments, 2);
        assert!(said.contains(words), "{arguments:?}: {said}");
    }
    let clean = format!("{}/../testing/dumps/clean.kwab", env!("CARGO_MANIFEST_DIR"));
    let output = run(folder.path(), &["print", &clean, "X"]);
    assert_eq!(output.status.code(), Some(2));
}
