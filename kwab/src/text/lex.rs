//! Reads the objects of event lines: JSON, with bare hexadecimal numbers allowed.
//!
//! One [`Lexer`] walks one object from its `{`. The callers predict: they name the member they expect next, which costs
//! a comparison, and only what comes unpredicted is looked up by name. Whatever is read is checked completely, byte by
//! byte; a failure leaves [`Lexer::at`] at the first byte that cannot belong, which tells where an event was torn.
//!
//! Strings are slices of the line unless they hold an escape; then they are unescaped into scratch space that the
//! caller lends, of the line's length, since unescaping never makes a string longer.

/// The input does not go on as an object must; the position is in the lexer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Malformed;

/// The deepest nesting that is followed: real events nest three deep.
pub const MAX_DEPTH: usize = 64;

/// A number as it stood.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Number {
    /// Whether a minus sign came first.
    pub negative: bool,
    /// The digits' value.
    pub magnitude: u64,
}

impl Number {
    /// As a signed number. Hexadecimal words above `i64::MAX` are two's complement, as registers are.
    pub fn signed(self) -> Option<i64> {
        if self.negative { 0i64.checked_sub_unsigned(self.magnitude) } else { Some(self.magnitude as i64) }
    }

    /// As an unsigned number; a negative one is two's complement, as a register would show it.
    pub fn unsigned(self) -> u64 {
        if self.negative { self.magnitude.wrapping_neg() } else { self.magnitude }
    }
}

/// A position in one line.
#[derive(Debug)]
pub struct Lexer<'a> {
    src: &'a [u8],
    at: usize,
    scratch: &'a mut [u8],
}

impl<'a> Lexer<'a> {
    /// Starts at byte `at` of `src`; `scratch` must be as long as `src` for every string to fit.
    #[inline]
    pub fn new(src: &'a [u8], at: usize, scratch: &'a mut [u8]) -> Self {
        Self { src, at, scratch }
    }

    /// The position: how far the input has been understood.
    #[inline]
    pub fn at(&self) -> usize {
        self.at
    }

    /// Goes back to an earlier position.
    #[inline]
    pub fn rewind(&mut self, at: usize) {
        self.at = at.min(self.at);
    }

