//! Importing a session into a store.

use std::io::{self, BufRead, Read};
use std::path::Path;
use std::sync::Arc;

use holdpoint_common::{
    AskFact, AsksMode, Body, Delta, Event, Fact, Limits, PolicyMode, PolicyRules, PromptFact,
    RunFact, SandboxSettings, SessionError, SessionFact, SessionId, SessionSettings, TurnFact,
    check_name, json,
};
use serde::de::DeserializeOwned;
use thiserror::Error;

use super::possible::{MAX_NUMBER, impossible_reason};
use super::{FORMAT, Footer, Header, Sum, VERSION};
use crate::names::{folder_name, fresh_id};
use crate::saved::OfflineSession;
use crate::state::{Phase, State};
use crate::store::{NewLog, SessionLog, SessionStore, StoreError, last_seq_of};

/// The reason why an import failed. A partly saved session is deleted again, as far as the store
/// allows.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ImportError {
    /// The text is not a valid export.
    #[error("line {line}: {reason}")]
    Line {
        /// The number of the line, counted from 1.
        line: u64,
        /// The reason why the line is invalid.
        reason: String,
    },
    /// The text can't be read.
    #[error("the session can't be read: {0}")]
    Io(#[from] io::Error),
    /// The session can't be saved.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The engine refused the session, or can't be reached.
    #[error(transparent)]
    Session(#[from] SessionError),
}

/// Imports a session under its own id, or under a new one if that is taken, and returns the id.
/// Work that was open at the export is ended as after a restart, with these limits. Permissions are
/// not imported: the session has the asks mode `wait` and the policy mode `ask`.
///
/// # Errors
/// [`ImportError`] if the text is not a valid export, with the number of the line, or if the store
/// fails.
pub async fn import(
    store: &dyn SessionStore,
    limits: &Limits,
    text: &mut (dyn BufRead + Send),
) -> Result<SessionId, ImportError> {
    let Parsed { id: exported_id, mut facts } = parse(text)?;
    let (id, log) = create(store, &exported_id).await?;
    facts.iter_mut().for_each(|event| adopt(Arc::make_mut(event), &id));
    let saved = save(log, limits, facts).await;
    if saved.is_err() {
        // The session may be in the store in spite of the error, and must not stay there.
        let _ = store.delete(&id).await;
    }
    saved.map(|()| id)
}

/// Saves a session's facts together with the end of its open work, because another client may open
/// the session as soon as it is saved.
async fn save(
    log: Arc<dyn SessionLog>,
    limits: &Limits,
    facts: Vec<Arc<Event>>,
) -> Result<(), ImportError> {
    let Some(state) = State::fold(&facts) else {
        return Err(ImportError::Line { line: 2, reason: NO_OPENING.to_owned() });
    };
    let has_open_work = !state.is_at_rest() && !matches!(state.phase(), Phase::Closed);
    let mut session = OfflineSession::new_unsaved(log, limits, state, facts);
    if has_open_work {
        session.end_open_work().map_err(SessionError::from)?;
    }
    session.save().await?;
    Ok(())
}

/// The maximum length of a line in bytes: four times the default limit of an answer.
const MAX_LINE: u64 = 64 << 20;

/// The maximum length of a text in bytes. Bounded because all its facts are in memory at once.
const MAX_TEXT: u64 = 1 << 30;

const NO_OPENING: &str = "the first fact is not the session's opening";

/// The contents of a text.
struct Parsed {
    id: SessionId,
    facts: Vec<Arc<Event>>,
}

/// Reads a whole text. The error gives the first line that is invalid.
fn parse(text: &mut (dyn BufRead + Send)) -> Result<Parsed, ImportError> {
    let mut lines = Lines { text, number: 0, bytes: 0, sum: Sum::default() };
    let header = lines.next_required()?;
    let header: Header = lines.parse(&header)?;
    if header.format != FORMAT {
        return Err(lines.error(format!("not an exported session (format `{}`)", header.format)));
    }
    if header.version > VERSION {
        let reason = format!(
            "format version {} is not supported; the newest supported is {VERSION}",
            header.version
        );
        return Err(lines.error(reason));
    }
    let mut facts = Vec::new();
    let mut last = 0;
    let mut state: Option<State> = None;
    loop {
        let before = lines.sum.end();
        let line = lines.next_required()?;
        if line.starts_with(br#"{"end":"#) {
            let Footer { end } = lines.parse(&line)?;
            if end.facts != before.facts {
                return Err(lines.error(format!(
                    "{} facts were exported, but {} are here",
                    end.facts, before.facts
                )));
            }
            if end != before {
                return Err(lines
                    .error("the checksum does not match: an earlier line was changed".to_owned()));
            }
            break;
        }
        let event: Event = lines.parse(&line)?;
        last = check_next(&event, last, &header.id).map_err(|reason| lines.error(reason))?;
        let event = Arc::new(event);
        match (&mut state, event.fact()) {
            (None, _) => state = State::open(&event),
            (Some(state), fact) => {
                if let Some(reason) = fact.and_then(|fact| impossible_reason(state, fact)) {
                    return Err(lines.error(reason));
                }
                state.follow(std::slice::from_ref(&event));
            }
        }
        facts.push(event);
    }
    if lines.next()?.is_some() {
        return Err(lines.error("unexpected line after the end".to_owned()));
    }
    Ok(Parsed { id: header.id, facts })
}

/// Checks that an event can follow the one that ended with number `last`, and returns its own last
/// number.
fn check_next(event: &Event, last: u64, id: &SessionId) -> Result<u64, String> {
    let end = last_seq_of(event);
    if event.seq <= last {
        return Err(format!("number {} is not above {last}", event.seq));
    }
    if end > MAX_NUMBER {
        return Err(format!("number {end} is above {MAX_NUMBER}"));
    }
    match &event.body {
        Body::Fact(Fact::Session(SessionFact::Opened { settings }))
            if last == 0 && settings.id == *id =>
        {
            Ok(event.seq)
        }
        Body::Fact(Fact::Session(SessionFact::Opened { .. })) => {
            Err("the line opens another session".to_owned())
        }
        _ if last == 0 => Err(NO_OPENING.to_owned()),
        // An answer finds its ask by the number. If two asks had the same number, the answer could
        // reach either.
        Body::Fact(Fact::Ask(AskFact::Raised { ask })) if ask.id.seq != event.seq => {
            Err(format!("the number of ask {} is not that of its event, {}", ask.id, event.seq))
        }
        // Sessions refuse this, and so do some models.
        Body::Fact(Fact::Prompt(PromptFact::Accepted { text, .. })) if text.trim().is_empty() => {
            Err("the prompt is empty".to_owned())
        }
        Body::Fact(Fact::Run(RunFact::Started { run, .. })) if run.goal.trim().is_empty() => {
            Err("the goal is empty".to_owned())
        }
        Body::Fact(_) => Ok(event.seq),
        // Facts that could not be read during the export.
        Body::Delta(Delta::Gap { from, to }) if from <= to && *from == event.seq => Ok(*to),
        Body::Delta(_) => Err("not a fact".to_owned()),
    }
}

/// The lines of a text.
struct Lines<'a> {
    text: &'a mut (dyn BufRead + Send),
    number: u64,
    /// How many bytes were read.
    bytes: u64,
    sum: Sum,
}

