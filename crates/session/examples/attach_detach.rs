//! Leaves a session and attaches again: the session keeps running, and each event is seen once.
//!
//! `cargo run -p holdpoint-session --example attach_detach`
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;

use holdpoint_common::{Answer, AskFact, Body, Config, Delta, Fact, Who};
use holdpoint_session::model::Catalog;
use holdpoint_session::{AttachFrom, Engine, OpenSession};

fn main() -> Result<(), Box<dyn Error>> {
    tokio::runtime::Runtime::new()?.block_on(run())
}

async fn run() -> Result<(), Box<dyn Error>> {
    let catalog = Catalog::new(&Config::default(), |name| std::env::var(name).ok());
    let engine = Engine::builder(catalog).start()?;
    let folder = tempfile::tempdir()?;
    let open = OpenSession::in_folder(folder.path()).model("rehearsal");
    let session = engine.sessions(Who::named("example")).open(open).await?;
    let mut events = session.attach(AttachFrom::start()).await?;
    session.prompt("say one two three\nask: Shall I continue?\n---\nsay four five six").await?;

    // Watch until the agent asks, then leave. Only the last number must be remembered.
    let mut last;
    let ask = loop {
        let event = events.next().await.ok_or("the stream has ended")?;
        last = event.seq;
        match &event.body {
            Body::Delta(Delta::Text { text, .. }) => print!("{text}"),
            Body::Fact(Fact::Ask(AskFact::Raised { ask })) => break ask.id.clone(),
            _ => {}
        }
    };
    events.detach().await;
    println!("\n(left at event {last}, the session is {})", session.snapshot().status);

    // The answer needs no attachment, and the turn ends while no client is attached.
    session.answer(&ask, Answer::Cancel).await?;
    let end = session.settled().await?.seq;
    let mut events = session.attach(AttachFrom::after(last)).await?;
    while last < end {
        let Some(event) = events.next().await else { break };
        last = event.seq;
        if let Some(Delta::Text { text, .. }) = event.delta() {
            print!("{text}");
        }
    }
    println!("\n(back, and up to event {last}, the session is {})", session.snapshot().status);
    Ok(())
}
