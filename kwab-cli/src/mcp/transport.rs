//! The lines of the protocol, with a bound on how many requests wait for their answers.
//!
//! `rmcp` reads requests as fast as they come and keeps each answer until it is written. Here reading waits while
//! [`MOST_WAITING`] requests are unanswered, so that a client that takes no answers costs no memory. At the end of the
//! input, what was asked is answered before the end is told; a client that no longer reads ends the server at once.

use std::collections::HashSet;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ErrorData, JsonRpcMessage, RequestId, ServerJsonRpcMessage,
};
use rmcp::transport::Transport;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::watch;
use tokio::time::Instant;

/// The longest request, in bytes.
pub(super) const LONGEST_REQUEST: usize = 1 << 20;

/// Requests that may be unanswered at a time.
pub(super) const MOST_WAITING: usize = 64;

/// The longest wait for the last answers.
const LONGEST_PATIENCE: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// How long so many calls take at most, and a second to write their answers.
fn patience((timeout, jobs): (Duration, usize), waiting: usize) -> Duration {
    let rounds = u32::try_from(waiting.div_ceil(jobs.max(1))).unwrap_or(u32::MAX);
    timeout.saturating_mul(rounds).saturating_add(Duration::from_secs(1)).min(LONGEST_PATIENCE)
}

/// How the answers stand.
#[derive(Debug, Clone, Copy, Default)]
struct State {
    waiting: usize,
    /// The reader of the answers has gone.
    is_gone: bool,
}

/// The requests that wait for an answer.
#[derive(Debug)]
struct Open {
    ids: Mutex<HashSet<RequestId>>,
    state: watch::Sender<State>,
}

impl Open {
    /// Whether the request is new: an id that is in use belongs to another.
    fn begin(&self, id: &RequestId) -> bool {
        let mut ids = self.ids.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = ids.insert(id.clone());
        self.state.send_modify(|state| state.waiting = ids.len());
        is_new
    }

    fn end(&self, id: &RequestId) {
        let mut ids = self.ids.lock().unwrap_or_else(PoisonError::into_inner);
        ids.remove(id);
        self.state.send_modify(|state| state.waiting = ids.len());
    }

    /// Waits until at most `most` requests are unanswered; `false` when no answer can be written any more.
    async fn until(&self, most: usize) -> bool {
        let mut state = self.state.subscribe();
        let waited = state.wait_for(|state| state.is_gone || state.waiting <= most).await;
        waited.is_ok_and(|state| !state.is_gone)
    }
}

/// A transport that reads no further while too many requests are unanswered.
#[derive(Debug)]
pub(super) struct Bounded<T> {
    inner: T,
    open: Arc<Open>,
    /// When the wait for the last answers ends, once the input has.
    ended: Option<Instant>,
    /// The longest that one call takes, and how many are worked out at a time.
    pace: (Duration, usize),
    /// Requests that were too long to be read.
    long: UnboundedReceiver<RequestId>,
}

impl<T> Bounded<T> {
    /// Lets each call that was asked before the end of the input take so long, so many of them at a time. What is told
    /// of `long` is refused.
    pub(super) fn new(inner: T, pace: (Duration, usize), long: UnboundedReceiver<RequestId>) -> Self {
        let open = Open { ids: Mutex::default(), state: watch::Sender::new(State::default()) };
        Self { inner, open: Arc::new(open), ended: None, pace, long }
    }
}

impl<T: Transport<RoleServer, Error = io::Error>> Bounded<T> {
    /// Answers a request that was too long; `None` when no answer can be written any more.
    async fn refuse(&mut self, id: RequestId) -> Option<()> {
        let text = format!("a request has at most {LONGEST_REQUEST} bytes; this one was not read");
        let error = ServerJsonRpcMessage::error(ErrorData::invalid_request(text, None), Some(id));
        self.inner.send(error).await.ok()
    }
}

impl<T: Transport<RoleServer, Error = io::Error>> Transport<RoleServer> for Bounded<T> {
    type Error = io::Error;

    fn send(&mut self, message: ServerJsonRpcMessage) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let answered = match &message {
            JsonRpcMessage::Response(answer) => Some(answer.id.clone()),
            JsonRpcMessage::Error(error) => error.id.clone(),
            _ => None,
        };
        let open = Arc::clone(&self.open);
        let sent = self.inner.send(message);
        async move {
            let sent = sent.await;
            if sent.is_err() {
                open.state.send_modify(|state| state.is_gone = true);
            }
            if let Some(id) = answered {
                open.end(&id);
            }
            sent
        }
    }

    /// May be dropped at any `await`: nothing that was read is held across one, but by `inner`.
    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        loop {
            while let Ok(id) = self.long.try_recv() {
                self.refuse(id).await?;
            }
            if let Some(end) = self.ended {
                // Whether all was answered or the time is over, the end is told.
                let _ = tokio::time::timeout_at(end, self.open.until(0)).await;
                return None;
            }
            if !self.open.until(MOST_WAITING - 1).await {
                return None;
            }
            // At the end of the channel, which is that of the input, only the input tells it.
            let received = tokio::select! {
                Some(id) = self.long.recv() => {
                    self.refuse(id).await?;
                    continue;
                }
                received = self.inner.receive() => received,
            };
            let Some(message) = received else {
                let waiting = self.open.state.borrow().waiting;
                self.ended = Some(Instant::now() + patience(self.pace, waiting));
                continue;
            };
            match &message {
                JsonRpcMessage::Request(request) if !self.open.begin(&request.id) => {
                    let text = "the id of this request is that of another, which is not answered yet";
                    // The other request's answer has this id too; an error without one is told apart.
                    let error = ServerJsonRpcMessage::error(ErrorData::invalid_request(text, None), None);
                    self.inner.send(error).await.ok()?;
                    continue;
                }
                JsonRpcMessage::Notification(notification) => {
                    if let ClientNotification::CancelledNotification(cancelled) = &notification.notification
                        && let Some(id) = &cancelled.params.request_id
                    {
                        self.open.end(id);
                    }
                }
                _ => {}
            }
            return Some(message);
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        self.inner.close().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_the_input_waits_for_as_many_rounds_as_the_calls_need() {
        let second = Duration::from_secs;
        let told = [(0, 4), (1, 4), (4, 4), (5, 4), (64, 1), (3, 0)];
        let waits = told.map(|(waiting, jobs)| patience((second(30), jobs), waiting));
        assert_eq!(waits, [1, 31, 31, 61, 1921, 91].map(second));
        assert_eq!(patience((Duration::MAX, 1), 64), LONGEST_PATIENCE);
    }
}
