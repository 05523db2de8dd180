//! A scripted model server on loopback that speaks the providers' real protocols, byte by byte as
//! the test wants.
//!
//! ```no_run
//! use holdpoint_tests::model_server::{ModelServer, Reply};
//!
//! let server = ModelServer::start();
//! server
//!     .reply(Reply::calls([("shell", r#"{"command":"true"}"#)]))
//!     .reply(Reply::text(["All ", "done."]));
//! // ... run the program with OPENAI_BASE_URL = server.base_url() ...
//! assert_eq!(server.request(0).body["messages"][0]["role"], "system");
//! server.assert_no_violations();
//! ```
//!
//! One script works for every protocol of a provider; the path of the request decides which one is
//! spoken. The module [`responses`] has the replies of one more, for hosted agents.
//!
//! The server uses real sockets with one reading and one writing thread per connection, and
//! HTTP/1.1 with chunked bodies. Tests wait for events, such as a request, a gate or the end of a
//! connection, and never for time. Each request is checked by the rules of the strictest provider;
//! a request that breaks them is answered with HTTP 400 and recorded in
//! [`ModelServer::violations`].
#![allow(clippy::expect_used, clippy::panic, reason = "test support: a failure ends the test")]

use std::collections::VecDeque;
use std::io::BufReader;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use holdpoint_session::testing::patience;
use rustix::net::sockopt::set_socket_linger;
use serde_json::Value;

pub mod anthropic;
pub mod gemini;
mod http;
pub mod ollama;
pub mod openai;
mod reply;
pub mod responses;
mod wire;

pub use reply::Reply;
pub use wire::Wire;

/// A scripted model server, which stops when dropped.
pub struct ModelServer {
    address: SocketAddr,
    shared: Arc<Shared>,
}

/// A request as it was received.
#[derive(Debug, Clone)]
pub struct Request {
    /// The time at which its last byte was read.
    pub at: Instant,
    /// The path with its query, such as `/v1/chat/completions`; for a request to a proxy, the whole
    /// URL.
    pub path: String,
    /// The headers, with names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body as JSON, or as a string if it is not JSON.
    pub body: Value,
    /// The number of its connection, counted from 0.
    pub connection: usize,
}

impl Request {
    /// The value of a header.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// The user's last prompt, on any wire. `None` if the last message holds only tool results.
    #[must_use]
    pub fn prompt(&self) -> Option<String> {
        Wire::for_path(&self.path)?.prompt(&self.body)
    }

    /// The texts of the messages with this role, oldest first.
    #[must_use]
    pub fn texts(&self, role: &str) -> Vec<String> {
        let messages = self.body["messages"].as_array().map_or(&[][..], Vec::as_slice);
        messages
            .iter()
            .filter(|message| message["role"] == role)
            .map(|message| openai::text(&message["content"]))
            .collect()
    }
}

type Answer = Box<dyn FnMut(&Request) -> Reply + Send>;

#[derive(Default)]
struct State {
    queue: VecDeque<Reply>,
    answer: Option<Answer>,
    requests: Vec<Request>,
    /// The time at which the client ended each connection.
    ended: Vec<Option<Instant>>,
    gates: Vec<bool>,
    violations: Vec<String>,
    stopped: bool,
}

