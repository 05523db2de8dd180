//! Two sessions at once: both are paused, with different details, and each answer reaches its own
//! session.
//!
//! `cargo run -p holdpoint-session --example two_sessions`
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;

use holdpoint_common::{Answer, Config, PolicyMode, Supplies, Who};
use holdpoint_session::model::Catalog;
use holdpoint_session::{AttachFrom, Attachment, Engine, OpenSession};
use holdpoint_tools::Supervisor;

fn main() -> Result<(), Box<dyn Error>> {
    // This program may be started again to supervise a tool's processes.
    holdpoint_tools::supervise_if_asked();
    tokio::runtime::Runtime::new()?.block_on(run())
}

async fn run() -> Result<(), Box<dyn Error>> {
    let catalog = Catalog::new(&Config::default(), |name| std::env::var(name).ok());
    let engine = Engine::builder(catalog).supervisor(Supervisor::ThisProgram).start()?;
    let sessions = engine
        .sessions(Who::named("example"))
        .with_supplies(Supplies::env(std::env::vars().collect()));
    let folder = tempfile::tempdir()?;
    let open = |name: &str| {
        OpenSession::in_folder(folder.path()).name(name).model("rehearsal").policy(PolicyMode::Ask)
    };

    let left = sessions.open(open("left")).await?;
    let right = sessions.open(open("right")).await?;
    let mut left_events = left.attach(AttachFrom::start()).await?;
    let mut right_events = right.attach(AttachFrom::start()).await?;
    left.prompt("shell: echo left > left.txt").await?;
    right.prompt("shell: echo right > right.txt").await?;
    for (name, events) in [("left", &mut left_events), ("right", &mut right_events)] {
        println!("{name} asks: {}", asked(events).await);
    }
    let mut list = sessions.list().await?;
    list.sort_by(|one, other| one.name.cmp(&other.name));
    for session in list {
        println!("{} is {}", session.name, session.status);
    }

    // The second session is answered first; the first keeps waiting.
    right_events.answer(Answer::Deny { reason: Some("not today".into()), always: false }).await?;
    right.settled().await?;
    println!("right is {}, left is {}", right.snapshot().status, left.snapshot().status);
    left_events.answer(Answer::Approve { always: false }).await?;
    left.settled().await?;
    println!("left.txt: {:?}", std::fs::read_to_string(folder.path().join("left.txt"))?);
    println!("right.txt is there: {}", folder.path().join("right.txt").exists());
    Ok(())
}

/// Waits until the session asks, and returns the details.
async fn asked(events: &mut Attachment) -> String {
    while events.shown().is_none() && events.next().await.is_some() {}
    let ask = events.shown().and_then(holdpoint_common::Ask::pause);
    ask.and_then(|pause| pause.request.details).unwrap_or_default().replace('\n', " ")
}
