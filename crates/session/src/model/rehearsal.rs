//! `rehearsal`: a built-in model, offline and deterministic, that plays the script in the prompt.
//!
//! The model calls real tools, so everything a session does can be tried and tested without a key:
//!
//! ```text
//! say I will look around first.
//! shell: ls
//! call read_file {"path": "README.md"}
//! say@20 These words come one by one, twenty a second.
//! ```
//!
//! One instruction per line; `#` begins a comment.
//!
//! | instruction | what it does |
//! | --- | --- |
//! | `say TEXT`, `say@RATE TEXT` | says the text at once, or word by word at RATE words a second |
//! | `think TEXT`, `think@RATE TEXT` | the same as a thought |
//! | `call TOOL {JSON}` | calls a tool; the JSON may span several lines; without it, `{}` |
//! | `shell: COMMAND` | short for `call shell {"command": "COMMAND"}` |
//! | `ask: QUESTION` | short for `call ask_user {"question": "QUESTION"}` |
//! | `wait 500ms`, `wait 2s` | is silent for a while |
//! | `fail TEXT` | ends the answer with an error |
//! | `flood N [BYTES]` | says N pieces of BYTES bytes (default: 4) as fast as they are read |
//! | `hang` | is silent for ever |
//! | `---` | ends a step |
//!
//! A *step* is one request to the model. It ends at `---` and after consecutive calls, which are
//! requested together; the next step is played when their results are known. The conversation alone
//! determines the next step, by the number of answers since the last prompt. After the last step
//! the model says that the script has ended. Inside other text, such as the goal of a run, the
//! script is a block that begins with the line "```rehearsal". In a text, `\n`, `\t` and `\\` mean
//! a line feed, a tab and a backslash.

use std::time::Duration;

use holdpoint_common::Usage;
use tokio::time::Instant;

use crate::model::inserted::UNANSWERED;

use super::{Message, Model, ModelError, ModelEvent, ModelRequest, ModelStream};

pub mod script;

use script::{Instruction, Script};

/// The answer to a prompt that is not a script.
pub const INTRODUCTION: &str = "I am `rehearsal`, a built-in model that plays scripts. I need no key, and I know \
nothing. Your prompt is not a script, so there is nothing to play. A script is a few lines such as\n\n    say I will \
look around.\n    shell: ls\n    say Done.\n\nIn the goal of a run, put the script into a code block marked \
`rehearsal`.\n\nTo use a real model, set one: `--model openai/NAME` with OPENAI_API_KEY in the environment \
(OPENAI_BASE_URL for any compatible server), or `model` in the configuration.";

/// The answer after the last step.
pub const THE_END: &str = "The script has ended.";

/// How many events are sent before other tasks may run.
const BURST: u32 = 64;

/// The built-in model that plays scripts.
#[derive(Debug, Clone, Copy, Default)]
pub struct Rehearsal;

impl Model for Rehearsal {
    fn name(&self) -> &'static str {
        "rehearsal"
    }

    fn has_context(&self) -> bool {
        false
    }

    fn stream(&self, request: &ModelRequest) -> ModelStream {
        let todo = match next_step(&request.messages) {
            Ok(todo) => todo,
            Err(error) => return Box::pin(futures_util::stream::iter([Err(error)])),
        };
        let player = Player {
            todo: todo.into_iter(),
            playing: None,
            events: 0,
            bytes_in: request.bytes(),
            bytes_out: 0,
            ended: false,
        };
        Box::pin(futures_util::stream::unfold(player, |mut player| async {
            player.next().await.map(|event| (event, player))
        }))
    }
}

/// The instructions of the next step, derived from the conversation alone.
fn next_step(messages: &[Message]) -> Result<Vec<Instruction>, ModelError> {
    let say = |text: &str| vec![Instruction::Say { rate: None, text: text.to_owned() }];
    let prompt = messages.iter().rposition(|message| matches!(message, Message::User(_)));
    let Some((at, Message::User(text))) = prompt.and_then(|at| Some((at, messages.get(at)?)))
    else {
        return Ok(say(INTRODUCTION));
    };
    let answers =
        messages[at..].iter().filter(|message| matches!(message, Message::Assistant(_))).count();
    Ok(match parse(text)? {
        Some(mut script) if answers < script.steps.len() => script.steps.swap_remove(answers),
        Some(_) => say(THE_END),
        None => say(INTRODUCTION),
    })
}

