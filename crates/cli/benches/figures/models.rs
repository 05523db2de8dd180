//! The cost of models on our side: requests of long conversations, their limits, the path of a
//! delta, large reads.

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use holdpoint_common::{
    AssistantMessage, Block, BlockKind, Body, CallId, Delta, Event, Fact, ItemId, Limits,
    ModelSettings, PromptFact, PromptId, Timestamp, ToolCall, ToolFact, ToolResult, ToolStatus,
    TurnFact, Who,
};
use holdpoint_session::context::{Bounds, fit};
use holdpoint_session::history;
use holdpoint_session::model::{Access, Message, ModelRequest, Provider};
use holdpoint_tests::model_server::{ModelServer, Reply, Wire, openai};
use serde_json::json;

use crate::floors::Floor;
use crate::support::{EngineWorld, MODEL, turn_finished, until};
use crate::table::{Amount, Samples, Table};

/// Messages of the long conversation.
const MESSAGES: usize = 10_000;

pub(crate) fn measure(table: &Table) {
    if table.wants("models", &["request of 10,000 messages", "limits checked"]) {
        let facts = facts();
        let request = request(&facts);
        table.note(
            "bytes of a conversation of 10,000 messages",
            Amount::kib(request.bytes() / 1024),
        );
        let derived = Samples::of(30, || timed(|| history::messages(&facts)));
        table.note("messages derived from 10,000 facts", derived.median());
        for provider in Provider::ALL {
            let access = Access {
                key: "k".into(),
                base_url: "http://127.0.0.1:9".into(),
                ..Access::default()
            };
            let model = provider.model("scripted", &access, &ModelSettings::default()).unwrap();
            let built = Samples::of(30, || timed(|| model.stream(&request)));
            let whole = Samples::of(30, || timed(|| model.stream(&self::request(&facts))));
            table.note(&format!("{provider}: request written"), built.median());
            table.figure(
                &format!("{provider}: request of 10,000 messages"),
                whole.median(),
                Amount::ms(30),
            );
        }
        let wide = Bounds { lines: u64::MAX, tokens: u64::MAX };
        let checked = Samples::of(100, || timed(|| wide.allow(request.bytes(), &request.messages)));
        table.figure("limits checked, 10,000 messages", checked.median(), Amount::ms(5));
        let bounds = Bounds::new(&Limits::default(), &ModelSettings::default());
        let cut = Samples::of(10, || {
            let mut request = request.clone();
            timed(|| fit(&mut request, &bounds, &mut |text| text.len() as u64 / 4))
        });
        table.note("the same cut to 100,000 tokens, without counting them", cut.median());
    }
    if table.wants("deltas", &["first delta at the server to the client"]) {
        table.figure_beside(
            Floor::RoundTrip,
            "first delta at the server to the client",
            first_deltas().median(),
            Amount::ms(1),
        );
    }
    if table.wants("reads", &["200,000 deltas in one read"]) {
        table.note("200,000 deltas in one read", large_read());
    }
}

fn timed<T>(work: impl FnOnce() -> T) -> Duration {
    let since = Instant::now();
    black_box(work());
    since.elapsed()
}

/// The facts of turns that each call a tool once: a prompt, a call, its result, an answer.
fn facts() -> Vec<Arc<Event>> {
    let text = "The quick brown fox jumps over the lazy dog.\n".repeat(5);
    let answer = |calls| {
        let block = Block {
            item: ItemId(1),
            kind: BlockKind::Text,
            text: text.clone(),
            signature: None,
            calls_before: 0,
        };
        Fact::Turn(TurnFact::AssistantMessage(
            AssistantMessage { blocks: vec![block], calls, ..AssistantMessage::default() }.into(),
        ))
    };
    let event = |n: usize| {
        let call = CallId(n as u64 / 4 + 1);
        let input = json!({"command": "cargo test --workspace", "timeout_ms": 60_000});
        let fact = match n % 4 {
            0 => Fact::Prompt(PromptFact::Accepted {
                prompt: PromptId(n as u64),
                text: text.as_str().into(),
                by: Who::named("figures"),
                typed_bytes: None,
                idempotency_key: None,
            }),
            1 => answer(vec![ToolCall {
                id: call,
                provider_id: None,
                name: "shell".into(),
                input,
                signature: None,
            }]),
            2 => Fact::Tool(ToolFact::Finished(
                ToolResult::not_run(call, ToolStatus::Ok, text.clone()).into(),
            )),
            _ => answer(vec![]),
        };
        Arc::new(Event {
            seq: n as u64 + 1,
            at: Timestamp(0),
            turn: None,
            step: None,
            body: Body::Fact(fact),
        })
    };
    (0..MESSAGES - 1).map(event).collect()
}

fn request(facts: &[Arc<Event>]) -> ModelRequest {
    let mut messages = history::messages(facts);
    messages.push(Message::User("And now?".to_owned()));
    ModelRequest { system: "Be brief.".into(), messages, tools: Arc::new([]) }
}

/// The time from when the server may write a delta until a client has it.
fn first_deltas() -> Samples {
    let world = EngineWorld::new();
    let (session, mut client) = world.runtime.block_on(world.watched(MODEL));
    let mut round = || {
        let gate = world.server.gate();
        world.server.reply(Reply::stream().gate(&gate).say("so").finish("stop"));
        world.runtime.block_on(async {
            session.prompt("go").await.unwrap();
            until(&mut client, |event| {
                matches!(event.fact(), Some(Fact::Turn(TurnFact::StepStarted))).then_some(())
            })
            .await;
        });
        let asked = world.server.requests().len();
        let _ = world.server.request(asked.max(1) - 1);
        // By then, the reply waits at its gate.
        std::thread::sleep(Duration::from_millis(5));
        let since = Instant::now();
        gate.open();
        world.runtime.block_on(async {
            until(&mut client, |event| {
                matches!(event.delta(), Some(Delta::Text { .. })).then_some(())
            })
            .await;
            let took = since.elapsed();
            turn_finished(&mut client).await;
            took
        })
    };
    Samples::of(100, &mut round)
}

/// Reads an answer of 200,000 deltas that arrives as one HTTP chunk.
fn large_read() -> Amount {
    let event = format!("data: {}\n\n", openai::delta(&json!({"content": "tok "})));
    let server = ModelServer::start();
    server.reply(Reply::stream().bytes(event.repeat(200_000)).finish("stop"));
    let access = Access { base_url: server.url(Wire::OpenAi), ..Access::default() };
    let model = Provider::OpenAi.model("scripted", &access, &ModelSettings::default()).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let since = Instant::now();
    let request =
        ModelRequest { messages: vec![Message::User("go".into())], ..ModelRequest::default() };
    let mut stream = model.stream(&request);
    let events = runtime.block_on(async {
        let mut events = 0;
        while let Some(event) = stream.next().await {
            event.unwrap();
            events += 1;
        }
        events
    });
    assert!(events > 10);
    Amount::Time(since.elapsed())
}