    /// The bytes up to the next quote, which is stepped over; for names that hold no escape.
    #[inline(always)]
    pub fn word_until_quote(&mut self) -> Result<&'a [u8], Malformed> {
        let rest = self.rest();
        let len = rest
            .iter()
            .take_while(|byte| matches!(byte, b'a'..=b'z' | b'_' | b'0'..=b'9' | b'A'..=b'Z' | b'-' | b'.'))
            .count();
        self.at += len;
        if self.eat_byte(b'"') { Ok(&rest[..len]) } else { Err(Malformed) }
    }

    /// What `read` makes of the bytes up to the next quote; steps over them and it unless `read` gives nothing.
    #[inline(always)]
    pub fn word_if<T>(&mut self, read: impl FnOnce(&'a [u8]) -> Option<T>) -> Option<T> {
        let rest = self.rest();
        let len = plain_len(rest);
        if rest.get(len) != Some(&b'"') {
            return None;
        }
        let value = read(&rest[..len])?;
        self.at += len + 1;
        Some(value)
    }

    /// The input between an earlier position and this one.
    #[inline]
    pub fn since(&self, start: usize) -> &'a [u8] {
        self.src.get(start..self.at).unwrap_or_default()
    }

    #[inline(always)]
    fn rest(&self) -> &'a [u8] {
        self.src.get(self.at..).unwrap_or_default()
    }

    /// The byte that comes next.
    #[inline(always)]
    pub fn peek(&self) -> Option<u8> {
        self.src.get(self.at).copied()
    }

    /// Steps over `literal` if it comes next.
    #[inline(always)]
    pub fn eat(&mut self, literal: &[u8]) -> bool {
        let found = self.rest().starts_with(literal);
        if found {
            self.at += literal.len();
        }
        found
    }

    /// Steps over one byte if it comes next.
    #[inline(always)]
    pub fn eat_byte(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    /// Steps over white space, which only strict JSON has.
    #[inline]
    pub fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\r')) {
            self.at += 1;
        }
    }

    /// Steps over `byte` and the white space around it, or fails.
    #[inline]
    pub fn expect(&mut self, byte: u8) -> Result<(), Malformed> {
        self.skip_space();
        if !self.eat_byte(byte) {
            return Err(Malformed);
        }
        self.skip_space();
        Ok(())
    }

    /// A number: decimal, bare hexadecimal, or hexadecimal in quotes. Fails on fractions, exponents and on more than
    /// 64 bits, which leaves the value to [`Lexer::skip_value`].
    #[inline(always)]
    pub fn number(&mut self) -> Result<Number, Malformed> {
        let start = self.at;
        let number = self.number_inner();
        if number.is_err() {
            self.at = start;
        }
        number
    }

    #[inline(always)]
    fn number_inner(&mut self) -> Result<Number, Malformed> {
        match self.peek() {
            Some(b'0') if matches!(self.src.get(self.at + 1), Some(b'x' | b'X')) => {
                self.at += 2;
                Ok(Number { negative: false, magnitude: self.hex_digits()? })
            }
            Some(b'0'..=b'9') => {
                let magnitude = self.decimal_digits()?;
                Ok(Number { negative: false, magnitude })
            }
            Some(b'-') => {
                self.at += 1;
                let magnitude = self.decimal_digits()?;
                Ok(Number { negative: true, magnitude })
            }
            Some(b'"') if self.eat(b"\"0x") => {
                let magnitude = self.hex_digits()?;
                if self.eat_byte(b'"') { Ok(Number { negative: false, magnitude }) } else { Err(Malformed) }
            }
            _ => Err(Malformed),
        }
    }

    #[inline(always)]
    fn hex_digits(&mut self) -> Result<u64, Malformed> {
        let rest = self.rest();
        let mut value = 0u64;
        let mut count = 0;
        for &byte in rest {
            let digit = HEX[usize::from(byte)];
            if digit > 15 {
                break;
            }
            value = value << 4 | u64::from(digit);
            count += 1;
        }
        // Leading zeros may make it longer than 16 digits; a 64-bit word never needs more.
        if count == 0 || count > 16 {
            return Err(Malformed);
        }
        self.at += count;
        Ok(value)
    }

    #[inline(always)]
    fn decimal_digits(&mut self) -> Result<u64, Malformed> {
        let rest = self.rest();
        let (mut value, mut count) = (0, 0);
        let front = rest.first_chunk();
        if let Some(front) = front {
            (value, count) = eight_decimals(*front);
        }
        if count == 8 || front.is_none() {
            for &byte in &rest[count..] {
                let digit = byte.wrapping_sub(b'0');
                if digit > 9 {
                    break;
                }
                value = value.wrapping_mul(10).wrapping_add(u64::from(digit));
                count += 1;
            }
        }
        if count > 19 {
            value = exact_decimal(&rest[..count]).ok_or(Malformed)?;
        }
        if count == 0 || matches!(rest.get(count), Some(b'.' | b'e' | b'E')) {
            return Err(Malformed);
        }
        self.at += count;
        Ok(value)
    }

    /// `true` or `false`.
    #[inline(always)]
    pub fn boolean(&mut self) -> Result<bool, Malformed> {
        if self.eat(b"false") {
            Ok(false)
        } else if self.eat(b"true") {
            Ok(true)
        } else {
            Err(Malformed)
        }
    }

    /// A string, unescaped.
    #[inline(always)]
    pub fn string(&mut self) -> Result<&'a [u8], Malformed> {
        if !self.eat_byte(b'"') {
            return Err(Malformed);
        }
        let rest = self.rest();
        let len = plain_len(rest);
        match rest.get(len) {
            Some(b'"') => {
                self.at += len + 1;
                Ok(&rest[..len])
            }
            Some(_) => self.escaped_string(len),
            None => {
                self.at = self.src.len();
                Err(Malformed)
            }
        }
    }

    /// A string of two hexadecimal digits a byte: those bytes.
    pub fn hex_string(&mut self) -> Result<&'a [u8], Malformed> {
        let start = self.at;
        let digits = self.string()?;
        let value = |digit: &u8| char::from(*digit).to_digit(16);
        let pairs = digits.as_chunks::<2>();
        if !pairs.1.is_empty() || digits.iter().any(|digit| value(digit).is_none()) || digits.len() > self.scratch.len()
        {
            self.at = start;
            return Err(Malformed);
        }
        let scratch = std::mem::take(&mut self.scratch);
        let (bytes, spare) = scratch.split_at_mut(pairs.0.len());
        for (byte, [high, low]) in bytes.iter_mut().zip(pairs.0) {
            *byte = (value(high).unwrap_or_default() << 4 | value(low).unwrap_or_default()) as u8;
        }
        self.scratch = spare;
        Ok(bytes)
    }

    /// The rest of a string whose first special byte is `plain` bytes ahead.
    #[cold]
    fn escaped_string(&mut self, plain: usize) -> Result<&'a [u8], Malformed> {
        let rest = self.rest();
        let scratch = std::mem::take(&mut self.scratch);
        let outcome = unescape(rest, plain, scratch);
        match outcome {
            Ok((read, wrote)) => {
                let (text, spare) = scratch.split_at_mut(wrote);
                self.scratch = spare;
                self.at += read;
                Ok(text)
            }
            Err(read) => {
                self.scratch = scratch;
                self.at += read;
                Err(Malformed)
            }
        }
    }

    /// Steps over one value of any kind and gives the bytes it stood in.
    pub fn skip_value(&mut self) -> Result<&'a [u8], Malformed> {
        let start = self.at;
        self.skip_nested()?;
        Ok(self.since(start))
    }

    /// An explicit stack instead of recursion: a line may open a million brackets.
    fn skip_nested(&mut self) -> Result<(), Malformed> {
        let mut open = [0u8; MAX_DEPTH];
        let mut depth = 0;
        loop {
            self.skip_space();
            match self.peek() {
                Some(bracket @ (b'{' | b'[')) => {
                    self.at += 1;
                    *open.get_mut(depth).ok_or(Malformed)? = bracket;
                    depth += 1;
                    self.skip_space();
                    if !self.eat_byte(if bracket == b'{' { b'}' } else { b']' }) {
                        self.member_name_if(bracket == b'{')?;
                        continue;
                    }
                    depth -= 1;
                }
                _ => self.skip_scalar()?,
            }
            // A value is over: close what it completes, or go on to the next of its list.
            loop {
                let Some(bracket) = depth.checked_sub(1).and_then(|top| open.get(top)).copied() else { return Ok(()) };
                self.skip_space();
                if self.eat_byte(b',') {
                    self.skip_space();
                    self.member_name_if(bracket == b'{')?;
                    break;
                }
                if !self.eat_byte(if bracket == b'{' { b'}' } else { b']' }) {
                    return Err(Malformed);
                }
                depth -= 1;
            }
        }
    }

    fn member_name_if(&mut self, in_object: bool) -> Result<(), Malformed> {
        if in_object {
            self.skip_string()?;
            self.expect(b':')?;
        }
        Ok(())
    }

    fn skip_string(&mut self) -> Result<(), Malformed> {
        if !self.eat_byte(b'"') {
            return Err(Malformed);
        }
        loop {
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(b'\\') if self.src.get(self.at + 1).is_some() => self.at += 2,
                Some(0..0x20) | None => return Err(Malformed),
                Some(_) => self.at += 1,
            }
        }
    }

    /// A string, a word, or a number in any notation that either dialect knows.
    fn skip_scalar(&mut self) -> Result<(), Malformed> {
        if self.peek() == Some(b'"') {
            return self.skip_string();
        }
        if self.eat(b"true") || self.eat(b"false") || self.eat(b"null") || self.number().is_ok() {
            return Ok(());
        }
        let rest = self.rest();
        let len = rest.iter().take_while(|byte| matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E')).count();
        let text = std::str::from_utf8(&rest[..len]).unwrap_or_default();
        if len == 0 || !rest[0].is_ascii_digit() && rest[0] != b'-' || text.parse::<f64>().is_err() {
            return Err(Malformed);
        }
        self.at += len;
        Ok(())
    }
}

