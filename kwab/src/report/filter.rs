//! A filter over rows as people type it: `cause:null cpu:1 pid>5 text`, the same in `kwab list` and in the interface.
//!
//! Terms stand apart by spaces and all must hold. A word holds when the row's text contains it; `name:value` when that
//! field contains it, or equals it for numbers; `name=value` when it is equal; `>`, `<`, `>=` and `<=` compare numbers.
//! `-` before a term turns it round; `"two words"` is one word. Case never matters. Numbers are decimal or `0x…`, with
//! the units ns, us, ms, s, K, M and G.

use std::borrow::Cow;

/// A parsed filter; the empty one holds for every row.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    terms: Vec<Term>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Term {
    negated: bool,
    test: Test,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Test {
    Word(String),
    Field { name: String, comparison: Comparison, text: String, number: Option<u64> },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Comparison {
    Holds,
    Equal,
    More,
    Less,
    AtLeast,
    AtMost,
}

/// Why a filter cannot be understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FilterError {
    /// A field that these rows do not have.
    #[error("no field {name} here; there are {known}")]
    Unknown {
        /// What was asked for.
        name: String,
        /// The fields there are.
        known: String,
    },
    /// A comparison with something that is not a number.
    #[error("expected a number for {1}, got {0}")]
    NoNumber(String, String),
}

/// What a field of a row holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FieldValue<'a> {
    /// A number, in the unit of the field: nanoseconds, bytes, a count.
    Number(u64),
    /// A text, compared as it is or by a pattern.
    Text(Cow<'a, str>),
}

/// A row that can be filtered.
pub trait Fields {
    /// Everything that is shown of it, where a word without a field is looked for.
    fn text(&self) -> Cow<'_, str>;
    /// A field by name; `None` when this row does not have it.
    fn field(&self, name: &str) -> Option<FieldValue<'_>>;
}

impl Filter {
    /// Reads a filter for rows that have the `known` fields. A term that is still being typed (`pid>`) holds for all.
    ///
    /// # Errors
    /// [`FilterError`] for a field that is not known, and for a comparison with no number.
    pub fn parse(text: &str, known: &[&str]) -> Result<Self, FilterError> {
        let mut terms = Vec::new();
        for word in words(text) {
            let (negated, body) = match word.text.strip_prefix(['-', '!']) {
                Some(rest) if !word.quoted && !rest.is_empty() => (true, rest),
                _ => (false, word.text.as_str()),
            };
            if let Some(test) = test(body, word.quoted, known)? {
                terms.push(Term { negated, test });
            }
        }
        Ok(Self { terms })
    }

    /// Whether it holds for every row.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    /// Whether it holds for a row.
    #[must_use]
    pub fn holds(&self, row: &dyn Fields) -> bool {
        let mut shown: Option<String> = None;
        self.terms.iter().all(|term| {
            let holds = match &term.test {
                Test::Word(word) => shown.get_or_insert_with(|| row.text().to_lowercase()).contains(word.as_str()),
                Test::Field { name, comparison, text, number } => {
                    row.field(name).is_some_and(|value| compare(&value, *comparison, text, *number))
                }
            };
            holds != term.negated
        })
    }
}

/// A word as it was typed, and whether it began with a quote.
struct Word {
    text: String,
    quoted: bool,
}

fn words(text: &str) -> Vec<Word> {
    let mut words = Vec::new();
    let mut current = Word { text: String::new(), quoted: false };
    let mut inside = false;
    for character in text.chars() {
        match character {
            '"' => {
                current.quoted |= current.text.is_empty();
                inside = !inside;
            }
            _ if character.is_whitespace() && !inside => {
                let whole = std::mem::replace(&mut current, Word { text: String::new(), quoted: false });
                words.push(whole);
            }
            _ => current.text.extend(character.to_lowercase()),
        }
    }
    words.push(current);
    words.retain(|word| !word.text.is_empty());
    words
}

