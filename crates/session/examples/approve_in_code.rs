//! Answers asks in code: approves one known command and denies everything else with a reason, which
//! the model reads in the same step.
//!
//! `cargo run -p holdpoint-session --example approve_in_code`
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;

use holdpoint_common::{Answer, AskFact, Config, Fact, Supplies, ToolFact, TurnFact, Who};
use holdpoint_session::model::Catalog;
use holdpoint_session::{AttachFrom, Engine, OpenSession};
use holdpoint_tools::{Supervisor, shown};

const SCRIPT: &str = "
    shell: ls
    ---
    shell: ls; rm -rf build
    ---
    shell: rm -rf build
    say That is all.
";

fn main() -> Result<(), Box<dyn Error>> {
    holdpoint_tools::supervise_if_asked();
    tokio::runtime::Runtime::new()?.block_on(run())
}

async fn run() -> Result<(), Box<dyn Error>> {
    let catalog = Catalog::new(&Config::default(), |name| std::env::var(name).ok());
    let engine = Engine::builder(catalog).supervisor(Supervisor::ThisProgram).start()?;
    let folder = tempfile::tempdir()?;
    std::fs::create_dir(folder.path().join("build"))?;
    let open = OpenSession::in_folder(folder.path()).model("rehearsal");
    let supplies = Supplies::env(std::env::vars().collect());
    let session = engine.sessions(Who::named("guard")).with_supplies(supplies).open(open).await?;
    let mut events = session.attach(AttachFrom::start()).await?;
    session.prompt(SCRIPT).await?;

    // The details that a person would see: the command and its folder.
    let listing = shown::command("ls", &folder.path().canonicalize()?);
    while let Some(event) = events.next().await {
        match event.fact() {
            Some(Fact::Ask(AskFact::Raised { ask })) => {
                let details =
                    ask.pause().and_then(|pause| pause.request.details).unwrap_or_default();
                // The whole text is compared: a command that only begins like it, or has a second
                // line, is another command.
                let answer = if details == listing {
                    Answer::Approve { always: true }
                } else {
                    Answer::Deny {
                        reason: Some("this guard lets only `ls` through".into()),
                        always: false,
                    }
                };
                println!("{} → {}", details.lines().next().unwrap_or_default(), answer.kind_name());
                session.answer(&ask.id, answer).await?;
            }
            Some(Fact::Tool(ToolFact::Finished(result))) => {
                println!("the model receives: {}", result.to_text().trim())
            }
            Some(Fact::Turn(TurnFact::Finished { outcome, .. })) => {
                println!("the turn is {outcome}");
                break;
            }
            _ => {}
        }
    }
    Ok(())
}
