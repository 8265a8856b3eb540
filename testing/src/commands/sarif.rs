//! `cargo xtask sarif`: checks what `kwab ci --sarif` writes against the JSON schema of SARIF 2.1.0.
//!
//! The schema is the one that Microsoft's matchers for SARIF carry, fetched by npm. Checked are the logs of the
//! repository without a baseline, against one that knows another of them (new, unchanged and absent results), and a log
//! with hostile text. That the schema refuses anything at all is shown with a document that lacks its version.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use crate::npm::Package;
use crate::process::Call;
use crate::{binary, paths};

/// The package with the schema.
const SCHEMA: Package = Package {
    name: "@microsoft/jest-sarif@1.0.0-beta.0",
    archive: "microsoft-jest-sarif-1.0.0-beta.0.tgz",
    digest: "748e2c3d1a842e7bb258416685c7ea3a0da40005b72267b2052c2856d48ad102",
};
/// The schema in it.
const MEMBER: &str = "package/lib/schemas/sarif-2.1.0-rtm.5.json";

/// A pattern for languages with a bracket too many, which JavaScript takes for itself and stricter engines refuse.
const UNBALANCED: &str = "^[a-zA-Z]{2}|^[a-zA-Z]{2}-[a-zA-Z]{2}]?$";
const BALANCED: &str = "^[a-zA-Z]{2}(-[a-zA-Z]{2})?$";

/// Checks the documents and says how many there were.
pub fn run() -> Result<ExitCode> {
    let text = paths::read(&SCHEMA.member("sarif-schema", MEMBER)?)?;
    ensure!(text.contains(UNBALANCED), "the schema's pattern for languages has changed");
    let schema: Value = serde_json::from_str(&text.replace(UNBALANCED, BALANCED))?;
    let judge = jsonschema::validator_for(&schema).context("the schema of SARIF")?;
    let documents = Documents { kwab: binary::kwab()?, folder: paths::build("sarif")? }.all()?;
    let mut states = Vec::new();
    for (name, document) in &documents {
        let problems: Vec<String> =
            judge.iter_errors(document).map(|error| format!("{}: {error}", error.instance_path())).collect();
        ensure!(problems.is_empty(), "{name}: {}", problems.join("; "));
        let results = document["runs"][0]["results"].as_array().context("no results")?;
        states.extend(results.iter().filter_map(|result| result["baselineState"].as_str().map(str::to_owned)));
        let mut broken = document.clone();
        broken.as_object_mut().context("no object")?.remove("version");
        ensure!(!judge.is_valid(&broken), "{name}: the schema accepts a document without its version");
    }
    for state in ["new", "unchanged", "absent"] {
        ensure!(states.iter().any(|one| one == state), "no result is {state}");
    }
    println!("{} documents with {} results are SARIF 2.1.0", documents.len(), states.len());
    Ok(ExitCode::SUCCESS)
}

struct Documents {
    kwab: PathBuf,
    folder: PathBuf,
}

impl Documents {
    fn all(&self) -> Result<Vec<(String, Value)>> {
        let logs = paths::root().join("testing/data/logs");
        let (none, known) = (self.folder.join("none.toml"), self.folder.join("known.toml"));
        fs::write(&none, "schema = 1\nsignature_version = 1\n")?;
        let _ = fs::remove_file(&known);
        self.ci(&logs.join("kevlar-panic-socket.log"), &known, &["--write-baseline"])?;
        let hostile = self.folder.join("hostile.log");
        let text = paths::read(&logs.join("linux-6.1-sysrq-panic.log"))?;
        fs::write(&hostile, text.replace("sysrq triggered crash", "\u{1b}[31m\u{202e}::error::%0A\"}]<script> ünï"))?;
        let inputs = [
            ("logs", &logs, &none),
            ("logs beside a baseline", &logs, &known),
            ("another log beside a baseline", &logs.join("linux-6.1-sysrq-panic.log"), &known),
            ("a hostile log", &hostile, &none),
        ];
        inputs.into_iter().map(|(name, input, baseline)| Ok((name.to_owned(), self.sarif(input, baseline)?))).collect()
    }

    fn sarif(&self, input: &Path, baseline: &Path) -> Result<Value> {
        let file = self.folder.join("out.sarif");
        self.ci(input, baseline, &["--sarif", &file.to_string_lossy()])?;
        serde_json::from_str(&paths::read(&file)?).with_context(|| paths::shown(&file))
    }

    fn ci(&self, input: &Path, baseline: &Path, more: &[&str]) -> Result<()> {
        let call = Call::new(&self.kwab).arg("ci").arg(input).arg("--baseline").arg(baseline).args(more);
        let output = call.capture_any()?;
        ensure!(matches!(output.status.code(), Some(0 | 1 | 3)), "kwab ci: {}", output.stderr);
        Ok(())
    }
}