/// The test of one word; `None` when it is not finished.
fn test(word: &str, quoted: bool, known: &[&str]) -> Result<Option<Test>, FilterError> {
    let at = word.find([':', '=', '>', '<']).filter(|_| !quoted);
    let Some((name, rest)) = at.map(|at| word.split_at(at)) else { return Ok(Some(Test::Word(word.to_string()))) };
    let is_name = !name.is_empty() && name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
    // Paths of code have colons too: `core::panicking`.
    if !is_name || rest.starts_with("::") || rest.starts_with(":/") {
        return Ok(Some(Test::Word(word.to_string())));
    }
    if !known.contains(&name) {
        return Err(FilterError::Unknown { name: name.to_string(), known: known.join(", ") });
    }
    let (comparison, value) = match (rest.get(..2), rest.get(..1)) {
        (Some(">="), _) => (Comparison::AtLeast, &rest[2..]),
        (Some("<="), _) => (Comparison::AtMost, &rest[2..]),
        (_, Some(">")) => (Comparison::More, &rest[1..]),
        (_, Some("<")) => (Comparison::Less, &rest[1..]),
        (_, Some("=")) => (Comparison::Equal, &rest[1..]),
        _ => (Comparison::Holds, &rest[1..]),
    };
    if value.is_empty() {
        return Ok(None);
    }
    let parsed = number(value);
    if parsed.is_none() && !matches!(comparison, Comparison::Holds | Comparison::Equal) {
        return Err(FilterError::NoNumber(value.to_string(), format!("{name}{}", &rest[..rest.len() - value.len()])));
    }
    Ok(Some(Test::Field { name: name.to_string(), comparison, text: value.to_string(), number: parsed }))
}

fn compare(value: &FieldValue<'_>, comparison: Comparison, text: &str, wanted: Option<u64>) -> bool {
    match (value, wanted, comparison) {
        (FieldValue::Number(value), Some(wanted), _) => match comparison {
            Comparison::Holds | Comparison::Equal => *value == wanted,
            Comparison::More => *value > wanted,
            Comparison::Less => *value < wanted,
            Comparison::AtLeast => *value >= wanted,
            Comparison::AtMost => *value <= wanted,
        },
        (FieldValue::Text(value), _, Comparison::Holds) => value.to_lowercase().contains(text),
        (FieldValue::Text(value), _, Comparison::Equal) => value.to_lowercase() == text,
        (FieldValue::Text(_), _, _) | (FieldValue::Number(_), None, _) => false,
    }
}

/// A number as people write it: `0x51c000`, `4096`, `2ms`, `64K`.
#[must_use]
pub fn number(text: &str) -> Option<u64> {
    let text = text.trim().replace('_', "");
    if let Some(hex) = text.strip_prefix("0x") {
        return u64::from_str_radix(hex, 16).ok();
    }
    let end = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    let factor = match text[end..].to_ascii_lowercase().as_str() {
        "" | "ns" => 1,
        "us" => 1000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "k" => 1 << 10,
        "m" => 1 << 20,
        "g" => 1 << 30,
        _ => return None,
    };
    text[..end].parse::<u64>().ok()?.checked_mul(factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Row;

    impl Fields for Row {
        fn text(&self) -> Cow<'_, str> {
            "/bin/grep died of SIGSEGV in core::panicking".into()
        }

        fn field(&self, name: &str) -> Option<FieldValue<'_>> {
            match name {
                "pid" => Some(FieldValue::Number(130)),
                "cause" => Some(FieldValue::Text("NULL pointer".into())),
                "time" => Some(FieldValue::Number(2_500_000)),
                _ => None,
            }
        }
    }

    fn holds(text: &str) -> bool {
        Filter::parse(text, &["pid", "cause", "time", "cpu"]).unwrap().holds(&Row)
    }

    #[test]
    fn words_fields_and_comparisons_all_have_to_hold() {
        for text in
            ["", "grep", "cause:null pid>5 sigsegv", "pid:130", "-cause:stack", "time>2ms", "\"died of\"", "pid>"]
        {
            assert!(holds(text), "{text}");
        }
        for text in ["bash", "cause:null pid>130", "-grep", "pid:13", "time>=3ms", "cpu:1", "\"of died\"", "cause=null"]
        {
            assert!(!holds(text), "{text}");
        }
    }

    #[test]
    fn a_path_of_code_is_a_word_and_a_mistyped_field_is_an_error() {
        assert!(holds("core::panicking"));
        let error = Filter::parse("pdi:5", &["pid", "cause"]).unwrap_err();
        assert_eq!(error.to_string(), "no field pdi here; there are pid, cause");
        assert!(Filter::parse("pid>many", &["pid"]).is_err());
    }

    #[test]
    fn numbers_are_read_with_units_and_nothing_overflows() {
        assert_eq!(number("0x51c000"), Some(0x51_c000));
        assert_eq!(number("64K"), Some(65536));
        assert_eq!(number("99999999999999s"), None);
        assert_eq!(number("12q"), None);
    }
}
