//! The connection to a browser, with its pending commands and its event listeners.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt::{self, Debug, Formatter};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use thiserror::Error;
use tokio::net::TcpStream;
use tokio::sync::{mpsc, oneshot};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{self, Message};

use super::protocol::{AttachToTarget, DetachedFromTarget, EventKind};

/// The capacity of the queue of commands to send.
const OUTGOING_CAPACITY: usize = 64;

/// The largest message in bytes. A screenshot is one message, in base64.
const MAX_MESSAGE_BYTES: usize = 512 * 1024 * 1024;

/// The error code for a session that no longer exists.
const NO_SESSION: i64 = -32001;

/// The error of a command.
#[derive(Debug, Error)]
pub(in crate::web) enum CdpError {
    #[error("the connection has ended")]
    Ended,
    /// The browser answered with an error.
    #[error("{message} ({code})")]
    Refused {
        /// The protocol's error code.
        code: i64,
        message: String,
    },
    /// The answer does not match the protocol's description.
    #[error("invalid answer: {0}")]
    Malformed(#[from] serde_json::Error),
}

/// A command of the protocol.
pub(in crate::web) trait Command: Serialize {
    /// The method's name in the protocol.
    const METHOD: &'static str;
    /// The fields of the answer that are used.
    type Answer: DeserializeOwned;
}

/// An event with unparsed parameters.
pub(in crate::web) struct Event<'a> {
    method: &'a str,
    params: Option<&'a RawValue>,
}

impl Event<'_> {
    /// Parses the event if it is of the kind `K`.
    pub(in crate::web) fn read<K: EventKind>(&self) -> Option<K> {
        if self.method != K::METHOD {
            return None;
        }
        let parsed = serde_json::from_str(self.params?.get());
        parsed
            .inspect_err(
                |error| tracing::warn!(event = K::METHOD, %error, "invalid event from the browser"),
            )
            .ok()
    }
}

/// A client of the browser or of one of its pages: sends commands and listens to events.
#[derive(Debug, Clone)]
pub(in crate::web) struct Client {
    shared: Arc<Shared>,
    /// `None` for the browser itself.
    session: Option<Arc<str>>,
}

/// The state that a connection's clients share with its driver.
struct Shared {
    outgoing: mpsc::Sender<String>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    over: bool,
    /// The number of the newest command or listener.
    last_number: u64,
    pending: HashMap<u64, Pending>,
    listeners: HashMap<u64, Listener>,
}

struct Pending {
    session: Option<Arc<str>>,
    answer: oneshot::Sender<Result<Box<RawValue>, CdpError>>,
}

struct Listener {
    session: Option<Arc<str>>,
    handler: Arc<Mutex<EventHandler>>,
}

type EventHandler = dyn FnMut(&Event<'_>) + Send;

/// Keeps a listener registered until dropped.
#[must_use]
#[derive(Debug)]
pub(in crate::web) struct ListenerGuard(Arc<Shared>, u64);

/// Sends and receives a connection's messages. Dropping the driver ends the connection: pending
/// commands fail and listeners are dropped.
pub(in crate::web) struct Driver {
    shared: Arc<Shared>,
    outgoing: mpsc::Receiver<String>,
    sink: SplitSink<WebSocketStream<TcpStream>, Message>,
    stream: SplitStream<WebSocketStream<TcpStream>>,
}

/// A command as it is serialized.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Sent<'a, C> {
    id: u64,
    method: &'static str,
    params: &'a C,
    #[serde(skip_serializing_if = "Option::is_none")]
    session_id: Option<&'a str>,
}

/// A received message: an answer has an id, an event has a method.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Received<'a> {
    id: Option<u64>,
    #[serde(borrow)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow)]
    session_id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
    result: Option<Box<RawValue>>,
    error: Option<Refusal>,
}

#[derive(Deserialize)]
struct Refusal {
    code: i64,
    message: String,
}

/// Connects to a browser's WebSocket at `address`, as in `ws://HOST:PORT/…`.
///
/// # Errors
/// The connection or the WebSocket handshake failed.
pub(in crate::web) async fn connect(address: &str) -> io::Result<(Client, Driver)> {
    let host = address.split('/').nth(2).unwrap_or_default();
    let stream = TcpStream::connect(host).await?;
    stream.set_nodelay(true)?;
    let config = WebSocketConfig::default()
        .max_message_size(Some(MAX_MESSAGE_BYTES))
        .max_frame_size(Some(MAX_MESSAGE_BYTES));
    let (socket, _) = tokio_tungstenite::client_async_with_config(address, stream, Some(config))
        .await
        .map_err(|error| match error {
            tungstenite::Error::Io(error) => error,
            error => io::Error::other(error),
        })?;
    let (send, outgoing) = mpsc::channel(OUTGOING_CAPACITY);
    let shared = Arc::new(Shared { outgoing: send, state: Mutex::default() });
    let (sink, stream) = socket.split();
    let client = Client { shared: Arc::clone(&shared), session: None };
    Ok((client, Driver { shared, outgoing, sink, stream }))
}

