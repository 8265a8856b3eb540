//! Reads `kwab-format/vectors/records.txt`, whose grammar is in the README beside it.

use super::{Field, Record, Value};
use anyhow::{Context, Result, bail};

/// One record of the vectors.
#[derive(Clone, Debug)]
pub struct Vector {
    /// The fields as the text says them.
    pub record: Record,
    /// The bytes that they must become.
    pub bytes: Vec<u8>,
}

/// All records of the vectors.
///
/// # Errors
/// The first line that does not follow the grammar.
pub fn parse(text: &str) -> Result<Vec<Vector>> {
    let mut vectors: Vec<Vector> = Vec::new();
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        take(line, &mut vectors).with_context(|| format!("in line {line:?}"))?;
    }
    Ok(vectors)
}

fn take(line: &str, vectors: &mut Vec<Vector>) -> Result<()> {
    if let Some(head) = line.strip_prefix("record ") {
        let kind = head.split(' ').next().unwrap_or_default().parse()?;
        vectors.push(Vector { record: Record::new(kind, Vec::new()), bytes: Vec::new() });
        return Ok(());
    }
    let vector = vectors.last_mut().context("a field before the first record")?;
    if let Some(digits) = line.strip_prefix("hex ") {
        vector.bytes.extend(hex(digits)?);
    } else if let Some(inner) = line.strip_prefix("    ") {
        let field = field(inner)?;
        elements(vector)?.last_mut().context("a field before the first element")?.push(field);
    } else if line == "  element" {
        elements(vector)?.push(Vec::new());
    } else {
        vector.record.fields.push(field(line)?);
    }
    Ok(())
}

/// The elements of the list that was begun last.
fn elements(vector: &mut Vector) -> Result<&mut Vec<Vec<Field>>> {
    match vector.record.fields.last_mut() {
        Some(Field { value: Value::List(elements), .. }) => Ok(elements),
        _ => bail!("an element outside a list"),
    }
}

fn field(line: &str) -> Result<Field> {
    let (left, text) = line.split_once(" = ").unwrap_or((line, ""));
    let words: Vec<_> = left.split(' ').collect();
    let [number, _name, shape, ..] = words[..] else { bail!("not a field") };
    let value = match shape {
        "list" => Value::List(Vec::new()),
        "bytes" => Value::Bytes(if text == "-" { Vec::new() } else { hex(text)? }),
        "bool" => Value::Bool(text.parse()?),
        "i64" => Value::Signed(text.parse()?),
        "u8" | "u16" | "u32" | "u64" => Value::Unsigned(text.parse()?),
        _ => bail!("unknown shape {shape}"),
    };
    Ok(Field::new(number.parse()?, value))
}

fn hex(digits: &str) -> Result<Vec<u8>> {
    let pair = |at: usize| digits.get(at..at + 2).context("half a byte");
    (0..digits.len()).step_by(2).map(|at| Ok(u8::from_str_radix(pair(at)?, 16)?)).collect()
}