/// Checks that a prompt is a script without a mistake, or not a script at all.
///
/// # Errors
/// [`ModelError::Setup`] with the first line that can't be played.
pub fn check(prompt: &str) -> Result<(), ModelError> {
    parse(prompt).map(drop)
}

/// Parses the script in a prompt: the block that is marked as a script, or else the whole text;
/// `None` if that is not a script. If several prompts were joined, the newest counts.
fn parse(prompt: &str) -> Result<Option<Script>, ModelError> {
    let prompt = prompt
        .rsplit_once(UNANSWERED)
        .map_or(prompt, |(_, newest)| newest.trim_start_matches('\n'));
    let block =
        prompt.split_once("```rehearsal\n").and_then(|(_, block)| block.split_once("\n```"));
    let parsed = match block {
        Some((block, _)) => Script::parse_marked(block).map(Some),
        None => Script::parse(prompt),
    };
    parsed.map_err(|error| ModelError::Setup {
        message: format!("the script can't be played: {error}"),
        hint: "see docs/rehearsal.md for all instructions; no step was played".into(),
    })
}

/// A step that is being played.
struct Player {
    todo: std::vec::IntoIter<Instruction>,
    playing: Option<PacedPieces>,
    /// How many events were requested.
    events: u32,
    bytes_in: u64,
    bytes_out: u64,
    ended: bool,
}

/// Pieces that are sent one by one.
struct PacedPieces {
    event: fn(String) -> ModelEvent,
    remaining: Remaining,
    /// The time between two pieces, and when the next is due.
    pace: Option<(Duration, Instant)>,
}

enum Remaining {
    Words(std::vec::IntoIter<String>),
    /// How often the piece is still sent, and the piece.
    Same(u64, String),
}

impl PacedPieces {
    fn new(event: fn(String) -> ModelEvent, rate: Option<u32>, text: String) -> Self {
        let words = match rate {
            Some(_) => text.split_inclusive(char::is_whitespace).map(str::to_owned).collect(),
            None if text.is_empty() => vec![],
            None => vec![text],
        };
        let pace = rate.map(|rate| (Duration::from_secs(1) / rate, Instant::now()));
        Self { event, remaining: Remaining::Words(words.into_iter()), pace }
    }

    async fn next(&mut self) -> Option<ModelEvent> {
        let piece = match &mut self.remaining {
            Remaining::Words(words) => words.next()?,
            Remaining::Same(0, _) => return None,
            Remaining::Same(left, piece) => {
                *left -= 1;
                piece.clone()
            }
        };
        if let Some((interval, due)) = &mut self.pace {
            // Counted from the time when the last piece was due, so that delays do not add up.
            tokio::time::sleep_until(*due).await;
            *due += *interval;
        }
        Some((self.event)(piece))
    }
}