/// Bytes in front of the first quote, backslash or control character; all, when there is none.
#[inline(always)]
fn plain_len(text: &[u8]) -> usize {
    let mut len = 0;
    while let Some(chunk) = text.get(len..).and_then(<[u8]>::first_chunk) {
        let bytes = u64::from_le_bytes(*chunk);
        // The top bit of each byte that is not plain. A borrow out of a byte spoils only bytes behind one that is not.
        let below = |limit: u8, word: u64| word.wrapping_sub(EACH * u64::from(limit)) & !word;
        let special = below(0x20, bytes) | below(1, bytes ^ (EACH * 0x22)) | below(1, bytes ^ (EACH * 0x5c));
        let special = special & (EACH * 0x80);
        if special != 0 {
            return len + special.trailing_zeros() as usize / 8;
        }
        len += 8;
    }
    while text.get(len).is_some_and(|byte| !STRING_SPECIAL[usize::from(*byte)]) {
        len += 1;
    }
    len
}

/// One in each byte of a word.
const EACH: u64 = 0x0101_0101_0101_0101;

/// The value of the decimal digits at the front of eight bytes, and their number.
#[inline(always)]
fn eight_decimals(bytes: [u8; 8]) -> (u64, usize) {
    let digits = u64::from_le_bytes(bytes) ^ (EACH * 0x30);
    // The top bit of each byte that is above nine. A carry out of a byte spoils only bytes behind one that is.
    let others = (digits.wrapping_add(EACH * 0x76) | digits) & (EACH * 0x80);
    let count = others.trailing_zeros() / 8;
    // Zeros come in front, so that the last digit is in the top byte; then pairs, fours and eights are summed.
    let digits = digits.checked_shl(64 - 8 * count).unwrap_or(0);
    let pairs = (digits.wrapping_mul(10) + (digits >> 8)) & (EACH / 0x101 * 0xff);
    let fours = (pairs.wrapping_mul(100) + (pairs >> 16)) & 0x0000_ffff_0000_ffff;
    let value = (fours.wrapping_mul(10_000) + (fours >> 32)) & 0xffff_ffff;
    (value, count as usize)
}

