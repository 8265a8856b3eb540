//! A fact from a dump with its record, as every analysis quotes it.
//!
//! A fact may list functions: those that decided a panic, those that an error can come from. They are values, not words
//! in the sentence, so that every front end shows the first of them as a short list and the others on request.

use schemars::JsonSchema;
use serde::Serialize;

use crate::model::RecordRef;

/// A fact that a claim rests on, or that speaks against it.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Evidence {
    /// The fact as a sentence; with functions, the sentence ends with them.
    pub text: String,
    /// The functions that it lists, likeliest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub functions: Vec<ListedFunction>,
    /// The record that says so; absent for what follows from the absence of records.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<RecordRef>,
    /// How much it counts, from 0 (context) to 1.
    pub weight: f64,
}

/// A function that a fact lists, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ListedFunction {
    /// Its demangled name.
    pub name: String,
    /// The source line that matters, as `file:line`, when it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// Why it is listed, when the sentence does not say it of all: `returned the tested value`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// A fact without its record and its weight, as rules make it.
#[derive(Clone, Debug, PartialEq)]
pub struct Statement {
    text: String,
    functions: Vec<ListedFunction>,
}

/// Functions of a fact that a screen shows before its user asks for all.
const FIRST: usize = 3;

impl Evidence {
    /// A fact that adds nothing to a score and is worth knowing.
    #[must_use]
    pub fn context(fact: impl Into<Statement>) -> Self {
        Self::of(fact, None, 0.0)
    }

    /// A fact with its record and its weight.
    #[must_use]
    pub fn of(fact: impl Into<Statement>, at: Option<RecordRef>, weight: f64) -> Self {
        let Statement { text, functions } = fact.into();
        Self { text, functions, at, weight }
    }

    /// The sentence, as it stands above the list of its functions.
    #[must_use]
    pub fn head(&self) -> String {
        if self.functions.is_empty() { self.text.clone() } else { format!("{}:", self.text) }
    }

    /// The functions that are shown at once. Where only one more would be left out, it is shown too: the line that
    /// tells of it is as long.
    #[must_use]
    pub fn first_functions(&self) -> &[ListedFunction] {
        let shown = if self.functions.len() > FIRST + 1 { FIRST } else { self.functions.len() };
        &self.functions[..shown]
    }

    /// The functions that are shown on request.
    #[must_use]
    pub fn other_functions(&self) -> &[ListedFunction] {
        &self.functions[self.first_functions().len()..]
    }

    /// The fact with the functions that are shown at once, in one line.
    #[must_use]
    pub fn in_words(&self) -> String {
        if self.functions.is_empty() {
            return self.text.clone();
        }
        let shown: Vec<String> = self.first_functions().iter().map(ListedFunction::in_words).collect();
        let more = match self.other_functions().len() {
            0 => String::new(),
            count => format!("; {count} more"),
        };
        format!("{}: {}{more}", self.text, shown.join("; "))
    }
}

impl ListedFunction {
    /// A function of which the sentence says why it is listed.
    #[must_use]
    pub fn plain(name: impl Into<String>) -> Self {
        Self { name: name.into(), place: None, why: None }
    }

    /// The function with its place and why it is listed, in one line.
    #[must_use]
    pub fn in_words(&self) -> String {
        let place = self.place.as_ref().map(|place| format!(" ({place})")).unwrap_or_default();
        let why = self.why.as_ref().map(|why| format!(", {why}")).unwrap_or_default();
        format!("{}{place}{why}", self.name)
    }
}

impl Statement {
    /// A sentence that ends with functions; `None` without any.
    #[must_use]
    pub fn listing(text: impl Into<String>, functions: Vec<ListedFunction>) -> Option<Self> {
        (!functions.is_empty()).then(|| Self { text: text.into(), functions })
    }

    /// A sentence, and behind it `listed` with functions when there are some.
    #[must_use]
    pub fn and(said: String, listed: &str, functions: Vec<ListedFunction>) -> Self {
        if functions.is_empty() { Self::from(said) } else { Self { text: format!("{said}{listed}"), functions } }
    }

    /// The same behind other words.
    #[must_use]
    pub fn behind(self, said: &str) -> Self {
        Self { text: format!("{said}{}", self.text), ..self }
    }
}

impl From<String> for Statement {
    fn from(text: String) -> Self {
        Self { text, functions: Vec::new() }
    }
}

impl From<&str> for Statement {
    fn from(text: &str) -> Self {
        Self::from(text.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(count: usize) -> Evidence {
        let functions = (0..count).map(|number| ListedFunction::plain(format!("f{number}"))).collect();
        Evidence::context(Statement::listing("made of", functions).unwrap())
    }

    #[test]
    fn a_long_list_shows_three_functions_and_says_how_many_more_there_are() {
        assert_eq!(of(10).in_words(), "made of: f0; f1; f2; 7 more");
        assert_eq!(of(10).other_functions().len(), 7);
    }

    #[test]
    fn a_list_that_one_line_more_completes_is_complete() {
        assert_eq!(of(4).in_words(), "made of: f0; f1; f2; f3");
        assert!(of(4).other_functions().is_empty());
    }

    #[test]
    fn a_function_has_its_place_and_its_reason_behind_its_name() {
        let why = Some("decided by g".to_owned());
        let one = ListedFunction { name: "f".to_owned(), place: Some("a.rs:3".to_owned()), why };
        assert_eq!(one.in_words(), "f (a.rs:3), decided by g");
    }

    #[test]
    fn a_fact_without_functions_is_its_sentence() {
        let fact = Evidence::context(Statement::and("it failed".to_owned(), "; it is made of", Vec::new()));
        assert_eq!((fact.head(), fact.in_words()), ("it failed".to_owned(), "it failed".to_owned()));
        assert_eq!(Statement::listing("made of", Vec::new()), None);
    }
}
