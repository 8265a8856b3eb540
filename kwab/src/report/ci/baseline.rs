//! The crashes that a project knows: a TOML file that people read, comment and commit.
//!
//! An entry is known by its key, which says what lists group by: the rule and the function of a conclusion, or the
//! signature of a symptom when nothing is concluded. One of a conclusion and one of a symptom are the same crash when
//! they share a signature, so that a better rule makes no known crash new; two different conclusions never are.

use std::collections::HashMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Bug;
use crate::report::signature;

/// The version of the file's form.
const FORM: u32 = 1;
/// The head of the file.
const HEAD: &str = "\
# Crashes that `kwab ci` knows: they do not fail a run, others do.
# `kwab ci LOG... --baseline THIS --write-baseline` adds new ones; comments are yours and stay.
";

/// Why a baseline cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum BaselineError {
    /// The file is not of this form.
    #[error("is not a baseline: {0}")]
    Form(String),
    /// A version that this program does not know.
    #[error("has form {0}, and this kwab knows form {FORM}")]
    Version(u32),
    /// Signatures of another version are not comparable.
    #[error(
        "holds signatures of version {0}, and this kwab makes version {version}; write it again with --write-baseline",
        version = signature::VERSION
    )]
    Signatures(u32),
}

/// The crashes that are known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Baseline {
    /// Version of this form.
    pub(super) schema: u32,
    /// Version of the way its signatures were made.
    pub(super) signature_version: u32,
    /// The crashes, ordered by key.
    #[serde(default)]
    pub known: Vec<Known>,
}

/// Some entries without what stands before them.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entries {
    known: Vec<Known>,
}

/// A crash that is known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Known {
    /// What its dumps have in common.
    pub key: String,
    /// The names of its symptoms.
    #[serde(default)]
    pub signatures: Vec<String>,
    /// What it was when it was added, in one line.
    #[serde(default)]
    pub title: String,
    /// Why it is known: an issue, a name, a date.
    #[serde(default)]
    pub comment: String,
}

impl Known {
    /// An entry for a new crash, without a comment.
    #[must_use]
    pub fn of(bug: &Bug) -> Self {
        let (key, title) = (bug.key.clone(), bug.title.clone());
        Self { key, signatures: bug.signatures.clone(), title, comment: String::new() }
    }

    /// Whether it is known by its symptom only.
    fn is_symptom(&self) -> bool {
        is_symptom(&self.key)
    }
}

impl Default for Baseline {
    fn default() -> Self {
        Self { schema: FORM, signature_version: signature::VERSION, known: Vec::new() }
    }
}

impl Baseline {
    /// Reads the file's text.
    ///
    /// # Errors
    /// [`BaselineError`].
    pub fn from_toml(text: &str) -> Result<Self, BaselineError> {
        let read = Self::of_any_signatures(text)?;
        if read.signature_version != signature::VERSION {
            return Err(BaselineError::Signatures(read.signature_version));
        }
        Ok(read)
    }

    /// As [`Baseline::from_toml`], to be written again: signatures of another version are dropped, keys and comments
    /// stay.
    ///
    /// # Errors
    /// [`BaselineError`].
    pub fn renewed(text: &str) -> Result<Self, BaselineError> {
        let mut read = Self::of_any_signatures(text)?;
        if read.signature_version != signature::VERSION {
            read.known.iter_mut().for_each(|known| known.signatures.clear());
            read.signature_version = signature::VERSION;
        }
        Ok(read)
    }

    fn of_any_signatures(text: &str) -> Result<Self, BaselineError> {
        // Parsing takes forty times its text: a long file is parsed entry by entry. One that cannot be, because of an
        // error or of text that only looks like the head of an entry, is parsed whole, which says where.
        let read = Self::by_entries(text).map_or_else(|| toml::from_str(text), Ok);
        let read = read.map_err(|error| BaselineError::Form(said(&error, text)))?;
        if read.schema == FORM { Ok(read) } else { Err(BaselineError::Version(read.schema)) }
    }

    fn by_entries(text: &str) -> Option<Self> {
        const ENTRY: &str = "\n[[known]]\n";
        let mut rest = text;
        let mut read: Option<Self> = None;
        while !rest.is_empty() {
            let end = rest.get(1..)?.find(ENTRY).map_or(rest.len(), |at| at + 2);
            let (entry, behind) = rest.split_at_checked(end)?;
            match &mut read {
                None => read = Some(toml::from_str(entry).ok()?),
                Some(read) => read.known.extend(toml::from_str::<Entries>(entry).ok()?.known),
            }
            rest = behind;
        }
        read
    }

    /// The file's text.
    ///
    /// # Errors
    /// [`BaselineError::Form`] for a string that TOML cannot hold.
    pub fn to_toml(&self) -> Result<String, BaselineError> {
        let body = toml::to_string_pretty(self).map_err(|error| BaselineError::Form(error.to_string()))?;
        Ok(format!("{HEAD}\n{body}"))
    }
}

/// Where crashes stand in a baseline.
pub(super) struct Index<'b> {
    keys: HashMap<&'b str, usize>,
    /// The first entry with a signature, and the first of those that are known by their symptom only.
    signatures: HashMap<&'b str, (usize, Option<usize>)>,
}

impl<'b> Index<'b> {
    /// Of the entries of a baseline in their order.
    pub(super) fn of(entries: &'b [Known]) -> Self {
        let mut index = Self { keys: HashMap::new(), signatures: HashMap::new() };
        for (at, known) in entries.iter().enumerate() {
            index.keys.entry(&known.key).or_insert(at);
            for signature in &known.signatures {
                let (_, symptom) = index.signatures.entry(signature).or_insert((at, None));
                if symptom.is_none() && known.is_symptom() {
                    *symptom = Some(at);
                }
            }
        }
        index
    }

    /// Which entry knows a crash: the one of its key, else one that shares a signature, unless both conclude.
    pub(super) fn position(&self, key: &str, signatures: &[String]) -> Option<usize> {
        let shares = |signature: &String| {
            let (any, symptom) = *self.signatures.get(signature.as_str())?;
            if is_symptom(key) { Some(any) } else { symptom }
        };
        self.keys.get(key).copied().or_else(|| signatures.iter().filter_map(shares).min())
    }
}

/// Whether a key is a symptom's, not a conclusion's.
fn is_symptom(key: &str) -> bool {
    key.starts_with('~')
}

/// What is wrong with a text, with its line.
fn said(error: &toml::de::Error, text: &str) -> String {
    let line = error.span().and_then(|span| text.get(..span.start)).map(|before| before.matches('\n').count() + 1);
    match line {
        Some(line) => format!("line {line}: {}", error.message()),
        None => error.message().to_string(),
    }
}