/// The value of twenty decimal digits, if 64 bits hold it.
#[cold]
fn exact_decimal(digits: &[u8]) -> Option<u64> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// Unescapes the string at the front of `src`, whose first special byte is at `plain`, into `out`.
///
/// Gives the bytes read, closing quote included, and written; or the offset at which `src` stops being a string. An
/// unknown escape is kept as it stands, for the loose dialect escapes only `\" \\ \n \r` and lets every other byte be.
fn unescape(src: &[u8], plain: usize, out: &mut [u8]) -> Result<(usize, usize), usize> {
    let mut read = plain;
    let mut wrote = plain;
    out.get_mut(..plain).ok_or(plain)?.copy_from_slice(&src[..plain]);
    loop {
        let byte = *src.get(read).ok_or(read)?;
        let mut push = |bytes: &[u8]| -> Result<(), usize> {
            out.get_mut(wrote..wrote + bytes.len()).ok_or(read)?.copy_from_slice(bytes);
            wrote += bytes.len();
            Ok(())
        };
        match byte {
            b'"' => return Ok((read + 1, wrote)),
            b'\\' => {
                let escape = *src.get(read + 1).ok_or(read)?;
                let simple = match escape {
                    b'"' | b'\\' | b'/' => Some(escape),
                    b'n' => Some(b'\n'),
                    b'r' => Some(b'\r'),
                    b't' => Some(b'\t'),
                    b'b' => Some(8),
                    b'f' => Some(12),
                    _ => None,
                };
                if let Some(byte) = simple {
                    push(&[byte])?;
                    read += 2;
                } else if let Some((character, length)) = unicode_escape(&src[read..]) {
                    push(character.encode_utf8(&mut [0; 4]).as_bytes())?;
                    read += length;
                } else {
                    push(&[byte, escape])?;
                    read += 2;
                }
            }
            0..0x20 => return Err(read),
            _ => {
                push(&[byte])?;
                read += 1;
            }
        }
    }
}

