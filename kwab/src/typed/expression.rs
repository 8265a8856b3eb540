//! What can be asked for: a name, and the way from it to a part: `*a.b[3].c`.
//!
//! A name is a variable of the frame or the path of a static (`sched::RUNNING`). `.field` and `[n]` follow a pointer
//! by themselves, `*` in front follows it once, applied last.

/// A step from a value to a part of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PathStep {
    /// A field by name; of a tuple by number.
    Field(String),
    /// An element by its number.
    Index(u64),
}

/// A parsed expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expression {
    /// Pointers that are followed at the end.
    pub derefs: usize,
    /// Name or path of the variable.
    pub name: String,
    /// The way to the part.
    pub steps: Vec<PathStep>,
}

/// Why a text is not an expression.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExpressionError {
    /// Longer than 1024 characters.
    #[error("the expression has more than {LONGEST} characters")]
    TooLong,
    /// A name was expected.
    #[error("expected a name at {0:?}")]
    Name(String),
    /// What follows a value is neither a field nor an index.
    #[error("expected .field or [number] at {0:?}")]
    PathStep(String),
}

/// The longest expression.
const LONGEST: usize = 1024;

impl Expression {
    /// Parses a text.
    ///
    /// # Errors
    /// [`ExpressionError`] with the rest that is not understood.
    pub fn parse(text: &str) -> Result<Self, ExpressionError> {
        if text.chars().count() > LONGEST {
            return Err(ExpressionError::TooLong);
        }
        let text = text.trim();
        let plain = text.trim_start_matches(['*', ' ']);
        let derefs = text[..text.len() - plain.len()].matches('*').count();
        // A path may hold anything but the beginning of a step: `{impl#0}`, `<T>`.
        let end = plain.find(['.', '[']).unwrap_or(plain.len());
        let (name, mut rest) = plain.split_at(end);
        let name = name.trim();
        if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) || name.contains(char::is_whitespace) {
            return Err(ExpressionError::Name(plain.to_owned()));
        }
        let mut steps = Vec::new();
        while !rest.is_empty() {
            let wrong = || ExpressionError::PathStep(rest.to_owned());
            if let Some(field) = rest.strip_prefix('.') {
                let end = field.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(field.len());
                if end == 0 {
                    return Err(wrong());
                }
                steps.push(PathStep::Field(field[..end].to_owned()));
                rest = &field[end..];
            } else {
                let (number, behind) =
                    rest.strip_prefix('[').and_then(|rest| rest.split_once(']')).ok_or_else(wrong)?;
                let number = number.trim();
                let parsed = match number.strip_prefix("0x") {
                    Some(hex) => u64::from_str_radix(hex, 16),
                    None => number.parse(),
                };
                steps.push(PathStep::Index(parsed.map_err(|_| wrong())?));
                rest = behind;
            }
        }
        Ok(Self { derefs, name: name.to_owned(), steps })
    }
}
