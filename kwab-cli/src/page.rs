//! Cuts a JSON report down to a number of bytes, and says what was left out and where to ask for it.
//!
//! A [`Page`] names the part of the report that is wanted by a JSON pointer (RFC 6901), and of a list or a text from
//! which element or character on. What does not fit is left out at the end of lists and texts, the shorter parts of an
//! object before the longer ones; each place is a [`LeftOut`] whose pointer and offset ask for the rest.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use kwab::plain;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Places that are named one by one.
const MOST_PLACES: usize = 32;
/// A pointer longer than this is not named: keys of a report are short, but for damage.
const LONGEST_POINTER: usize = 256;

/// The page that JSON reports of this process are cut to, if any.
static WANTED: OnceLock<Page> = OnceLock::new();

/// Cuts every JSON report that this process prints.
pub(crate) fn want(page: Page) {
    // A second call would be a defect; the first one holds.
    let _ = WANTED.set(page);
}

/// The page that is wanted.
pub(crate) fn wanted() -> Option<&'static Page> {
    WANTED.get()
}

/// Which part of a report, and how much of it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Page {
    /// JSON pointer to the value that is wanted; empty for the whole report.
    pub at: String,
    /// Elements of that list, or characters of that text, to pass over.
    pub offset: usize,
    /// Most elements or characters of it.
    pub limit: Option<usize>,
    /// Most bytes of JSON.
    pub bytes: usize,
    /// Keys of the report that are wanted; all when there are none.
    pub keys: Vec<String>,
}

/// A part of a report.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Part {
    /// The value that was asked for, cut.
    pub data: Value,
    /// What is missing in it.
    pub left_out: Vec<LeftOut>,
    /// Further places that miss something.
    pub more_left_out: usize,
}

/// A place of a report where something was left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct LeftOut {
    /// JSON pointer to the list, text or object.
    pub at: String,
    /// Elements, characters or fields that follow the last one shown.
    pub missing: usize,
    /// Elements, characters or fields that it has in all.
    pub of: usize,
    /// The offset that asks for the next ones; absent for an object, whose fields are asked for one by one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_offset: Option<usize>,
}

/// Why a report has no such part.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PageError {
    /// The pointer leads nowhere.
    #[error("the report has nothing at {at}; {there}")]
    Nothing {
        /// The pointer as it was asked for.
        at: String,
        /// What there is.
        there: String,
    },
    /// An offset into what has no order.
    #[error("an offset or a limit needs a list or a text, and {0} is neither")]
    NotAList(String),
}

impl Page {
    /// The part of `report` that this page is. Characters that hide in a text or steer a terminal are spelled out.
    ///
    /// # Errors
    /// When the report has no such part.
    pub(crate) fn of(&self, mut report: Value) -> Result<Part, PageError> {
        if let (Value::Object(fields), false) = (&mut report, self.keys.is_empty()) {
            fields.retain(|key, _| self.keys.contains(key));
        }
        let mut value = match report.pointer_mut(&self.at) {
            Some(found) => visible(found.take()),
            None => return Err(self.nothing(&report)),
        };
        let mut cut = Cut::default();
        let (offset, limit) = (self.offset, self.limit.unwrap_or(usize::MAX));
        match &mut value {
            Value::Array(items) => {
                let of = items.len();
                items.drain(..offset.min(of));
                items.truncate(limit);
                let data = cut.list(std::mem::take(items), &self.at, self.bytes, offset.min(of), of);
                return Ok(cut.part(data));
            }
            Value::String(text) => {
                let of = text.chars().count();
                let wanted: String = text.chars().skip(offset).take(limit).collect();
                let data = cut.text(wanted, &self.at, self.bytes, offset.min(of), of);
                return Ok(cut.part(data));
            }
            _ if offset > 0 || self.limit.is_some() => return Err(PageError::NotAList(self.named())),
            _ => {}
        }
        let data = cut.fit(value, &self.at, self.bytes);
        Ok(cut.part(data))
    }

    fn named(&self) -> String {
        if self.at.is_empty() { "the report".to_owned() } else { self.at.clone() }
    }

    /// What to say of a pointer that leads nowhere: how far it leads, and what is there.
    fn nothing(&self, report: &Value) -> PageError {
        if !self.at.starts_with('/') {
            let there = "a pointer begins with /, as /backtraces/0".to_owned();
            return PageError::Nothing { at: self.at.clone(), there };
        }
        let mut known = self.at.as_str();
        while report.pointer(known).is_none() {
            known = &known[..known.rfind('/').unwrap_or(0)];
        }
        let place = if known.is_empty() { "the report" } else { known };
        let there = match report.pointer(known) {
            Some(Value::Object(fields)) => {
                let keys: Vec<&str> = fields.keys().take(MOST_PLACES).map(String::as_str).collect();
                format!("{place} has {}", keys.join(", "))
            }
            Some(Value::Array(items)) => format!("{place} is a list of {}", items.len()),
            _ => format!("{place} is a plain value"),
        };
        PageError::Nothing { at: self.at.clone(), there: plain::line(&there).into_owned() }
    }
}

