//! The connection: commands and their answers, events and their listeners.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt::{self, Debug, Formatter};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use thiserror::Error;
use tokio::net::TcpStream;
use tokio::sync::{mpsc, oneshot};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{self, Message};

use super::protocol::{AttachToTarget, DetachedFromTarget, Kind};

/// Commands that wait to be sent.
const OUTGOING: usize = 64;

/// Bytes of a message at most: a picture of a page is one, in base64.
const MESSAGE: usize = 512 * 1024 * 1024;

/// How a browser says that a session is not there any more.
const NO_SESSION: i64 = -32001;

/// Why a command has no answer.
#[derive(Debug, Error)]
pub(in crate::web) enum CdpError {
    /// The connection, or the page, has ended.
    #[error("the connection has ended")]
    Ended,
    /// The browser refuses.
    #[error("{message} ({code})")]
    Refused {
        /// The protocol's number of the fault.
        code: i64,
        /// The browser's message.
        message: String,
    },
    /// The answer is not as the protocol describes it.
    #[error("the answer can't be read: {0}")]
    Malformed(#[from] serde_json::Error),
}

/// A command: its method, and its answer.
pub(in crate::web) trait Command: Serialize {
    /// As the protocol calls it.
    const METHOD: &'static str;
    /// The used part of the answer.
    type Answer: DeserializeOwned;
}

/// An event, as it was sent.
pub(in crate::web) struct Event<'a> {
    method: &'a str,
    params: Option<&'a RawValue>,
}

impl Event<'_> {
    /// The event, if it is of this kind.
    pub(in crate::web) fn read<K: Kind>(&self) -> Option<K> {
        if self.method != K::METHOD {
            return None;
        }
        let read = serde_json::from_str(self.params?.get());
        read.inspect_err(|error| tracing::warn!(event = K::METHOD, %error, "the browser's event can't be read")).ok()
    }
}

/// Sends commands to the browser, or to one of its pages, and hears its events.
#[derive(Debug, Clone)]
pub(in crate::web) struct Client {
    shared: Arc<Shared>,
    /// The page's session; the browser itself has none.
    session: Option<Arc<str>>,
}

/// The state that the clients of a connection share with its driver.
struct Shared {
    outgoing: mpsc::Sender<String>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    over: bool,
    /// The last number given to a command or a listener.
    number: u64,
    pending: HashMap<u64, Pending>,
    listeners: HashMap<u64, Listener>,
}

struct Pending {
    session: Option<Arc<str>>,
    answer: oneshot::Sender<Result<Box<RawValue>, CdpError>>,
}

struct Listener {
    session: Option<Arc<str>>,
    hear: Arc<Mutex<Hear>>,
}

/// Called with each event.
type Hear = dyn FnMut(&Event<'_>) + Send;

/// A listener that is called until this is dropped.
#[must_use]
#[derive(Debug)]
pub(in crate::web) struct Listening(Arc<Shared>, u64);

/// Sends and receives the messages. When it is dropped, the connection has ended: commands that wait fail, and the
/// listeners are dropped.
pub(in crate::web) struct Driver {
    shared: Arc<Shared>,
    outgoing: mpsc::Receiver<String>,
    sink: SplitSink<WebSocketStream<TcpStream>, Message>,
    stream: SplitStream<WebSocketStream<TcpStream>>,
}

/// A command that is sent.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Sent<'a, C> {
    id: u64,
    method: &'static str,
    params: &'a C,
    #[serde(skip_serializing_if = "Option::is_none")]
    session_id: Option<&'a str>,
}

/// An answer, which has an id, or an event, which has a method.
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

/// Connects to a browser. `address` is that of its WebSocket, `ws://HOST:PORT/…`.
///
/// # Errors
/// It does not answer there, or not as a WebSocket.
pub(in crate::web) async fn connect(address: &str) -> io::Result<(Client, Driver)> {
    let host = address.split('/').nth(2).unwrap_or_default();
    let stream = TcpStream::connect(host).await?;
    stream.set_nodelay(true)?;
    let config = WebSocketConfig::default().max_message_size(Some(MESSAGE)).max_frame_size(Some(MESSAGE));
    let (socket, _) = tokio_tungstenite::client_async_with_config(address, stream, Some(config)).await.map_err(
        |error| match error {
            tungstenite::Error::Io(error) => error,
            error => io::Error::other(error),
        },
    )?;
    let (send, outgoing) = mpsc::channel(OUTGOING);
    let shared = Arc::new(Shared { outgoing: send, state: Mutex::default() });
    let (sink, stream) = socket.split();
    let client = Client { shared: Arc::clone(&shared), session: None };
    Ok((client, Driver { shared, outgoing, sink, stream }))
}

