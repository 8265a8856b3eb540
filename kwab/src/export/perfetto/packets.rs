//! Writes packets one by one, each with the strings that it is the first to use.

use std::collections::HashMap;
use std::io::{self, Write};

use prost::Message as _;
use prost::encoding::message;

use super::schema::{
    CLEARED, DebugAnnotation, EventType, Interned, InternedData, NEEDED, PACKET, TracePacket, TrackDescriptor,
    TrackEvent,
};
use crate::plain;

/// The one sequence of packets that is written.
const SEQUENCE: u32 = 1;
/// Names that are interned; more are written where they stand.
const MOST_NAMES: usize = 4096;
/// Characters of a string of the dump; the rest is counted.
const LONGEST: usize = 400;

/// An event before it is a packet.
#[derive(Debug)]
pub(super) struct Event<'a> {
    pub(super) kind: EventType,
    pub(super) track: u64,
    pub(super) ns: u64,
    /// Empty for the end of a slice and for a counter.
    pub(super) name: &'a str,
    pub(super) category: &'static str,
    /// What is known of it beside its name.
    pub(super) notes: Vec<(&'static str, Note)>,
    /// Numbers of the flows that begin and end here.
    pub(super) flows: (Vec<u64>, Vec<u64>),
    pub(super) value: Option<i64>,
}

/// A value of an annotation.
#[derive(Debug)]
pub(super) enum Note {
    Text(String),
    Number(i64),
}

impl<'a> Event<'a> {
    /// An event without flows and annotations.
    pub(super) fn new(kind: EventType, track: u64, ns: u64, name: &'a str, category: &'static str) -> Self {
        Self { kind, track, ns, name, category, notes: Vec::new(), flows: (Vec::new(), Vec::new()), value: None }
    }

    /// The end of the innermost slice of a track.
    pub(super) fn end(track: u64, ns: u64) -> Self {
        Self::new(EventType::SliceEnd, track, ns, "", "")
    }

    pub(super) fn note(mut self, name: &'static str, text: impl Into<Option<String>>) -> Self {
        self.notes.extend(text.into().filter(|text| !text.is_empty()).map(|text| (name, Note::Text(text))));
        self
    }
}

/// Text of a dump as a viewer may show it.
pub(super) fn shown(raw: &str) -> String {
    match raw.char_indices().nth(LONGEST) {
        Some((end, _)) => {
            format!("{}… ({} more characters)", plain::line(&raw[..end]), raw[end..].chars().count())
        }
        None => plain::line(raw).into_owned(),
    }
}

/// What the trace holds so far.
pub(super) struct Packets<'o> {
    out: &'o mut dyn Write,
    buffer: Vec<u8>,
    names: HashMap<String, u64>,
    /// Categories and names of annotations, which are words of this module.
    words: HashMap<(&'static str, bool), u64>,
    pub(super) written: u64,
    pub(super) bytes: u64,
}

impl<'o> Packets<'o> {
    pub(super) fn new(out: &'o mut dyn Write) -> Self {
        Self { out, buffer: Vec::new(), names: HashMap::new(), words: HashMap::new(), written: 0, bytes: 0 }
    }

    /// Writes a track's description.
    pub(super) fn track(&mut self, track: TrackDescriptor) -> io::Result<()> {
        self.put(TracePacket { track_descriptor: Some(track), ..TracePacket::default() })
    }

    /// Writes an event of a track that is described.
    pub(super) fn event(&mut self, event: Event<'_>) -> io::Result<()> {
        let mut new = InternedData::default();
        let mut made = TrackEvent {
            r#type: Some(event.kind as i32),
            track_uuid: Some(event.track),
            counter_value: event.value,
            flow_ids: event.flows.0,
            terminating_flow_ids: event.flows.1,
            ..TrackEvent::default()
        };
        if !event.name.is_empty() {
            (made.name_iid, made.name) = self.name(event.name, &mut new);
        }
        if !event.category.is_empty() {
            made.category_iids.push(self.word(event.category, true, &mut new));
        }
        for (name, note) in event.notes {
            let mut annotation =
                DebugAnnotation { name_iid: Some(self.word(name, false, &mut new)), ..DebugAnnotation::default() };
            match note {
                Note::Text(text) => annotation.string_value = Some(shown(&text)),
                Note::Number(number) => annotation.int_value = Some(number),
            }
            made.debug_annotations.push(annotation);
        }
        let interned = (new != InternedData::default()).then_some(new);
        self.put(TracePacket {
            timestamp: Some(event.ns),
            track_event: Some(made),
            interned_data: interned,
            ..TracePacket::default()
        })
    }

    fn name(&mut self, name: &str, new: &mut InternedData) -> (Option<u64>, Option<String>) {
        let name = shown(name);
        if let Some(known) = self.names.get(&name) {
            return (Some(*known), None);
        }
        if self.names.len() >= MOST_NAMES {
            return (None, Some(name));
        }
        let iid = self.names.len() as u64 + 1;
        new.event_names.push(Interned { iid: Some(iid), name: Some(name.clone()) });
        self.names.insert(name, iid);
        (Some(iid), None)
    }

    fn word(&mut self, word: &'static str, category: bool, new: &mut InternedData) -> u64 {
        let next = self.words.len() as u64 + 1;
        *self.words.entry((word, category)).or_insert_with(|| {
            let list = if category { &mut new.event_categories } else { &mut new.debug_annotation_names };
            list.push(Interned { iid: Some(next), name: Some(word.to_owned()) });
            next
        })
    }

    fn put(&mut self, packet: TracePacket) -> io::Result<()> {
        let first = self.written == 0;
        let packet = TracePacket {
            trusted_packet_sequence_id: Some(SEQUENCE),
            sequence_flags: Some(if first { CLEARED | NEEDED } else { NEEDED }),
            first_packet_on_sequence: first.then_some(true),
            ..packet
        };
        self.buffer.clear();
        self.buffer.reserve(packet.encoded_len() + 16);
        message::encode(PACKET, &packet, &mut self.buffer);
        self.written += 1;
        self.bytes += self.buffer.len() as u64;
        self.out.write_all(&self.buffer)
    }
}