impl Lines<'_> {
    /// The next line, without its end; `None` after the last.
    fn next(&mut self) -> Result<Option<Vec<u8>>, ImportError> {
        let mut line = Vec::new();
        self.number += 1;
        let (part, limit, allowed) = match MAX_TEXT - self.bytes {
            remaining if remaining < MAX_LINE => ("the text", MAX_TEXT, remaining),
            _ => ("the line", MAX_LINE, MAX_LINE),
        };
        // One byte more than allowed, to detect a line that is too long.
        if (&mut *self.text).take(allowed + 1).read_until(b'\n', &mut line)? == 0 {
            return Ok(None);
        }
        if line.len() as u64 > allowed {
            return Err(self.error(format!("{part} has more than {limit} bytes")));
        }
        self.bytes += line.len() as u64;
        self.sum.add(&line);
        match line.pop() {
            Some(b'\n') => Ok(Some(line)),
            _ => Err(self.error("the line is incomplete".to_owned())),
        }
    }

    /// The next line, which must exist.
    fn next_required(&mut self) -> Result<Vec<u8>, ImportError> {
        let line = self.next()?;
        line.ok_or_else(|| self.error("the text ends before its last line".to_owned()))
    }

    fn parse<T: DeserializeOwned>(&self, line: &[u8]) -> Result<T, ImportError> {
        serde_json::from_slice(line).map_err(|error| self.error(json::describe(&error)))
    }

    fn error(&self, reason: String) -> ImportError {
        ImportError::Line { line: self.number, reason }
    }
}