impl Client {
    /// Sends a command and waits for its answer.
    ///
    /// # Errors
    /// The browser refuses, or the connection or the page has ended.
    pub(in crate::web) async fn execute<C: Command>(&self, command: C) -> Result<C::Answer, CdpError> {
        let (tell, told) = oneshot::channel();
        let id = {
            let mut state = self.shared.state();
            if state.over {
                return Err(CdpError::Ended);
            }
            let id = state.number();
            state.pending.insert(id, Pending { session: self.session.clone(), answer: tell });
            id
        };
        // Also if this future is dropped before its answer arrives.
        let _forgotten = Forgotten(&self.shared, id);
        let session_id = self.session.as_deref();
        let text = serde_json::to_string(&Sent { id, method: C::METHOD, params: &command, session_id })?;
        self.shared.outgoing.send(text).await.map_err(|_| CdpError::Ended)?;
        let answer = told.await.map_err(|_| CdpError::Ended)??;
        Ok(serde_json::from_str(answer.get())?)
    }

    /// Attaches to a page: a client of its own session.
    ///
    /// # Errors
    /// It is gone.
    pub(in crate::web) async fn attach(&self, target: &str) -> Result<Self, CdpError> {
        let attached = self.execute(AttachToTarget { target_id: target, flatten: true }).await?;
        Ok(Self { shared: Arc::clone(&self.shared), session: Some(attached.session_id.into()) })
    }

    /// Calls `hear` for each event from now on, until the returned guard is dropped or the page or the connection ends.
    ///
    /// `hear` runs in the task of the driver: it must not block.
    pub(in crate::web) fn listen(&self, hear: impl FnMut(&Event<'_>) + Send + 'static) -> Listening {
        let mut state = self.shared.state();
        let number = state.number();
        if !state.over {
            let listener = Listener { session: self.session.clone(), hear: Arc::new(Mutex::new(hear)) };
            state.listeners.insert(number, listener);
        }
        Listening(Arc::clone(&self.shared), number)
    }
}

/// A command that is not waited for any more.
struct Forgotten<'a>(&'a Shared, u64);

impl Drop for Forgotten<'_> {
    fn drop(&mut self) {
        self.0.state().pending.remove(&self.1);
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        // Dropped without the lock: a value that a listener holds may take it when it is dropped.
        let listener = self.0.state().listeners.remove(&self.1);
        drop(listener);
    }
}

impl State {
    fn number(&mut self) -> u64 {
        self.number += 1;
        self.number
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Handles a message of the browser.
    fn receive(&self, text: &str) {
        let received: Received<'_> = match serde_json::from_str(text) {
            Ok(received) => received,
            Err(error) => return tracing::warn!(%error, "a message of the browser can't be read"),
        };
        let Some(id) = received.id else {
            let Some(method) = &received.method else { return };
            return self.happened(received.session_id.as_deref(), &Event { method, params: received.params });
        };
        let Some(pending) = self.state().pending.remove(&id) else { return };
        let answer = match received.error {
            None => received.result.ok_or(CdpError::Ended),
            Some(Refusal { code: NO_SESSION, .. }) => Err(CdpError::Ended),
            Some(Refusal { code, message }) => Err(CdpError::Refused { code, message }),
        };
        // The caller may have stopped waiting.
        let _ = pending.answer.send(answer);
    }

    fn happened(&self, session: Option<&str>, event: &Event<'_>) {
        let listeners: Vec<_> = {
            let state = self.state();
            let mut heard: Vec<_> =
                state.listeners.iter().filter(|(_, listener)| listener.session.as_deref() == session).collect();
            heard.sort_unstable_by_key(|(number, _)| **number);
            heard.into_iter().map(|(_, listener)| Arc::clone(&listener.hear)).collect()
        };
        for hear in listeners {
            hear.lock().unwrap_or_else(PoisonError::into_inner)(event);
        }
        if let Some(detached) = event.read::<DetachedFromTarget>() {
            self.end(|session| session.as_deref() == Some(detached.session_id.as_str()));
        }
    }

    /// Drops the commands and listeners of the sessions for which `is_over` is true.
    fn end(&self, is_over: impl Fn(&Option<Arc<str>>) -> bool) {
        let mut state = self.state();
        let pending: Vec<_> = state.pending.extract_if(|_, pending| is_over(&pending.session)).collect();
        let listeners: Vec<_> = state.listeners.extract_if(|_, listener| is_over(&listener.session)).collect();
        drop(state);
        // Dropped without the lock: a value that a listener holds may take it when it is dropped.
        drop((pending, listeners));
    }
}

impl Driver {
    /// Until the connection is over.
    pub(in crate::web) async fn run(&mut self) {
        let Self { shared, outgoing, sink, stream } = self;
        // Neither waits for the other: a browser may take nothing while it has much to say.
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
                    Message::Binary(_) | Message::Ping(_) | Message::Pong(_) | Message::Frame(_) => {}
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