/// The character that `\uXXXX`, or two of them as a surrogate pair, stands for, and the bytes it took.
fn unicode_escape(src: &[u8]) -> Option<(char, usize)> {
    let unit = |at: usize| -> Option<u32> {
        let digits = src.get(at..at + 6)?.strip_prefix(b"\\u")?;
        digits.iter().try_fold(0, |value, &byte| Some(value << 4 | char::from(byte).to_digit(16)?))
    };
    let first = unit(0)?;
    if (0xd800..0xdc00).contains(&first) {
        let second = unit(6).filter(|second| (0xdc00..0xe000).contains(second))?;
        return Some((char::from_u32(0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00))?, 12));
    }
    Some((char::from_u32(first)?, 6))
}

/// Value of each hexadecimal digit, 255 for other bytes.
static HEX: [u8; 256] = {
    let mut table = [255; 256];
    let mut digit = 0u8;
    while digit < 16 {
        table[if digit < 10 { b'0' + digit } else { b'a' + digit - 10 } as usize] = digit;
        if digit >= 10 {
            table[(b'A' + digit - 10) as usize] = digit;
        }
        digit += 1;
    }
    table
};

/// Bytes at which a plain string stops: quote, backslash and control characters.
static STRING_SPECIAL: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 0x20 {
        table[byte] = true;
        byte += 1;
    }
    table[b'"' as usize] = true;
    table[b'\\' as usize] = true;
    table
};

#[cfg(test)]
mod tests {
    use super::*;