/// The same value; of its strings what is hostile to a reader is spelled out, but for line ends and tabs.
fn visible(value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(visible_text(text)),
        Value::Array(items) => items.into_iter().map(visible).collect(),
        Value::Object(fields) => {
            fields.into_iter().map(|(key, value)| (visible_text(key), visible(value))).collect::<Map<_, _>>().into()
        }
        plain => plain,
    }
}

fn visible_text(text: String) -> String {
    let is_kept = |character: char| !plain::is_hostile(character) || matches!(character, '\n' | '\t');
    if text.chars().all(is_kept) {
        return text;
    }
    let mut out = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        match is_kept(character) {
            true => out.push(character),
            false => out.push_str(&plain::line(character.encode_utf8(&mut [0; 4]))),
        }
    }
    out
}

/// Bytes of a value as compact JSON.
fn length(value: &Value) -> usize {
    match value {
        Value::Null => 4,
        Value::Bool(yes) => 5 - usize::from(*yes),
        Value::Number(number) => number.to_string().len(),
        Value::String(text) => text_length(text),
        Value::Array(items) => 1 + items.iter().map(|item| length(item) + 1).sum::<usize>().max(1),
        Value::Object(fields) => 1 + fields.iter().map(|(key, value)| field_length(key, value)).sum::<usize>().max(1),
    }
}

fn field_length(key: &str, value: &Value) -> usize {
    text_length(key) + 1 + length(value) + 1
}

fn text_length(text: &str) -> usize {
    2 + text.chars().map(spelled).sum::<usize>()
}

/// Bytes of a character in a JSON string.
fn spelled(character: char) -> usize {
    match character {
        '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
        '\0'..='\u{1f}' => 6,
        other => other.len_utf8(),
    }
}

/// A cut under way.
#[derive(Debug, Default)]
struct Cut {
    places: Vec<LeftOut>,
    more: usize,
}

impl Cut {
    fn part(self, data: Value) -> Part {
        Part { data, left_out: self.places, more_left_out: self.more }
    }

    fn note(&mut self, at: &str, shown_to: usize, of: usize, is_ordered: bool) {
        if shown_to >= of {
            return;
        }
        if self.places.len() >= MOST_PLACES || at.len() > LONGEST_POINTER {
            self.more += 1;
            return;
        }
        let next_offset = is_ordered.then_some(shown_to);
        self.places.push(LeftOut { at: at.to_owned(), missing: of - shown_to, of, next_offset });
    }

    /// As much of a value as `bytes` hold; a number or a literal stays whole.
    fn fit(&mut self, value: Value, at: &str, bytes: usize) -> Value {
        if length(&value) <= bytes {
            return value;
        }
        match value {
            Value::String(text) => {
                let of = text.chars().count();
                self.text(text, at, bytes, 0, of)
            }
            Value::Array(items) => {
                let of = items.len();
                self.list(items, at, bytes, 0, of)
            }
            Value::Object(fields) => self.object(fields, at, bytes),
            plain => plain,
        }
    }

    /// The beginning of `text`, whose first character is number `offset` of `of`.
    fn text(&mut self, text: String, at: &str, bytes: usize, offset: usize, of: usize) -> Value {
        let mut left = bytes.saturating_sub(2);
        let kept: String = text
            .chars()
            .take_while(|character| {
                let need = spelled(*character);
                let fits = need <= left;
                left = left.saturating_sub(need);
                fits
            })
            .collect();
        self.note(at, offset + kept.chars().count(), of, true);
        Value::String(kept)
    }

    /// The first of `items`, of which the first is number `offset` of `of`. One that does not fit is cut if it would be
    /// the only one: a list is never stuck at an element.
    fn list(&mut self, items: Vec<Value>, at: &str, bytes: usize, offset: usize, of: usize) -> Value {
        let mut left = bytes.saturating_sub(2);
        let mut kept = Vec::new();
        for item in items {
            let need = length(&item) + 1;
            if need > left && !kept.is_empty() {
                break;
            }
            if need > left {
                let fitted = self.fit(item, &format!("{at}/{offset}"), left.saturating_sub(1));
                // Not even the brackets have room: the list itself says so.
                if length(&fitted) < left {
                    kept.push(fitted);
                }
                break;
            }
            left -= need;
            kept.push(item);
        }
        self.note(at, offset + kept.len(), of, true);
        Value::Array(kept)
    }

