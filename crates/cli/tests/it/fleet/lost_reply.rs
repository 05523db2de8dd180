//! A reply of another machine that is lost on its way, after the request was carried out.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;

use serde_json::Value;

use super::{database, machine, reachable};
use crate::world::patience;

/// Passes connections on to an address. The first one is passed on up to the reply, and cut when it is
/// told so.
struct LosesFirstReply {
    address: String,
    /// The end of the first connection at the client.
    first: thread::JoinHandle<TcpStream>,
}

impl LosesFirstReply {
    fn to(address: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let own_address = listener.local_addr().unwrap().to_string();
        let first = thread::spawn(move || {
            let first = pass_on(listener.accept().unwrap().0, &address, true);
            thread::spawn(move || {
                for client in listener.incoming() {
                    pass_on(client.unwrap(), &address, false);
                }
            });
            first
        });
        Self { address: own_address, first }
    }

    fn cut_first(self) {
        self.first.join().unwrap().shutdown(Shutdown::Both).unwrap();
    }
}

/// Passes a connection on, both ways. Returns its end at the client. With `loses_reply`, the client gets
/// only the answer to its first message, which begins the encryption.
fn pass_on(client: TcpStream, address: &str, loses_reply: bool) -> TcpStream {
    let server = TcpStream::connect(address).unwrap();
    let is_answered = Arc::new(AtomicBool::new(false));
    let loses = Arc::new(AtomicBool::new(false));
    let (answered, lost) = (Arc::clone(&is_answered), Arc::clone(&loses));
    copy(&client, &server, move || {
        if loses_reply && answered.load(Ordering::SeqCst) {
            lost.store(true, Ordering::SeqCst);
        }
        true
    });
    copy(&server, &client, move || {
        is_answered.store(true, Ordering::SeqCst);
        !loses.load(Ordering::SeqCst)
    });
    client
}

/// Copies from one connection to another, as long as there is data. `passes` is called for each piece.
fn copy(from: &TcpStream, to: &TcpStream, passes: impl Fn() -> bool + Send + 'static) {
    let (mut from, mut to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
    thread::spawn(move || {
        let mut buffer = [0; 16 << 10];
        while let Ok(bytes @ 1..) = from.read(&mut buffer) {
            if passes() && to.write_all(&buffer[..bytes]).is_err() {
                break;
            }
        }
        let _ = to.shutdown(Shutdown::Both);
    });
}

#[test]
fn a_prompt_to_another_machine_is_added_once_if_its_reply_is_lost() {
    let (server, url) = database();
    let (one, two) = (reachable(&url, "m1"), reachable(&url, "m2"));
    let shared = one.run(&["new", "--name", "shared"]).code(0).out.trim().to_owned();
    let proxy = LosesFirstReply::to(machine(&one, "m1")["address"].as_str().unwrap().to_owned());
    let address = &proxy.address;
    let statement =
        format!("UPDATE holdpoint.machines SET address = '{address}' WHERE name = 'm1'");
    server.query("fleet", &statement);
    // Its daemon reads the address when it starts.
    two.run(&["daemon", "start"]).code(0);
    let mut curl = Command::new("curl");
    curl.args(["-sS", "--unix-socket"]).arg(two.path("run/holdpoint/holdpoint.sock"));
    curl.args(["--data", r#"{"text":"say Hello."}"#]);
    curl.arg(format!("http://holdpoint/v1/sessions/{shared}/prompts"));
    let curl = curl.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();

    let by = Instant::now() + patience();
    while !one.run(&["logs", "shared"]).code(0).out.contains("say Hello.") {
        assert!(Instant::now() < by, "the prompt has not arrived");
    }
    proxy.cut_first();
    let output = curl.wait_with_output().unwrap();
    let replied: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(replied["prompt"], 1, "{replied}");
    one.run(&["wait", "shared"]).code(0);
    let log = one.run(&["logs", "shared", "--json"]).code(0).out;
    assert_eq!(log.matches("promptAccepted").count(), 1, "{log}");
}