    fn with<T>(text: &str, read: impl FnOnce(&mut Lexer<'_>) -> T) -> (T, usize) {
        let mut scratch = vec![0; text.len()];
        let mut lexer = Lexer::new(text.as_bytes(), 0, &mut scratch);
        let value = read(&mut lexer);
        let at = lexer.at();
        (value, at)
    }

    #[test]
    #[expect(
        clippy::redundant_closure_for_method_calls,
        reason = "the bare method is not general over the lexer's lifetime"
    )]
    fn numbers_of_both_dialects_mean_the_same() {
        let plain = |magnitude| Ok(Number { negative: false, magnitude });
        for (text, expected) in [
            ("0x401234,", plain(0x40_1234)),
            ("\"0x401234\",", plain(0x40_1234)),
            ("4198964,", plain(4_198_964)),
            ("0xffffffffffffffff}", plain(u64::MAX)),
            ("18446744073709551615}", plain(u64::MAX)),
            ("-2,", Ok(Number { negative: true, magnitude: 2 })),
            ("18446744073709551616,", Err(Malformed)),
            ("0x11111111111111111,", Err(Malformed)),
            ("0x,", Err(Malformed)),
            ("1.5,", Err(Malformed)),
            ("-,", Err(Malformed)),
            ("\"0x12", Err(Malformed)),
        ] {
            assert_eq!(with(text, |lexer| lexer.number()).0, expected, "{text}");
        }
    }

    #[test]
    fn decimals_of_every_length_end_at_any_byte_that_is_not_a_digit() {
        let digits = "98765432101234567890";
        for len in 1..=20 {
            for end in (0..=u8::MAX).filter(|byte| !byte.is_ascii_digit() && !b".eE".contains(byte)) {
                for behind in ["", "9", "99999999"] {
                    let text = [&digits.as_bytes()[..len], &[end], behind.as_bytes()].concat();
                    let expected = digits[..len].parse().map_err(|_| Malformed);
                    let number = Lexer::new(&text, 0, &mut []).number();
                    assert_eq!(number.map(|number| number.magnitude), expected, "{text:?}");
                }
            }
            for end in [".", "e", "E"] {
                let text = format!("{}{end}1234567", &digits[..len]);
                let mut lexer = Lexer::new(text.as_bytes(), 0, &mut []);
                assert_eq!((lexer.number(), lexer.at()), (Err(Malformed), 0), "{text}");
            }
        }
    }

    #[test]
    fn hexadecimals_of_every_length_end_at_any_byte_that_is_not_a_digit() {
        for digits in ["fE9a0bC7d1234568F", "00000000000000001", "9876543210abcdef0"] {
            for len in 1..=17 {
                for end in (0..=u8::MAX).filter(|byte| !byte.is_ascii_hexdigit()) {
                    for behind in ["", "f", "ffffffff"] {
                        let text = [b"0x", &digits.as_bytes()[..len], &[end], behind.as_bytes()].concat();
                        let expected = u64::from_str_radix(&digits[..len], 16).ok().filter(|_| len <= 16);
                        let number = Lexer::new(&text, 0, &mut []).number();
                        assert_eq!(number.ok().map(|number| number.magnitude), expected, "{text:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn strings_of_every_length_end_at_the_first_byte_that_is_not_plain() {
        for len in 0..40 {
            for end in 0..=u8::MAX {
                for fill in *b"a~\x7f\x80\xff !#[]" {
                    let text = [b"\"", &vec![fill; len][..], &[end], b"\"\x01\"\\"].concat();
                    let special = matches!(end, 0..0x20 | b'"' | b'\\');
                    assert_eq!(plain_len(&text[1..]), if special { len } else { len + 1 }, "{text:?}");
                }
            }
            assert_eq!(plain_len(&vec![b'x'; len]), len);
        }
    }

    #[test]
    fn strings_are_unescaped_and_stop_at_control_characters() {
        let read = |text: &str| with(text, |lexer| lexer.string().map(<[u8]>::to_vec)).0;
        assert_eq!(read(r#""plain","#), Ok(b"plain".to_vec()));
        assert_eq!(read(r#""a\"b\\c\nd\u00e9\ud83d\ude00\q""#), Ok("a\"b\\c\ndé😀\\q".into()));
        assert_eq!(read("\"torn"), Err(Malformed));
        assert_eq!(read("\"a\u{1b}[0m\""), Err(Malformed));
        assert_eq!(with("\"a\\n\u{1b}", |lexer| lexer.string().is_err()), (true, 4));
    }

    #[test]
    fn strings_of_hexadecimal_are_bytes_and_anything_else_stays_where_it_was() {
        let read = |text: &str| with(text, |lexer| lexer.hex_string().map(<[u8]>::to_vec));
        assert_eq!(read("\"00ffA1\",1"), (Ok(vec![0, 0xff, 0xa1]), 8));
        assert_eq!(read("\"\""), (Ok(Vec::new()), 2));
        for wrong in ["\"0\"", "\"0g\"", "12", "\"12"] {
            assert_eq!(read(wrong).0, Err(Malformed), "{wrong}");
        }
        assert_eq!(read("\"+1\"").1, 0);
    }

    #[test]
    fn any_value_is_stepped_over_whole_and_a_million_brackets_are_refused() {
        for text in ["{}", "[]", r#"{"a":[1,{"b":0x1f}],"c":"]}"}"#, "-1.5e3", "null", "[ 1 , true ]"] {
            assert_eq!(with(text, |lexer| lexer.skip_value().map(<[u8]>::len)), (Ok(text.len()), text.len()), "{text}");
        }
        for text in ["{", "[1,]", r#"{"a"}"#, "[}", "nul", "{\"a\":1,}"] {
            assert_eq!(with(text, |lexer| lexer.skip_value().map(<[u8]>::len)).0, Err(Malformed), "{text}");
        }
        assert_eq!(with(&"[".repeat(1_000_000), |lexer| lexer.skip_value().map(<[u8]>::len)).0, Err(Malformed));
    }
}
