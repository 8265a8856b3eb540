//! Finds the requests that are too long to be read, so that each is answered all the same.
//!
//! `rmcp` drops a line that is longer than its limit without a word, and the client waits for an answer until it gives
//! up. [`Watched`] hands every byte on and looks for the id of such a request meanwhile: a member of the outermost
//! object, wherever in the line it stands. A line without one is dropped, as what is not JSON is.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use rmcp::model::RequestId;
use tokio::io::{AsyncRead, ReadBuf};
use tokio::sync::mpsc::UnboundedSender;

/// Bytes of a member of the outermost object that are kept: an id is shorter.
const LONGEST_MEMBER: usize = 256;

/// A reader that tells the ids of requests of more than so many bytes.
#[derive(Debug)]
pub(super) struct Watched<R> {
    inner: R,
    most: usize,
    line: Line,
    told: UnboundedSender<RequestId>,
}

impl<R> Watched<R> {
    /// Watches lines; the newline counts.
    pub(super) fn new(inner: R, most: usize, told: UnboundedSender<RequestId>) -> Self {
        Self { inner, most, line: Line::default(), told }
    }

    fn watch(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.line.take(*byte);
            if *byte == b'\n' {
                let line = std::mem::take(&mut self.line);
                if let Some(id) = line.id.filter(|_| line.length > self.most) {
                    // A transport that is closed answers nothing.
                    let _ = self.told.send(id);
                }
            }
        }
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for Watched<R> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, out: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = out.filled().len();
        ready!(Pin::new(&mut this.inner).poll_read(cx, out))?;
        this.watch(&out.filled()[before..]);
        Poll::Ready(Ok(()))
    }
}

/// What is known of a line so far.
#[derive(Debug, Default)]
struct Line {
    length: usize,
    /// Objects and arrays that are open.
    depth: usize,
    in_string: bool,
    is_escaped: bool,
    /// The member of the outermost object that comes in.
    member: Vec<u8>,
    id: Option<RequestId>,
}

impl Line {
    fn take(&mut self, byte: u8) {
        self.length = self.length.saturating_add(1);
        if self.in_string {
            self.keep(byte);
            match byte {
                _ if self.is_escaped => self.is_escaped = false,
                b'\\' => self.is_escaped = true,
                b'"' => self.in_string = false,
                _ => {}
            }
            return;
        }
        match byte {
            b'{' | b'[' => self.depth = self.depth.saturating_add(1),
            b'}' | b']' => {
                self.end();
                self.depth = self.depth.saturating_sub(1);
            }
            b',' => self.end(),
            _ => {
                self.in_string = byte == b'"';
                self.keep(byte);
            }
        }
    }

    fn keep(&mut self, byte: u8) {
        if self.depth == 1 && self.member.len() < LONGEST_MEMBER {
            self.member.push(byte);
        }
    }

    /// A member of the outermost object has come in.
    fn end(&mut self) {
        if self.depth != 1 {
            return;
        }
        let member = std::mem::take(&mut self.member);
        let value = std::str::from_utf8(&member).ok().and_then(|text| text.trim().strip_prefix("\"id\""));
        let value = value.and_then(|rest| rest.trim_start().strip_prefix(':'));
        if let Some(id) = value.and_then(|value| serde_json::from_str(value).ok()) {
            self.id = Some(id);
        }
    }
}

#[cfg(test)]
mod tests {
    use rmcp::model::NumberOrString;
    use tokio::sync::mpsc::unbounded_channel;

    use super::*;

    /// The ids that are told of a text, read in pieces of so many bytes.
    fn told(text: &str, piece: usize) -> Vec<RequestId> {
        let (sender, mut receiver) = unbounded_channel();
        let mut watched = Watched::new((), 64, sender);
        text.as_bytes().chunks(piece).for_each(|bytes| watched.watch(bytes));
        std::iter::from_fn(|| receiver.try_recv().ok()).collect()
    }

    #[test]
    fn the_id_of_a_long_request_is_found_wherever_it_stands() {
        let long = "x".repeat(100);
        let number = |id| vec![NumberOrString::Number(id)];
        for (line, ids) in [
            (format!("{{\"id\":7,\"method\":\"{long}\"}}"), number(7)),
            (
                format!("{{\"method\":\"{long}\", \"params\":{{\"id\":3,\"a\":[{{\"id\":4}}]}} , \"id\" : 8 }}"),
                number(8),
            ),
            (
                format!("{{\"method\":\"\\\"id\\\":5,{long}\",\"id\":\"a}}\"}}"),
                vec![NumberOrString::String("a}".into())],
            ),
            (format!("{{\"method\":\"{long}\"}}"), vec![]),
            (format!("{{\"id\":{{\"id\":1}},\"method\":\"{long}\"}}"), vec![]),
            (format!("[{{\"id\":1}}] {long}"), vec![]),
            ("{\"id\":9}".to_owned(), vec![]),
        ] {
            for piece in [1, 7, 1000] {
                assert_eq!(told(&format!("{line}\n"), piece), ids, "{line}");
            }
            let both = format!("{line}\n{{\"id\":10,\"x\":\"{long}\"}}\n");
            assert_eq!(told(&both, 5).last(), Some(&NumberOrString::Number(10)), "{line}");
        }
    }
}
