//! Leaves a session and attaches again: the session keeps running, and each event is seen once.
//!
//! `cargo run -p holdpoint-session --example attach_detach`
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;

use holdpoint_common::{Config, Delta, Who};
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
    session.prompt("say@50 one two three four five six seven eight nine ten").await?;

    // Watch until the third word, then leave. Only the last number must be remembered.
    let mut events = session.attach(AttachFrom::start()).await?;
    let (mut last, mut words) = (0, 0);
    while words < 3 {
        let Some(event) = events.next().await else { break };
        last = event.seq;
        if let Some(Delta::Text { text, .. }) = event.delta() {
            words += 1;
            print!("{text}");
        }
    }
    events.detach().await;
    println!("\n(left at event {last}, the session is {})", session.snapshot().status);

    // The turn ends while no client is attached.
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