impl Client {
    /// Sends a command and waits for its answer.
    ///
    /// # Errors
    /// The browser answered with an error, or the connection or the page has ended.
    pub(in crate::web) async fn execute<C: Command>(
        &self,
        command: C,
    ) -> Result<C::Answer, CdpError> {
        let (sender, receiver) = oneshot::channel();
        let id = {
            let mut state = self.shared.state();
            if state.over {
                return Err(CdpError::Ended);
            }
            let id = state.next_number();
            state.pending.insert(id, Pending { session: self.session.clone(), answer: sender });
            id
        };
        // Removes the pending entry also when this future is dropped before the answer arrives.
        let _forgotten = PendingGuard(&self.shared, id);
        let session_id = self.session.as_deref();
        let text =
            serde_json::to_string(&Sent { id, method: C::METHOD, params: &command, session_id })?;
        self.shared.outgoing.send(text).await.map_err(|_| CdpError::Ended)?;
        let answer = receiver.await.map_err(|_| CdpError::Ended)??;
        Ok(serde_json::from_str(answer.get())?)
    }

    /// Attaches to a page and returns a client for the new session.
    ///
    /// # Errors
    /// The page no longer exists.
    pub(in crate::web) async fn attach(&self, target: &str) -> Result<Self, CdpError> {
        let attached = self.execute(AttachToTarget { target_id: target, flatten: true }).await?;
        Ok(Self { shared: Arc::clone(&self.shared), session: Some(attached.session_id.into()) })
    }

    /// Calls `handler` for each event until the returned [`ListenerGuard`] is dropped, or the page
    /// or the connection ends.
    ///
    /// `handler` runs on the driver's task and must not block.
    pub(in crate::web) fn listen(
        &self,
        handler: impl FnMut(&Event<'_>) + Send + 'static,
    ) -> ListenerGuard {
        let mut state = self.shared.state();
        let number = state.next_number();
        if !state.over {
            let listener =
                Listener { session: self.session.clone(), handler: Arc::new(Mutex::new(handler)) };
            state.listeners.insert(number, listener);
        }
        ListenerGuard(Arc::clone(&self.shared), number)
    }
}

/// Removes a pending command when its caller stops waiting.
struct PendingGuard<'a>(&'a Shared, u64);

impl Drop for PendingGuard<'_> {
    fn drop(&mut self) {
        self.0.state().pending.remove(&self.1);
    }
}

impl Drop for ListenerGuard {
    fn drop(&mut self) {
        // Dropped without the lock, because a value owned by the listener may lock the state when
        // dropped.
        let listener = self.0.state().listeners.remove(&self.1);
        drop(listener);
    }
}

impl State {
    fn next_number(&mut self) -> u64 {
        self.last_number += 1;
        self.last_number
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Handles a message from the browser.
    fn receive(&self, text: &str) {
        let received: Received<'_> = match serde_json::from_str(text) {
            Ok(received) => received,
            Err(error) => return tracing::warn!(%error, "invalid message from the browser"),
        };
        let Some(id) = received.id else {
            let Some(method) = &received.method else { return };
            return self.dispatch_event(
                received.session_id.as_deref(),
                &Event { method, params: received.params },
            );
        };
        let Some(pending) = self.state().pending.remove(&id) else { return };
        let answer = match received.error {
            None => {
                received.result.ok_or_else(|| serde_json::Error::missing_field("result").into())
            }
            Some(Refusal { code: NO_SESSION, .. }) => Err(CdpError::Ended),
            Some(Refusal { code, message }) => Err(CdpError::Refused { code, message }),
        };
        // The caller may have stopped waiting.
        let _ = pending.answer.send(answer);
    }

    fn dispatch_event(&self, session: Option<&str>, event: &Event<'_>) {
        let listeners: Vec<_> = {
            let state = self.state();
            let mut matching: Vec<_> = state
                .listeners
                .iter()
                .filter(|(_, listener)| listener.session.as_deref() == session)
                .collect();
            matching.sort_unstable_by_key(|(number, _)| **number);
            matching.into_iter().map(|(_, listener)| Arc::clone(&listener.handler)).collect()
        };
        for handler in listeners {
            handler.lock().unwrap_or_else(PoisonError::into_inner)(event);
        }
        if let Some(detached) = event.read::<DetachedFromTarget>() {
            self.end(|session| session.as_deref() == Some(detached.session_id.as_str()));
        }
    }

    /// Drops the commands and listeners of the sessions for which `is_over` is true.
    fn end(&self, is_over: impl Fn(&Option<Arc<str>>) -> bool) {
        let mut state = self.state();
        let pending: Vec<_> =
            state.pending.extract_if(|_, pending| is_over(&pending.session)).collect();
        let listeners: Vec<_> =
            state.listeners.extract_if(|_, listener| is_over(&listener.session)).collect();
        drop(state);
        // Dropped without the lock, because a value owned by a listener may lock the state when
        // dropped.
        drop((pending, listeners));
    }
}

impl Driver {
    /// Runs until the connection closes.
    pub(in crate::web) async fn run(&mut self) {
        let Self { shared, outgoing, sink, stream } = self;
        // Runs concurrently with `receives`: a browser may stop reading while it has much to send.
        let sends = async {
            while let Some(text) = outgoing.recv().await {
                if sink.send(Message::text(text)).await.is_err() {
                    return;
                }
            }
        };
        let receives = async {
            while let Some(Ok(message)) = stream.next().await {
                match message {
                    Message::Text(text) => shared.receive(&text),
                    Message::Close(_) => return,
                    Message::Binary(_)
                    | Message::Ping(_)
                    | Message::Pong(_)
                    | Message::Frame(_) => {}
                }
            }
        };
        tokio::select! {
            () = sends => {}
            () = receives => {}
        }
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        self.shared.state().over = true;
        self.shared.end(|_| true);
    }
}

impl Debug for Shared {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let state = self.state();
        let mut shown = formatter.debug_struct("Connection");
        shown.field("pending", &state.pending.len()).field("listeners", &state.listeners.len());
        shown.finish_non_exhaustive()
    }
}
