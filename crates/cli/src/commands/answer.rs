//! The commands `holdpoint approve`, `deny`, `continue` and `answer`, which answer an ask.

use std::fmt::Display;
use std::io::{self, BufRead, IsTerminal};

use clap_complete::engine::ArgValueCompleter;
use holdpoint_common::{
    Answer, AnswerError, Ask, AskId, AskRequest, PauseKind, Question, QuestionReply, SessionId,
};
use holdpoint_session::Sessions;
use holdpoint_session::folders::Folders;
use holdpoint_tools::shown::prose_line;

use crate::error::CliError;
use crate::follow::asked;
use crate::runtime::block_on;
use crate::select::complete_ask;
use crate::sessions::control_sessions;
use crate::summaries::{counted, not_saved_suffix};
use crate::tone::Tone;
use crate::ui::Ui;

/// An ask.
#[derive(Debug, clap::Args)]
struct AskArg {
    /// The id of the ask, as printed by `holdpoint inbox`. On a terminal it can also be a session:
    /// its first open ask is shown, and you confirm the answer
    #[arg(value_name = "ASK", add = ArgValueCompleter::new(complete_ask))]
    ask: String,

    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

/// Approve a tool call
///
/// On a terminal, the ask is shown first, and you confirm the approval.
#[derive(Debug, clap::Args)]
pub(crate) struct Approve {
    #[command(flatten)]
    ask: AskArg,

    /// Also approve later calls of the same kind, for the life of the session
    #[arg(long)]
    always: bool,

    /// Approve without showing the ask first
    #[arg(long, short)]
    yes: bool,
}

/// Deny a tool call
#[derive(Debug, clap::Args)]
pub(crate) struct Deny {
    #[command(flatten)]
    ask: AskArg,

    /// The reason, which the model receives
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,

    /// Also deny later calls of the same kind, for the life of the session
    #[arg(long)]
    always: bool,
}

/// Let a paused tool continue
#[derive(Debug, clap::Args)]
pub(crate) struct Continue {
    #[command(flatten)]
    ask: AskArg,
}

/// Answer a question
#[derive(Debug, clap::Args)]
pub(crate) struct AnswerArgs {
    #[command(flatten)]
    ask: AskArg,

    /// The answer: an option's number, its label, or your own words. Several questions need one
    /// answer each, in order
    #[arg(value_name = "ANSWER", required_unless_present = "skip")]
    answers: Vec<String>,

    /// Take a number as your own words, not as the number of an option
    #[arg(long)]
    own_words: bool,

