//! `holdpoint approve`, `deny`, `continue` and `answer`: what answers an ask.

use std::io::{self, BufRead, IsTerminal};

use clap_complete::engine::ArgValueCompleter;
use holdpoint_common::{Answer, AnswerError, Ask, AskId, AskRequest, PauseKind, Question, QuestionReply, SessionId};
use holdpoint_session::Sessions;
use holdpoint_session::folders::Folders;
use holdpoint_tools::shown::prose_line;

use crate::error::CliError;
use crate::follow::asked;
use crate::runtime::block_on;
use crate::said::unless_saved;
use crate::select::complete_ask;
use crate::sessions::control;
use crate::ui::{Style, Ui};

/// An ask.
#[derive(Debug, clap::Args)]
struct AskArg {
    /// The ask's id, as `holdpoint inbox` prints it. Of a session, on a terminal: its first ask is shown, and
    /// you are asked back
    #[arg(value_name = "ASK", add = ArgValueCompleter::new(complete_ask))]
    ask: String,

    /// Prints what came of it as JSON
    #[arg(long)]
    json: bool,
}

/// Approves what a tool wants to do
///
/// On a terminal, it shows the ask first, and asks whether to approve it.
#[derive(Debug, clap::Args)]
pub(crate) struct Approve {
    #[command(flatten)]
    ask: AskArg,

    /// Also approves the same thing for as long as the session lives
    #[arg(long)]
    always: bool,

    /// Approves without showing the ask first
    #[arg(long, short)]
    yes: bool,
}

/// Denies what a tool wants to do
#[derive(Debug, clap::Args)]
pub(crate) struct Deny {
    #[command(flatten)]
    ask: AskArg,

    /// Why: the model reads it at once
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

/// Lets a tool go on that has stopped for you
#[derive(Debug, clap::Args)]
pub(crate) struct Continue {
    #[command(flatten)]
    ask: AskArg,
}

/// Answers a question
#[derive(Debug, clap::Args)]
pub(crate) struct Words {
    #[command(flatten)]
    ask: AskArg,

    /// The answer: an option's number, its label, or your own words. For several questions, one each, in their
    /// order
    #[arg(value_name = "ANSWER", required_unless_present = "skip")]
    answers: Vec<String>,

    /// Takes numbers as your own words, too
    #[arg(long)]
    own_words: bool,

