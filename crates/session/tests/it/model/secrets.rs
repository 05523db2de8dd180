//! The providers' keys are only in requests: in no log at any level, no event, and no error.

use std::io;
use std::sync::{Arc, Mutex};

use holdpoint_tests::model_server::{Reply, Wire};
use holdpoint_tests::world::{KEY, TestEngine};
use holdpoint_tools::testing::in_own_process;

/// A log in memory.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn t_h1_a_key_is_in_no_log_and_no_event() {
    if !in_own_process() {
        return;
    }
    let log = Log::default();
    let writer = log.clone();
    tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_writer(move || writer.clone())
        .init();
    let echo = format!(
        r#"{{"error":{{"type":"overloaded_error","message":"your key {KEY} is not welcome"}}}}"#
    );
    for wire in Wire::ALL {
        let world = TestEngine::start(wire);
        let mut talk = world.open().await;
        world.server.reply(Reply::text(["done"]));
        world.server.reply(Reply::status(500, &[("x-echo", KEY)], &echo)).reply(Reply::status(
            401,
            &[],
            &echo,
        ));
        world
            .server
            .reply(Reply::stream().event(&echo).end())
            .reply(Reply::stream().say("half").event(&echo).end());
        for _ in 0..5 {
            talk.session.prompt("go").await.unwrap();
            talk.events.turn_finished().await;
        }
        let request = world.server.request(0);
        let sent = request.headers.iter().any(|(_, value)| value.contains(KEY));
        assert_eq!(
            sent,
            wire != Wire::Ollama || request.header("authorization").is_some(),
            "{wire:?}"
        );
        assert!(!request.path.contains(KEY), "{wire:?}: URLs are logged");
        for event in talk.events.events() {
            assert!(!format!("{event:?}").contains(KEY), "{wire:?}: {event:?}");
        }
    }
    let log = String::from_utf8_lossy(&log.0.lock().unwrap()).into_owned();
    assert!(log.len() > 10_000, "nothing was logged");
    let leaks: Vec<_> = log.lines().filter(|line| line.contains(KEY)).collect();
    assert!(leaks.is_empty(), "{leaks:#?}");
}
