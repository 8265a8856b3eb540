//! Turns fields into the bytes of a record: FORMAT.md 2.3 and 2.4.

/// What a field holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// Shapes u8 to u64, and enumerations.
    Unsigned(u64),
    /// Shape i64, zigzag-coded.
    Signed(i64),
    /// Shape bool, coded as 0 or 1.
    Bool(bool),
    /// Shape bytes: a length and that many bytes.
    Bytes(Vec<u8>),
    /// A list: each element is a body.
    List(Vec<Vec<Field>>),
}

/// A number and what it holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// The number in the key.
    pub number: u8,
    /// What it holds.
    pub value: Value,
}

impl Field {
    /// A field with this number and value.
    #[must_use]
    pub fn new(number: u8, value: Value) -> Self {
        Self { number, value }
    }

    fn encode(&self) -> Vec<u8> {
        match &self.value {
            Value::Unsigned(v) => self.integer(*v),
            Value::Bool(v) => self.integer(u64::from(*v)),
            Value::Signed(v) if *v >= 0 => self.integer(v.unsigned_abs() * 2),
            // -1 is 1, -2 is 3, and the smallest of all is the largest of all.
            Value::Signed(v) => self.integer((v.unsigned_abs() - 1) * 2 + 1),
            Value::Bytes(bytes) => [self.key(6), with_length(bytes)].concat(),
            Value::List(elements) => {
                let inner: Vec<u8> = elements.iter().flat_map(|fields| with_length(&body(fields))).collect();
                [self.key(6), with_length(&inner)].concat()
            }
        }
    }

    fn integer(&self, value: u64) -> Vec<u8> {
        const WIDTHS: [usize; 6] = [0, 1, 2, 4, 6, 8];
        let fits = |width: &usize| *width == 8 || value >> (8 * width) == 0;
        let code = WIDTHS.iter().position(fits).unwrap_or(5);
        let mut out = self.key(code as u8);
        out.extend(&value.to_le_bytes()[..WIDTHS[code]]);
        out
    }

    fn key(&self, code: u8) -> Vec<u8> {
        match self.number {
            1..=30 => vec![self.number * 8 + code],
            wide => vec![31 * 8 + code, wide],
        }
    }
}

/// A record: a kind and fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The number in the record header.
    pub kind: u8,
    /// Its fields, in any order.
    pub fields: Vec<Field>,
}

impl Record {
    /// A record of this kind with these fields.
    #[must_use]
    pub fn new(kind: u8, fields: Vec<Field>) -> Self {
        Self { kind, fields }
    }

    /// Header and body.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let body = body(&self.fields);
        let [l0, l1, l2, _] = (body.len() as u32).to_le_bytes();
        [vec![self.kind, l0, l1, l2], body].concat()
    }
}

/// Fields in ascending order of their numbers.
fn body(fields: &[Field]) -> Vec<u8> {
    let mut sorted: Vec<_> = fields.iter().collect();
    sorted.sort_by_key(|field| field.number);
    sorted.into_iter().flat_map(Field::encode).collect()
}

fn with_length(bytes: &[u8]) -> Vec<u8> {
    let mut out = match (u8::try_from(bytes.len()), u16::try_from(bytes.len())) {
        (Ok(short), _) if short < 254 => vec![short],
        (_, Ok(medium)) => [vec![254], medium.to_le_bytes().to_vec()].concat(),
        _ => [vec![255], (bytes.len() as u32).to_le_bytes().to_vec()].concat(),
    };
    out.extend_from_slice(bytes);
    out
}