    /// Declines to answer: the model is told, and goes on
    #[arg(long, conflicts_with_all = ["answers", "own_words"])]
    skip: bool,
}

pub(crate) fn approve(args: &Approve, folders: &Folders, ui: &mut Ui) -> Result<i32, CliError> {
    let approve = |_: Option<&Ask>| Ok(Answer::Approve { always: args.always });
    answer("approve", &args.ask, !args.yes, &approve, folders, ui)
}

pub(crate) fn deny(args: &Deny, folders: &Folders, ui: &mut Ui) -> Result<i32, CliError> {
    let reason = args.reason.as_ref().filter(|reason| !reason.trim().is_empty());
    answer("deny", &args.ask, false, &|_| Ok(Answer::Deny { reason: reason.cloned() }), folders, ui)
}

pub(crate) fn go_on(args: &Continue, folders: &Folders, ui: &mut Ui) -> Result<i32, CliError> {
    answer("continue", &args.ask, false, &|_| Ok(Answer::Resume), folders, ui)
}

pub(crate) fn words(args: &Words, folders: &Folders, ui: &mut Ui) -> Result<i32, CliError> {
    if args.skip {
        return answer("answer", &args.ask, false, &|_| Ok(Answer::Cancel), folders, ui);
    }
    // Without the questions there is nothing to be replied, and nothing is: such an answer fits none.
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

/// `ask_back`: on a terminal, shows the ask first and asks for confirmation.
fn answer(
    command: &str,
    args: &AskArg,
    ask_back: bool,
    make: &dyn Fn(Option<&Ask>) -> Result<Answer, CliError>,
    folders: &Folders,
    ui: &mut Ui,
) -> Result<i32, CliError> {
    if args.ask.trim().is_empty() {
        return Err(CliError::usage("no ask is named").hint("`holdpoint inbox` lists what waits for an answer"));
    }
    block_on(async {
        let sessions = control(folders, command).await?;
        let (id, answer) = match args.ask.parse::<AskId>() {
            Ok(id) => {
                let open = sessions.look(id.session.as_str()).await?;
                whole(&id, &open.settings.id)?;
                let ask = open.asks.iter().find(|ask| ask.id == id);
                // Of one that is not open, the session says what became of it, or that it never was.
                let answer = make(ask)?;
                if let Some(ask) = ask.filter(|ask| !takes(ask, &answer)) {
                    return Err(other_kind(ask));
                }
                if let Some(ask) = ask.filter(|_| ask_back && io::stdin().is_terminal()) {
                    if !ui.err_is_terminal() {
                        let message = "the ask can't be shown first: standard error is no terminal";
                        return Err(CliError::usage(message).hint("`--yes` approves without showing it"));
                    }
                    if !agreed(ask, &answer, ui)? {
                        return not_answered(ui);
                    }
                }
                (id, answer)
            }
            Err(_) => {
                let ask = first_of(&args.ask, &sessions).await?;
                let answer = make(Some(&ask))?;
                if !takes(&ask, &answer) {
                    return Err(other_kind(&ask));
                }
                if !agreed(&ask, &answer, ui)? {
                    return not_answered(ui);
                }
                (ask.id, answer)
            }
        };
        let answered = sessions.answer(&id, answer).await?;
        if args.json {
            ui.json(&answered)?;
        } else {
            ui.print(&format!("answered{}\n", unless_saved(answered.saved)))?;
        }
        Ok(0)
    })
}

/// An ask is named by its session's whole id: a name may be another session's by now, with an ask of the same number.
fn whole(id: &AskId, session: &SessionId) -> Result<(), CliError> {
    if id.session == *session {
        return Ok(());
    }
    let whole = AskId { session: session.clone(), ..id.clone() };
    Err(CliError::usage(format!("`{id}` is no ask's id: those begin with the whole id of their session"))
        .hint(format!("{whole}, if it is what you mean: `holdpoint inbox` has what it wants")))
}

/// The ask that a session shows.
async fn first_of(what: &str, sessions: &Sessions) -> Result<Ask, CliError> {
    let snapshot = sessions.look(what).await?;
    let Some(ask) = snapshot.asks.first() else {
        return Err(CliError::failed(format!("session {} asks nothing", snapshot.settings.id))
            .hint("`holdpoint inbox` lists what waits for an answer"));
    };
    if !io::stdin().is_terminal() {
        let message = format!("`{what}` is a session, and without a terminal what it asks can't be shown first");
        return Err(CliError::usage(message).hint(format!("answer the ask itself, if it is what you mean: {}", ask.id)));
    }
    Ok(ask.clone())
}

fn not_answered(ui: &mut Ui) -> Result<i32, CliError> {
    ui.line(Style::Dim, "not answered")?;
    ui.flush()?;
    Ok(1)
}

/// Shows an ask, and asks whether this is what is to be answered.
fn agreed(ask: &Ask, answer: &Answer, ui: &mut Ui) -> Result<bool, CliError> {
    asked::show(ask, 0, false, ui)?;
    ui.line(Style::Bold, &format!("{}? [y/N]", answer.word()))?;
    ui.flush()?;
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line)?;
    Ok(matches!(line.trim(), "y" | "Y" | "yes"))
}

/// Whether answers of this kind are for such asks.
fn takes(ask: &Ask, answer: &Answer) -> bool {
    !matches!(ask.request.accepts(answer), Err(AnswerError::KindMismatch { .. }))
}

/// Another kind of ask takes such an answer.
fn other_kind(ask: &Ask) -> CliError {
    let id = &ask.id;
    let (kind, command) = match &ask.request {
        AskRequest::Question(_) => ("a question", format!("`holdpoint answer {id} ANSWER`")),
        AskRequest::Pause(pause) => match pause.kind {
            PauseKind::Confirm => ("a Confirm", format!("`holdpoint approve {id}` or `holdpoint deny {id}`")),
            PauseKind::Continue => ("a Continue", format!("`holdpoint continue {id}`")),
        },
    };
    CliError::failed(format!("ask {id} is {kind}")).hint(format!("{command} answers it"))
}

/// The replies to a question, one for each.
fn reply(ask: &Ask, given: &[String], own_words: bool) -> Result<Answer, CliError> {
    let AskRequest::Question(request) = &ask.request else { return Err(other_kind(ask)) };
    let (answers, questions) = (given.len(), request.questions.len());
    if answers != questions {
        let count = |count: usize, of: &str| format!("{count} {of}{}", if count == 1 { "" } else { "s" });
        let what = format!("{} for {}", count(answers, "answer"), count(questions, "question"));
        return Err(CliError::usage(what).hint("give one answer for each, in their order: `holdpoint show` has them"));
    }
    let answers = request.questions.iter().zip(given).map(|(question, given)| {
        let answer = if own_words { given.clone() } else { meant(question, given)? };
        Ok(QuestionReply { id: question.id.clone(), answer: Some(answer) })
    });
    Ok(Answer::Reply { answers: answers.collect::<Result<_, CliError>>()? })
}

/// What is meant by an answer: by the number of an option, its label. One that no option has was most likely mistyped.
fn meant(question: &Question, given: &str) -> Result<String, CliError> {
    let (header, options) = (prose_line(question.header.trim()), &question.options);
    if given.trim().is_empty() {
        return Err(CliError::usage(format!("the answer to `{header}` is empty"))
            .hint("say something, or decline to answer with `--skip`"));
    }
    if let Some(option) = given.parse::<usize>().ok().and_then(|number| options.get(number.checked_sub(1)?)) {
        return Ok(option.label.clone());
    }
    let is_number = given.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number || options.is_empty() || options.iter().any(|option| option.label == given) {
        return Ok(given.to_owned());
    }
    let last = options.len();
    Err(CliError::usage(format!("`{header}` has no option {given}: they are 1 to {last}"))
        .hint("`holdpoint show` has them; `--own-words` if the number itself is the answer"))
}
