//! Values that completions offer for an argument that takes others too: kinds of sections, tables, rules.

use std::sync::OnceLock;

use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};
use kwab::format::SectionKind;

/// Takes any text, and offers what the function lists.
#[derive(Debug, Clone)]
pub(crate) struct Suggested(pub(crate) fn() -> Vec<&'static str>);

impl TypedValueParser for Suggested {
    type Value = String;

    fn parse_ref(
        &self,
        command: &clap::Command,
        argument: Option<&clap::Arg>,
        value: &std::ffi::OsStr,
    ) -> Result<String, clap::Error> {
        StringValueParser::new().parse_ref(command, argument, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(self.0().into_iter().map(PossibleValue::new)))
    }
}

/// The kinds of sections that a dump can have.
pub(crate) fn section_kinds() -> Vec<&'static str> {
    SectionKind::NAMES.iter().map(|(_, name)| *name).collect()
}

/// The tables that Parquet files can have. Names of types are made once, and stay.
pub(crate) fn tables() -> Vec<&'static str> {
    static NAMES: OnceLock<Vec<String>> = OnceLock::new();
    let names = NAMES.get_or_init(|| kwab::tables::DumpTable::names().collect());
    ["catalogue"].into_iter().chain(names.iter().map(String::as_str)).collect()
}

/// The rules of the audit of mappings.
pub(crate) fn audit_rules() -> Vec<&'static str> {
    kwab::analysis::audit::RULES.iter().map(|rule| rule.id).collect()
}