impl Player {
    async fn next(&mut self) -> Option<Result<ModelEvent, ModelError>> {
        self.events += 1;
        if self.events.is_multiple_of(BURST) {
            tokio::task::yield_now().await;
        }
        loop {
            if let Some(pieces) = &mut self.playing {
                if let Some(event) = pieces.next().await {
                    if let ModelEvent::Text(text) | ModelEvent::Thought(text) = &event {
                        self.bytes_out += text.len() as u64;
                    }
                    return Some(Ok(event));
                }
                self.playing = None;
            }
            match self.todo.next() {
                Some(Instruction::Say { rate, text }) => {
                    self.playing = Some(PacedPieces::new(ModelEvent::Text, rate, text))
                }
                Some(Instruction::Think { rate, text }) => {
                    self.playing = Some(PacedPieces::new(ModelEvent::Thought, rate, text));
                }
                Some(Instruction::Flood { pieces, bytes }) => {
                    let mut piece = "flood ".repeat(bytes / 6 + 1);
                    piece.truncate(bytes);
                    self.playing = Some(PacedPieces {
                        event: ModelEvent::Text,
                        remaining: Remaining::Same(pieces, piece),
                        pace: None,
                    });
                }
                Some(Instruction::Call { tool: name, arguments }) => {
                    self.bytes_out += (name.len() + arguments.len()) as u64;
                    return Some(Ok(ModelEvent::Call {
                        id: None,
                        name,
                        arguments,
                        signature: None,
                    }));
                }
                Some(Instruction::Wait(wait)) => tokio::time::sleep(wait).await,
                Some(Instruction::Hang) => std::future::pending().await,
                Some(Instruction::Fail(message)) => {
                    self.todo = vec![].into_iter();
                    self.ended = true;
                    return Some(Err(ModelError::Failed { message }));
                }
                None if self.ended => return None,
                None => {
                    self.ended = true;
                    return Some(Ok(ModelEvent::Usage(Usage::estimate(
                        self.bytes_in,
                        self.bytes_out,
                    ))));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::StreamExt;
    use holdpoint_common::AssistantMessage;

    use super::*;

    async fn play(messages: &[Message]) -> Vec<Result<ModelEvent, ModelError>> {
        let request = ModelRequest { messages: messages.to_vec(), ..ModelRequest::default() };
        Rehearsal.stream(&request).collect().await
    }

    fn text(events: &[Result<ModelEvent, ModelError>]) -> String {
        events
            .iter()
            .filter_map(
                |event| if let Ok(ModelEvent::Text(text)) = event { Some(&**text) } else { None },
            )
            .collect()
    }

    #[tokio::test]
    async fn each_answer_since_the_prompt_is_one_step_further() {
        let prompt = Message::User("say one\nshell: a\nshell: b\nsay two".into());
        let answer = || Message::Assistant(AssistantMessage::default().into());
        let first = play(&[Message::User("old".into()), answer(), answer(), prompt.clone()]).await;
        let call = |command: &str| {
            Ok(ModelEvent::Call {
                id: None,
                name: "shell".into(),
                arguments: format!(r#"{{"command":"{command}"}}"#),
                signature: None,
            })
        };
        assert_eq!(first[..3], [Ok(ModelEvent::Text("one".into())), call("a"), call("b")]);
        assert!(
            matches!(first[3], Ok(ModelEvent::Usage(Usage { estimated: true, .. })))
                && first.len() == 4
        );
        assert_eq!(text(&play(&[prompt.clone(), answer()]).await), "two");
        assert_eq!(text(&play(&[prompt, answer(), answer()]).await), THE_END);
    }

    #[tokio::test]
    async fn a_prompt_that_is_no_script_is_answered() {
        assert_eq!(text(&play(&[Message::User("Fix it.".into())]).await), INTRODUCTION);
        let events = play(&[Message::User("say a\nsya b".into())]).await;
        let [Err(ModelError::Setup { message, .. })] = &events[..] else { panic!("{events:?}") };
        assert_eq!(message, "the script can't be played: line 2: `sya` is not an instruction");
    }

    #[tokio::test(start_paused = true)]
    async fn words_come_at_their_rate_and_waits_last() {
        let started = Instant::now();
        let events = play(&[Message::User(
            "say@4 a b c\nwait 2s\nthink x\nfail out of\\nwords\nsay never".into(),
        )])
        .await;
        assert_eq!(started.elapsed().as_millis(), 2500);
        assert_eq!(text(&events), "a b c");
        assert_eq!(
            events[3..],
            [
                Ok(ModelEvent::Thought("x".into())),
                Err(ModelError::Failed { message: "out of\nwords".into() })
            ]
        );
    }

    #[tokio::test]
    async fn a_flood_has_all_its_pieces() {
        let events = play(&[Message::User("flood 1000 5".into())]).await;
        assert_eq!(events.len(), 1001);
        assert!(events[..1000].iter().all(|event| *event == Ok(ModelEvent::Text("flood".into()))));
    }

    #[tokio::test(start_paused = true)]
    async fn hanging_never_ends() {
        let prompt = [Message::User("hang".into())];
        assert!(tokio::time::timeout(Duration::from_secs(1_000_000), play(&prompt)).await.is_err());
    }
}
