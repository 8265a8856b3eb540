//! What a catalogue keeps of one dump: its entry in a list, and what a fleet is searched by.

use std::path::Path;

use kwab::analysis::{triage, verify::Backing};
use kwab::model::{Depth, Dump, DumpFile, DumpsOf, OpenError};
use kwab::report::catalogue::{CatalogueEntry, Rank, arrange, concluded, entry, unreadable};
use kwab::symbols::Symbols;

use crate::failure::shown;
use crate::inputs;

/// A dump in a catalogue.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    /// What lists show.
    pub entry: CatalogueEntry,
    /// Every hypothesis of the triage with its score, best first.
    pub hypotheses: Vec<(String, f64)>,
    /// GNU build-id of the kernel in hexadecimal digits; empty when the dump does not say.
    pub build_id: String,
    /// Commit that the kernel's version names; empty when it names none.
    pub commit: String,
    /// Time of modification of the file, nanoseconds since 1970.
    pub modified_ns: i64,
}

impl Row {
    /// When it happened: by the dump's wall clock, else when its file was last written.
    pub(crate) fn when_ns(&self) -> i64 {
        self.entry.wall_ns.unwrap_or(self.modified_ns)
    }

    /// The group in `kwab list` that it belongs to when no other dump tells of the same death.
    pub(crate) fn group(&self) -> (Rank, String) {
        arrange(&[&self.entry]).pop().map_or((Rank::Unreadable, String::new()), |group| (group.rank, group.key))
    }

    /// The build of the kernel: its build-id, else its commit, else its name and version; empty when unknown.
    pub(crate) fn build(&self) -> &str {
        let names = [&self.build_id, &self.commit, &self.entry.kernel];
        names.into_iter().find(|name| !name.is_empty()).map_or("", String::as_str)
    }

    /// The row of a file that cannot be read.
    fn unreadable(name: &str, why: &str, modified_ns: i64) -> Self {
        Self {
            entry: unreadable(name, why),
            hypotheses: Vec::new(),
            build_id: String::new(),
            commit: String::new(),
            modified_ns,
        }
    }
}

/// The rows of all dumps of a file that was found; a file that is not a dump is a row that says so.
pub(crate) fn of_file(path: &Path, quick: bool, modified_ns: i64) -> Vec<Row> {
    let name = shown(path);
    match inputs::open(path).map_err(OpenError::Io).and_then(DumpsOf::of_file) {
        Ok(dumps) => dumps
            .map(|dump| match dump {
                Ok(file) => of_dump(file, quick, &name, modified_ns),
                Err(error) => Row::unreadable(&name, &error.to_string(), modified_ns),
            })
            .collect(),
        Err(error) => vec![Row::unreadable(&name, &error.to_string(), modified_ns)],
    }
}

/// The row of a dump: what it says of itself, and unless it has to be quick what triage concludes.
pub(crate) fn of_dump(file: DumpFile, quick: bool, name: &str, modified_ns: i64) -> Row {
    let dump = Dump::load(file, if quick { Depth::Catalogue } else { Depth::Rules });
    let (entry, hypotheses) = if quick {
        (entry(&dump, name), Vec::new())
    } else {
        let judged = triage(&dump.case(), &Symbols::new(), &Backing::none(), name);
        let all = judged.hypotheses.iter().map(|one| (one.rule.to_string(), one.score)).collect();
        (concluded(&dump, name, &judged), all)
    };
    let identity = dump.identity().unwrap_or_default();
    let build_id = identity.kernel_build_id.unwrap_or_default();
    let commit = commit_of(&String::from_utf8_lossy(identity.kernel_version.unwrap_or_default())).to_string();
    Row {
        entry,
        hypotheses,
        build_id: build_id.iter().map(|byte| format!("{byte:02x}")).collect(),
        commit,
        modified_ns,
    }
}

/// The commit in a kernel's version: digits behind `-g`, as `git describe` writes them, or a word of forty.
fn commit_of(version: &str) -> &str {
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_hexdigit).count();
    let described = version.match_indices("-g").find_map(|(at, mark)| {
        let rest = &version[at + mark.len()..];
        (7..=40).contains(&digits(rest)).then(|| &rest[..digits(rest)])
    });
    let words = || version.split(|letter: char| !letter.is_ascii_alphanumeric());
    described.or_else(|| words().find(|word| word.len() == 40 && digits(word) == 40)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::commit_of;

    #[test]
    fn a_commit_is_what_git_describe_appends_or_a_whole_hash_and_nothing_else() {
        assert_eq!(commit_of("6.12.0-rc1-00042-g1234abcd5678-dirty #1 SMP"), "1234abcd5678");
        assert_eq!(
            commit_of("0.1.0 (0123456789abcdef0123456789abcdef01234567)"),
            "0123456789abcdef0123456789abcdef01234567"
        );
        for version in ["6.1.0-25-amd64", "6.1.0-generic", "6.1-gabc", "", "-g"] {
            assert_eq!(commit_of(version), "", "{version}");
        }
    }
}
