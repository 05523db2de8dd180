//! The scripts of the manual's page about `rehearsal`, played with the real tools.

use holdpoint_common::{
    Answer, AskFact, AskRequest, Body, Delta, Fact, Outcome, QuestionReply, ToolFact, ToolStatus,
    TurnFact,
};
use holdpoint_session::testing::{Harness, within_patience};
use holdpoint_session::{AttachFrom, SessionHandle};

/// Bytes that may be queued for a client: more than the flood has.
const ROOM: usize = 256 * 1024 * 1024;

/// The outcome of a script.
#[derive(Debug, Default, PartialEq)]
struct Played {
    thought: String,
    text: String,
    /// The results of its calls, in order; all calls must succeed.
    results: Vec<String>,
    outcome: Option<Outcome>,
    error: Option<String>,
}

/// Plays a script to its end and answers its asks. Interrupts it once the model has said
/// `interrupted_at`.
async fn play(session: &SessionHandle, script: &str, interrupted_at: Option<&str>) -> Played {
    let mut events = session.attach(AttachFrom::start().with_room(ROOM)).await.unwrap();
    session.prompt(script).await.unwrap();
    let (mut played, mut results) = (Played::default(), Vec::new());
    while let Some(event) = within_patience("an event", events.next()).await {
        match &event.body {
            Body::Delta(Delta::Thought { text, .. }) => played.thought.push_str(text),
            Body::Delta(Delta::Text { text, .. }) => {
                played.text.push_str(text);
                if interrupted_at == Some(played.text.as_str()) {
                    session.interrupt(None).await.unwrap();
                }
            }
            Body::Fact(Fact::Ask(AskFact::Raised { ask })) => {
                let AskRequest::Question(request) = &ask.request else { panic!("{ask:?}") };
                let reply = |question: &holdpoint_common::Question| QuestionReply {
                    id: question.id.clone(),
                    answer: Some(
                        question
                            .options
                            .first()
                            .map_or("poem.txt".into(), |option| option.label.clone()),
                    ),
                };
                let answers = request.questions.iter().map(reply).collect();
                session.answer(&ask.id, Answer::Reply { answers }).await.unwrap();
            }
            Body::Fact(Fact::Tool(ToolFact::Finished(result))) => {
                assert_eq!(result.status, ToolStatus::Ok, "{result:?}");
                results.push((result.call, result.to_text()));
            }
            Body::Fact(Fact::Turn(TurnFact::Finished { outcome, error, .. })) => {
                (played.outcome, played.error) = (Some(*outcome), error.clone());
                break;
            }
            _ => {}
        }
    }
    results.sort();
    played.results = results.into_iter().map(|(_, text)| text).collect();
    played
}

/// The outcomes that the page describes, or that its scripts imply.
fn expected() -> Vec<Played> {
    let played = |text: &str, results: &[&str]| Played {
        text: text.into(),
        results: results.iter().map(|&text| text.into()).collect(),
        outcome: Some(Outcome::Done),
        ..Played::default()
    };
    vec![
        played("I will make a file and look at it.Done.", &["[exit code 0]", "     1\thello\n"]),
        played(
            "All three are done.",
            &["left\n[exit code 0]", "right\n[exit code 0]", "after both\n[exit code 0]"],
        ),
        played(
            "The script has ended.",
            &[
                "wrote notes.txt (23 bytes)",
                "edited notes.txt: line 2",
                "notes.txt\n",
                "notes.txt\n",
                "notes.txt\n1- first line\n2: last line\n",
            ],
        ),
        played("Thank you.", &[r#"{"question":"poem.txt"}"#, r#"{"colour":"red"}"#]),
        Played {
            thought: "Let me think about this slowly, word by word.".into(),
            outcome: Some(Outcome::Interrupted),
            ..played(HELD, &[])
        },
        Played {
            outcome: Some(Outcome::Failed),
            error: Some("the model failed: the script wanted it so".into()),
            ..played(&"floo".repeat(200_000), &[])
        },
    ]
}

/// The text before the script that hangs is interrupted.
const HELD: &str = "And now I speak, ten words a second, for long enough to press a key.";

#[tokio::test]
async fn the_scripts_of_the_page_have_their_documented_outcome() {
    let page =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/rehearsal.md"))
            .unwrap();
    let scripts: Vec<_> =
        page.split("\n```text\n").skip(1).map(|block| block.split("```").next().unwrap()).collect();
    let expected = expected();
    assert_eq!(scripts.len(), expected.len());
    for (script, expected) in scripts.iter().zip(expected) {
        let harness = Harness::start();
        let session = harness.sessions().open(harness.session().model("rehearsal")).await.unwrap();
        let held = script.contains("hang").then_some(HELD);
        assert_eq!(play(&session, script, held).await, expected, "{script}");
        session.close().await.unwrap();
    }
}
