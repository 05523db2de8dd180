//! A second client of a page, which does the work of a user's developer tools.

use std::collections::VecDeque;
use std::net::TcpStream;

use holdpoint_tools::testing::patience;
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::{Message, WebSocket, client};

pub(crate) struct DevTools {
    socket: WebSocket<TcpStream>,
    calls: u64,
    /// Events that were received while waiting for something else.
    events: VecDeque<Value>,
}

impl DevTools {
    /// Connects to a paused page. `details` are those of its pause, which contain the page's
    /// address.
    pub(crate) fn of(details: &str) -> Self {
        let (_, address) = details.split_once("?ws=").expect("the address of the developer tools");
        Self::at(address.trim())
    }

    /// Connects to the page at `HOST:PORT/devtools/page/ID`.
    pub(crate) fn at(address: &str) -> Self {
        let stream = TcpStream::connect(address.split('/').next().unwrap()).unwrap();
        stream.set_read_timeout(Some(patience())).unwrap();
        let (socket, _) = client(format!("ws://{address}"), stream).unwrap();
        Self { socket, calls: 0, events: VecDeque::new() }
    }

    pub(crate) fn send(&mut self, method: &str, params: &Value) {
        self.calls += 1;
        let command = json!({"id": self.calls, "method": method, "params": params});
        self.socket.send(Message::text(command.to_string())).unwrap();
    }

    /// Sends a command and returns its answer.
    pub(crate) fn call(&mut self, method: &str, params: &Value) -> Value {
        self.send(method, params);
        loop {
            let mut received = self.receive();
            match received["id"].as_u64() {
                Some(id) if id == self.calls => return received["result"].take(),
                Some(_) => {}
                None => self.events.push_back(received),
            }
        }
    }

    /// Evaluates an expression in the page.
    pub(crate) fn evaluate(&mut self, expression: &str) -> Value {
        self.call("Runtime.evaluate", &json!({"expression": expression}))["result"]["value"].take()
    }

    /// Waits for an event and returns its parameters.
    pub(crate) fn event(&mut self, method: &str) -> Value {
        loop {
            let mut event = self.events.pop_front().unwrap_or_else(|| self.receive());
            if event["method"] == method {
                return event["params"].take();
            }
        }
    }

    fn receive(&mut self) -> Value {
        serde_json::from_str(self.socket.read().unwrap().to_text().unwrap()).unwrap()
    }
}