/// Creates a log under the session's own id, or under a new one if that is taken.
async fn create(
    store: &dyn SessionStore,
    exported_id: &SessionId,
) -> Result<(SessionId, Arc<dyn SessionLog>), StoreError> {
    let mut id = exported_id.clone();
    loop {
        match store.create(&id, NewLog::default()).await {
            Ok(log) => return Ok((id, log)),
            Err(StoreError::Taken { .. }) => id = fresh_id(),
            Err(error) => return Err(error),
        }
    }
}

/// Assigns an event to the session with this id, and removes settings that an import must not
/// change: permissions and debug logging, which belong to the user of this store, and invalid
/// names.
fn adopt(event: &mut Event, id: &SessionId) {
    let Body::Fact(fact) = &mut event.body else { return };
    match fact {
        Fact::Session(fact) => adopt_session_fact(fact, id),
        Fact::Ask(AskFact::Raised { ask }) => ask.id.session = id.clone(),
        Fact::Ask(AskFact::Answered { ask, .. } | AskFact::Closed { ask, .. }) => {
            ask.session = id.clone();
        }
        Fact::Turn(TurnFact::Finished { receipt: Some(receipt), .. }) => {
            receipt.asks.iter_mut().for_each(|ask| ask.session = id.clone());
        }
        Fact::Turn(_)
        | Fact::Tool(_)
        | Fact::Prompt(_)
        | Fact::Run(_)
        | Fact::Task(_)
        | Fact::Job(_) => {}
    }
}

fn adopt_session_fact(fact: &mut SessionFact, id: &SessionId) {
    match fact {
        SessionFact::Opened { settings } => {
            let name =
                Some(std::mem::take(&mut settings.name)).filter(|name| check_name(name).is_ok());
            let folder = || folder_name(Path::new(&settings.workspace));
            *settings = SessionSettings {
                id: id.clone(),
                name: name.or_else(folder).unwrap_or_else(|| id.to_string()),
                workspace: std::mem::take(&mut settings.workspace),
                model: std::mem::take(&mut settings.model),
                // Its command is not run: it comes from the file.
                agent: None,
                asks: AsksMode::Wait,
                policy: PolicyMode::Ask,
                rules: PolicyRules::default(),
                sandbox: SandboxSettings {
                    level: settings.sandbox.level,
                    ..SandboxSettings::off()
                },
                max_steps: settings.max_steps,
                max_turn_tokens: settings.max_turn_tokens,
            };
        }
        SessionFact::Renamed { name, .. } => {
            if check_name(name).is_err() {
                *name = id.to_string();
            }
        }
        // The fleet of the file is not the one here.
        SessionFact::Moved { machine, .. } => *machine = None,
        SessionFact::DebugChanged { enabled, .. } => *enabled = false,
        SessionFact::AsksChanged { asks, .. } => *asks = AsksMode::Wait,
        SessionFact::PolicyChanged { policy, .. } => *policy = PolicyMode::Ask,
        SessionFact::Restored { .. }
        | SessionFact::Closed { .. }
        | SessionFact::ModelChanged { .. }
        | SessionFact::ClientRefused(_)
        | SessionFact::HoldChanged { .. } => {}
    }
}