    /// Every field where there is room for its name; what is long gives way to what is short.
    fn object(&mut self, fields: Map<String, Value>, at: &str, bytes: usize) -> Value {
        let of = fields.len();
        let mut left = bytes.saturating_sub(2);
        let mut order: Vec<(String, Value)> = fields.into_iter().collect();
        order.sort_by_cached_key(|(key, value)| (field_length(key, value), key.clone()));
        let mut kept = BTreeMap::new();
        let count = order.len();
        for (place, (key, value)) in order.into_iter().enumerate() {
            let share = left / (count - place);
            let name = text_length(&key) + 2;
            if share <= name {
                continue;
            }
            let pointer = format!("{at}/{}", key.replace('~', "~0").replace('/', "~1"));
            let fitted = self.fit(value, &pointer, share - name);
            let need = name + length(&fitted);
            if need <= left {
                left -= need;
                kept.insert(key, fitted);
            }
        }
        self.note(at, kept.len(), of, false);
        Value::Object(kept.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn page(bytes: usize) -> Page {
        Page { bytes, ..Page::default() }
    }

    fn report() -> Value {
        let log: Vec<Value> = (0..500).map(|n| json!({"line": n, "text": format!("line {n} \"quoted\"\n")})).collect();
        json!({"schema": 1, "headline": "died", "log": log, "deep": {"text": "x".repeat(5000), "list": [[1, 2], []]}})
    }

    #[test]
    fn the_length_is_that_of_the_text() {
        for value in [report(), json!([]), json!({}), json!(null), json!([true, false, -1.5, "\u{8}\u{1}\"\\é"])] {
            assert_eq!(length(&value), serde_json::to_string(&value).unwrap().len(), "{value}");
        }
    }

    #[test]
    fn a_page_never_exceeds_its_bytes_and_says_what_it_lacks() {
        for bytes in [2, 10, 40, 100, 500, 1000, 5000, 20_000, 1 << 20] {
            let part = page(bytes).of(report()).unwrap();
            assert!(part.data.to_string().len() <= bytes, "{bytes}: {}", part.data.to_string().len());
            assert_eq!(part.left_out.is_empty() && part.more_left_out == 0, part.data == report(), "{bytes}");
        }
        let part = page(1000).of(report()).unwrap();
        assert_eq!((&part.data["headline"], &part.data["schema"]), (&json!("died"), &json!(1)));
    }

    #[test]
    fn what_was_left_out_can_be_asked_for_until_all_of_it_was_there() {
        let mut lines = Vec::new();
        let mut ask = Page { at: "/log".to_owned(), ..page(900) };
        loop {
            let part = ask.of(report()).unwrap();
            lines.extend(part.data.as_array().unwrap().clone());
            let Some(next) = part.left_out.iter().find(|left| left.at == "/log") else { break };
            assert_eq!((next.missing, next.of), (500 - lines.len(), 500));
            ask.offset = next.next_offset.unwrap();
        }
        assert_eq!(Value::Array(lines), report()["log"]);
        let mut text = String::new();
        let mut ask = Page { at: "/deep/text".to_owned(), ..page(900) };
        loop {
            let part = ask.of(report()).unwrap();
            text.push_str(part.data.as_str().unwrap());
            let Some(next) = part.left_out.first() else { break };
            ask.offset = next.next_offset.unwrap();
        }
        assert_eq!(text, report()["deep"]["text"].as_str().unwrap());
    }

    #[test]
    fn an_element_longer_than_the_page_is_cut_and_the_list_goes_on_behind_it() {
        let value = json!([{"long": "y".repeat(1000)}, "next"]);
        let part = page(100).of(value).unwrap();
        assert_eq!(part.left_out.iter().map(|left| left.at.as_str()).collect::<Vec<_>>(), ["/0/long", ""]);
        assert_eq!(part.left_out[1].next_offset, Some(1));
    }

    #[test]
    fn a_pointer_that_leads_nowhere_is_told_what_is_there() {
        let of =
            |at: &str, offset| Page { at: at.to_owned(), offset, ..page(1000) }.of(report()).unwrap_err().to_string();
        assert_eq!(of("/deep/txt", 0), "the report has nothing at /deep/txt; /deep has list, text");
        assert_eq!(of("/log/900/line", 0), "the report has nothing at /log/900/line; /log is a list of 500");
        assert!(of("log", 0).ends_with("a pointer begins with /, as /backtraces/0"));
        assert!(of("/deep", 3).contains("/deep is neither"));
        let behind = Page { at: "/log".to_owned(), offset: 9000, ..page(1000) }.of(report()).unwrap();
        assert_eq!((behind.data, behind.left_out.len()), (json!([]), 0));
    }

    #[test]
    fn what_hides_in_a_text_is_spelled_out_and_a_limit_holds() {
        let value = json!({"a\u{202e}": "x\u{1b}[2J\u{e0041}\n\t"});
        assert_eq!(page(1000).of(value).unwrap().data, json!({"a\\u{202e}": "x\\x1b[2J\\u{e0041}\n\t"}));
        let part = Page { at: "/log".to_owned(), offset: 5, limit: Some(2), ..page(1000) }.of(report()).unwrap();
        assert_eq!((part.data[0]["line"].as_u64(), part.data.as_array().unwrap().len()), (Some(5), 2));
        assert_eq!(part.left_out[0].next_offset, Some(7));
        let kept = Page { keys: vec!["schema".to_owned()], ..page(1000) }.of(report()).unwrap();
        assert_eq!(kept.data, json!({"schema": 1}));
    }
}