/// The state that the server's threads share.
#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let result = change(&mut self.lock());
        self.changed.notify_all();
        result
    }

    /// Waits until `ready` returns a value, and fails the test after [`patience`].
    fn wait<T>(&self, what: &str, mut ready: impl FnMut(&State) -> Option<T>) -> T {
        let until = Instant::now() + patience();
        let mut state = self.lock();
        loop {
            if let Some(value) = ready(&state) {
                return value;
            }
            let Some(left) = until.checked_duration_since(Instant::now()) else {
                panic!(
                    "model server: no {what} within {:?} (violations: {:?})",
                    patience(),
                    state.violations
                );
            };
            state =
                self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Waits until `gate` opens; without a gate, waits for the end. Returns false once the client
    /// has ended the connection or the server stops.
    fn wait_open(&self, connection: usize, gate: Option<usize>) -> bool {
        let mut state = self.lock();
        loop {
            if state.stopped || state.ended[connection].is_some() {
                return false;
            }
            if gate.is_some_and(|gate| state.gates[gate]) {
                return true;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Records a request and returns its reply.
    fn receive(&self, request: Request) -> Reply {
        // A request to a proxy has a whole URL as its path; the server answers it itself.
        let asked =
            request.path.strip_prefix("http://").and_then(|rest| Some(&rest[rest.find('/')?..]));
        let path = asked.unwrap_or(&request.path);
        let refused = match Wire::for_path(path) {
            Some(wire) => wire.violations(&request),
            None if path == responses::PATH => responses::violations(&request),
            None => vec![format!("no such path: {}", request.path)],
        };
        self.change(|state| {
            state.requests.push(request);
            let State { queue, answer, requests, violations, .. } = state;
            if refused.is_empty() {
                let scripted = queue.pop_front();
                let scripted = scripted.or_else(|| Some(answer.as_mut()?(requests.last()?)));
                return scripted.unwrap_or_else(|| {
                    violations.push("a request without a scripted reply".into());
                    Reply::status(
                        500,
                        &[],
                        r#"{"error":{"message":"no reply is scripted for this request"}}"#,
                    )
                });
            }
            let message = refused.join("; ");
            violations.extend(refused);
            let body =
                serde_json::json!({"error": {"message": message, "type": "invalid_request_error"}});
            Reply::status(400, &[], &body.to_string())
        })
    }
}

impl ModelServer {
    /// Starts a server on a free port of 127.0.0.1.
    #[must_use]
    pub fn start() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port on loopback");
        let address = listener.local_addr().expect("the server's address");
        let shared = Arc::new(Shared::default());
        let accepting = Arc::clone(&shared);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(stream) = stream else { continue };
                let connection = accepting.change(|state| {
                    state.ended.push(None);
                    (!state.stopped).then_some(state.ended.len() - 1)
                });
                let Some(connection) = connection else { return };
                let shared = Arc::clone(&accepting);
                thread::spawn(move || serve(&shared, connection, stream));
            }
        });
        Self { address, shared }
    }

    /// The address on which the server listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The base URL for the provider `openai`.
    #[must_use]
    pub fn base_url(&self) -> String {
        self.url(Wire::OpenAi)
    }

    /// The base URL for the provider of this wire.
    #[must_use]
    pub fn url(&self, wire: Wire) -> String {
        match wire {
            Wire::OpenAi => format!("http://{}/v1", self.address),
            Wire::Anthropic | Wire::Gemini | Wire::Ollama => format!("http://{}", self.address),
        }
    }

    /// Queues a reply; requests are answered in the order of the queue.
    pub fn reply(&self, reply: Reply) -> &Self {
        self.shared.change(|state| state.queue.push_back(reply));
        self
    }

    /// Sets the reply to every request for which the queue is empty. `answer` must not use the
    /// server.
    pub fn answer(&self, answer: impl FnMut(&Request) -> Reply + Send + 'static) -> &Self {
        self.shared.change(|state| state.answer = Some(Box::new(answer)));
        self
    }

    /// Creates a closed gate, for [`Reply::gate`].
    #[must_use]
    pub fn gate(&self) -> Gate {
        let id = self.shared.change(|state| {
            state.gates.push(false);
            state.gates.len() - 1
        });
        Gate { id, shared: Arc::clone(&self.shared) }
    }

    /// Waits for the `n`th request, counted from 0, and returns it.
    #[must_use]
    pub fn request(&self, n: usize) -> Request {
        self.shared.wait(&format!("request {n}"), |state| state.requests.get(n).cloned())
    }

    /// The requests that were received so far.
    #[must_use]
    pub fn requests(&self) -> Vec<Request> {
        self.shared.lock().requests.clone()
    }

    /// Waits for request `n` and for the end of its connection, and returns the time of that end.
    #[must_use]
    pub fn dropped(&self, n: usize) -> Instant {
        self.shared.wait(&format!("end of the connection of request {n}"), |state| {
            state.ended[state.requests.get(n)?.connection]
        })
    }

    /// The rules of a strict provider that requests have broken so far.
    #[must_use]
    pub fn violations(&self) -> Vec<String> {
        self.shared.lock().violations.clone()
    }

    /// Like [`violations`](Self::violations), and forgets them.
    #[must_use]
    pub fn take_violations(&self) -> Vec<String> {
        std::mem::take(&mut self.shared.lock().violations)
    }

    /// Fails the test if a request has broken a rule of a strict provider.
    pub fn assert_no_violations(&self) {
        let violations = self.violations();
        assert!(violations.is_empty(), "a strict provider would refuse: {violations:#?}");
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        self.shared.change(|state| state.stopped = true);
        // Wakes the accepting thread; an error means that it has already ended.
        drop(TcpStream::connect(self.address));
    }
}

/// A point at which a reply waits until the test opens it. An open gate stays open.
#[derive(Clone)]
pub struct Gate {
    id: usize,
    shared: Arc<Shared>,
}

impl Gate {
    /// Lets the reply continue.
    pub fn open(&self) {
        self.shared.change(|state| state.gates[self.id] = true);
    }
}

/// Serves one connection. This thread reads, so that it notices the end at once; another one
/// writes.
fn serve(shared: &Arc<Shared>, connection: usize, stream: TcpStream) {
    let (Ok(()), Ok(mut output)) = (stream.set_nodelay(true), stream.try_clone()) else { return };
    let (requests, incoming) = mpsc::channel::<Request>();
    let writing = Arc::clone(shared);
    thread::spawn(move || {
        for request in incoming {
            let wire = Wire::for_path(&request.path).unwrap_or(Wire::OpenAi);
            let reply = writing.receive(request);
            let resets = reply.resets();
            if !reply.send(wire, &mut output, |gate| {
                writing.wait_open(connection, gate.map(|gate| gate.id))
            }) {
                let how = if resets {
                    // Shuts down reading only: the kernel sends the RST when both threads have
                    // closed the socket.
                    set_socket_linger(&output, Some(Duration::ZERO))
                        .expect("the socket option is set");
                    Shutdown::Read
                } else {
                    // Ends the server's side; the reading thread sees the client's end.
                    Shutdown::Both
                };
                drop(output.shutdown(how));
                return;
            }
        }
    });
    let mut input = BufReader::new(stream);
    while let Some(request) = http::read_request(&mut input, connection) {
        if requests.send(request).is_err() {
            break;
        }
    }
    shared.change(|state| state.ended[connection] = Some(Instant::now()));
}