    /// Decline to answer; the model learns of it and continues
    #[arg(long, conflicts_with_all = ["answers", "own_words"])]
    skip: bool,
}

pub(crate) fn approve(args: &Approve, folders: &Folders, ui: &mut Ui) -> Result<i32, CliError> {
    let approve = |_: Option<&Ask>| Ok(Answer::Approve { always: args.always });
    let confirm_first = !args.yes;
    answer("approve", &args.ask, confirm_first, &approve, folders, ui)
}

pub(crate) fn deny(args: &Deny, folders: &Folders, ui: &mut Ui) -> Result<i32, CliError> {
    let reason = args.reason.as_ref().filter(|reason| !reason.trim().is_empty());
    let deny = |_: Option<&Ask>| Ok(Answer::Deny { reason: reason.cloned(), always: args.always });
    answer("deny", &args.ask, false, &deny, folders, ui)
}

pub(crate) fn continue_tool(
    args: &Continue,
    folders: &Folders,
    ui: &mut Ui,
) -> Result<i32, CliError> {
    answer("continue", &args.ask, false, &|_| Ok(Answer::Resume), folders, ui)
}

pub(crate) fn answer_question(
    args: &AnswerArgs,
    folders: &Folders,
    ui: &mut Ui,
) -> Result<i32, CliError> {
    if args.skip {
        return answer("answer", &args.ask, false, &|_| Ok(Answer::Cancel), folders, ui);
    }
    // Without the questions, the reply stays empty, which fits no ask.
    let nothing = || Ok(Answer::Reply { answers: Vec::new() });
    answer(
        "answer",
        &args.ask,
        false,
        &|ask| ask.map_or_else(nothing, |ask| reply(ask, &args.answers, args.own_words)),
        folders,
        ui,
    )
}

/// Answers an ask. With `confirm_first`, on a terminal, shows the ask first and asks for
/// confirmation.
fn answer(
    command: &str,
    args: &AskArg,
    confirm_first: bool,
    make_answer: &dyn Fn(Option<&Ask>) -> Result<Answer, CliError>,
    folders: &Folders,
    ui: &mut Ui,
) -> Result<i32, CliError> {
    if args.ask.trim().is_empty() {
        return Err(CliError::usage("no ask given").hint("`holdpoint inbox` lists the open asks"));
    }
    block_on(async {
        let sessions = control_sessions(folders, command).await?;
        let (id, answer) = match args.ask.parse::<AskId>() {
            Ok(id) => {
                let open = sessions.look(id.session.as_str()).await?;
                require_whole_id(&id, &open.settings.id)?;
                let ask = open.asks.iter().find(|ask| ask.id == id);
                // If the ask is not open, the session's error says why.
                let answer = make_answer(ask)?;
                if let Some(ask) = ask.filter(|ask| !accepts_kind(ask, &answer)) {
                    return Err(other_kind(ask));
                }
                if let Some(ask) = ask.filter(|_| confirm_first && io::stdin().is_terminal()) {
                    require_err_terminal(ui, "`--yes` approves without showing it")?;
                    if !confirm(ask, &answer, ui)? {
                        return not_answered(ui);
                    }
                }
                (id, answer)
            }
            Err(_) => {
                let ask = first_ask(&args.ask, &sessions, ui).await?;
                let answer = make_answer(Some(&ask))?;
                if !accepts_kind(&ask, &answer) {
                    return Err(other_kind(&ask));
                }
                if !confirm(&ask, &answer, ui)? {
                    return not_answered(ui);
                }
                (ask.id, answer)
            }
        };
        let answered = sessions.answer(&id, answer).await?;
        if args.json {
            ui.json(&answered)?;
        } else {
            ui.print(&format!("answered{}\n", not_saved_suffix(answered.saved)))?;
            if let Some(home) = &answered.home {
                ui.print(&format!(
                    "it takes effect when the session is opened at its home `{home}`\n"
                ))?;
            }
        }
        Ok(0)
    })
}

/// Checks that an ask is named by the whole id of its session. A name may belong to another session
/// by now, with an ask of the same number.
fn require_whole_id(id: &AskId, session: &SessionId) -> Result<(), CliError> {
    if id.session == *session {
        return Ok(());
    }
    let whole = AskId { session: session.clone(), ..id.clone() };
    Err(CliError::usage(format!(
        "`{id}` is not an ask id: ask ids start with the full id of their session"
    ))
    .hint(format!("did you mean {whole}? `holdpoint inbox` lists the open asks")))
}

/// The first open ask of a session. Checks that it can be shown and confirmed.
async fn first_ask(session: &str, sessions: &Sessions, ui: &Ui) -> Result<Ask, CliError> {
    let snapshot = sessions.look(session).await?;
    let Some(ask) = snapshot.asks.first() else {
        return Err(CliError::failed(format!("session {} has no open ask", snapshot.settings.id))
            .hint("`holdpoint inbox` lists the open asks"));
    };
    let hint = format!("give the id of the ask instead: {}", ask.id);
    if !io::stdin().is_terminal() {
        let message = format!(
            "`{session}` is a session, and its ask can't be shown first without a terminal"
        );
        return Err(CliError::usage(message).hint(hint));
    }
    require_err_terminal(ui, hint)?;
    Ok(ask.clone())
}

/// Checks that standard error, where asks are shown, is a terminal.
fn require_err_terminal(ui: &Ui, hint: impl Display) -> Result<(), CliError> {
    if ui.err_is_terminal() {
        return Ok(());
    }
    let message = "the ask can't be shown first: standard error is not a terminal";
    Err(CliError::usage(message).hint(hint))
}

fn not_answered(ui: &mut Ui) -> Result<i32, CliError> {
    ui.line(Tone::Dim, "not answered")?;
    ui.flush()?;
    Ok(1)
}

/// Shows an ask and lets the user confirm the answer.
fn confirm(ask: &Ask, answer: &Answer, ui: &mut Ui) -> Result<bool, CliError> {
    asked::show_alone(ask, ui)?;
    ui.line(Tone::Strong, &format!("{}? [y/N]", answer.kind_name()))?;
    ui.flush()?;
    let mut line = Vec::new();
    let read = io::stdin().lock().read_until(b'\n', &mut line);
    read.map_err(|error| CliError::failed(format!("the confirmation can't be read: {error}")))?;
    Ok(matches!(line.trim_ascii(), b"y" | b"Y" | b"yes"))
}

/// Whether the ask accepts answers of this kind.
fn accepts_kind(ask: &Ask, answer: &Answer) -> bool {
    !matches!(ask.request.accepts(answer), Err(AnswerError::KindMismatch { .. }))
}

/// The error for an ask that needs another kind of answer.
fn other_kind(ask: &Ask) -> CliError {
    let id = &ask.id;
    let (kind, command) = match &ask.request {
        AskRequest::Question(_) => ("a question", format!("`holdpoint answer {id} ANSWER`")),
        AskRequest::Pause(pause) => match pause.kind {
            PauseKind::Confirm => {
                ("a Confirm", format!("`holdpoint approve {id}` or `holdpoint deny {id}`"))
            }
            PauseKind::Continue => ("a Continue", format!("`holdpoint continue {id}`")),
        },
    };
    CliError::failed(format!("ask {id} is {kind}")).hint(format!("{command} answers it"))
}

/// The replies to an ask's questions, one for each.
fn reply(ask: &Ask, given: &[String], own_words: bool) -> Result<Answer, CliError> {
    let AskRequest::Question(request) = &ask.request else { return Err(other_kind(ask)) };
    let (answers, questions) = (given.len(), request.questions.len());
    if answers != questions {
        let message =
            format!("{} for {}", counted(answers, "answer"), counted(questions, "question"));
        return Err(CliError::usage(message)
            .hint("give one answer for each question, in order: `holdpoint show` lists them"));
    }
    let answers = request.questions.iter().zip(given).map(|(question, given)| {
        let answer = if own_words { given.clone() } else { resolve_answer(question, given)? };
        Ok(QuestionReply { id: question.id.clone(), answer: Some(answer) })
    });
    Ok(Answer::Reply { answers: answers.collect::<Result<_, CliError>>()? })
}

/// Resolves an option's number to its label. A number that fits no option was most likely mistyped
/// and is an error.
fn resolve_answer(question: &Question, given: &str) -> Result<String, CliError> {
    let (header, options) = (prose_line(question.header.trim()), &question.options);
    if given.trim().is_empty() {
        return Err(CliError::usage(format!("the answer to `{header}` is empty"))
            .hint("give an answer, or decline to answer with `--skip`"));
    }
    // Parsing alone would accept a plus sign.
    let is_number = given.bytes().all(|byte| byte.is_ascii_digit());
    let number = given.parse::<usize>().ok().filter(|_| is_number);
    if let Some(option) = number.and_then(|number| options.get(number.checked_sub(1)?)) {
        return Ok(option.label.clone());
    }
    if !is_number || options.is_empty() || options.iter().any(|option| option.label == given) {
        return Ok(given.to_owned());
    }
    let last = options.len();
    Err(CliError::usage(format!("`{header}` has no option {given}: the options are 1 to {last}"))
        .hint("`holdpoint show` lists them; use `--own-words` if the number itself is the answer"))
}
