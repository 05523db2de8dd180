//! Into a store.

use std::io::{self, BufRead, Read};
use std::path::Path;
use std::sync::Arc;

use holdpoint_common::{
    AsksMode, Body, Delta, Event, Fact, Limits, PolicyMode, PolicyRules, SessionId, SessionSettings, check_name, json,
};
use serde::de::DeserializeOwned;
use thiserror::Error;

use super::possible::impossible;
use super::{FORMAT, Footer, Header, Sum, VERSION};
use crate::error::SessionError;
use crate::names::{folder_name, fresh_id};
use crate::saved::Scribe;
use crate::state::{Phase, State};
use crate::store::{SessionLog, SessionStore, StoreError, end_of};

/// Why a session was not taken in. Nothing has changed then.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ImportError {
    /// The text is not one that was written out.
    #[error("line {line}: {what}")]
    Line {
        /// Which line, counted from 1.
        line: u64,
        /// What is wrong with it.
        what: String,
    },
    /// The text can't be read.
    #[error("the session can't be read: {0}")]
    Io(#[from] io::Error),
    /// The session can't be saved.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The engine would not, or can't be reached.
    #[error(transparent)]
    Session(#[from] SessionError),
}

/// Takes a session in, under its own id if no other has it, else under a fresh one. Returns the id. What was open when
/// it was written out is ended as after a restart, by these limits. Whatever it was allowed where it was written out, here it asks.
///
/// # Errors
/// [`ImportError`]: with the number of the line, if the text is not as it was written; or if the store fails.
pub async fn import(
    store: &dyn SessionStore,
    limits: &Limits,
    text: &mut (dyn BufRead + Send),
) -> Result<SessionId, ImportError> {
    let Parsed { id: own, mut facts } = parse(text)?;
    let (id, log) = create(store, &own).await?;
    facts.iter_mut().for_each(|event| take_in(Arc::make_mut(event), &id));
    let taken = save(log, limits, facts).await;
    if taken.is_err() {
        // It may be there or not: it is not to be.
        let _ = store.delete(&id).await;
    }
    taken.map(|()| id)
}

/// Saves a session's facts and the end of what is open, together: from then on somebody else may open it.
async fn save(log: Arc<dyn SessionLog>, limits: &Limits, facts: Vec<Arc<Event>>) -> Result<(), ImportError> {
    let Some(state) = State::fold(&facts) else {
        return Err(ImportError::Line { line: 2, what: NO_OPENING.to_owned() });
    };
    let rested = state.is_at_rest() || matches!(state.phase(), Phase::Closed);
    let mut scribe = Scribe::of_unsaved(log, limits, state, facts);
    if !rested {
        scribe.end_what_is_open().map_err(SessionError::from)?;
    }
    scribe.save().await?;
    Ok(())
}

/// Bytes that a line has at most: four times what an answer has, unless more is set.
const MAX_LINE: u64 = 64 << 20;

/// Bytes that a text has at most: all its facts are held at once.
const MAX_TEXT: u64 = 1 << 30;

/// The highest number that a fact can have, and the highest name of what is counted: far above what a session comes to, and all above it can still be counted.
pub(super) const MAX_NUMBER: u64 = 1 << 48;

const NO_OPENING: &str = "the first fact is not the session's opening";

/// What a text says.
struct Parsed {
    id: SessionId,
    facts: Vec<Arc<Event>>,
}

/// Reads a whole text, or says where it is not as it was written.
fn parse(text: &mut (dyn BufRead + Send)) -> Result<Parsed, ImportError> {
    let mut lines = Lines { text, number: 0, bytes: 0, sum: Sum::default() };
    let header = lines.due()?;
    let header: Header = lines.parse(&header)?;
    if header.format != FORMAT {
        return Err(lines.wrong(format!("this is no session (its format is `{}`)", header.format)));
    }
    if header.version > VERSION {
        let what = format!("this is version {}, and this program knows versions up to {VERSION}", header.version);
        return Err(lines.wrong(what));
    }
    let (mut facts, mut last) = (Vec::new(), 0);
    let mut state: Option<State> = None;
    loop {
        let before = lines.sum.end();
        let line = lines.due()?;
        if line.starts_with(br#"{"end":"#) {
            let Footer { end } = lines.parse(&line)?;
            if end.facts != before.facts {
                return Err(lines.wrong(format!("{} facts were written, and {} are there", end.facts, before.facts)));
            }
            if end != before {
                return Err(lines.wrong("the checksum does not fit: a line before this one was changed".to_owned()));
            }
            break;
        }
        let event: Event = lines.parse(&line)?;
        last = follows(&event, last, &header.id).map_err(|what| lines.wrong(what))?;
        let event = Arc::new(event);
        match (&mut state, event.fact()) {
            (None, _) => state = State::open(&event),
            (Some(state), fact) => {
                if let Some(what) = fact.and_then(|fact| impossible(state, fact)) {
                    return Err(lines.wrong(what));
                }
                state.follow(std::slice::from_ref(&event));
            }
        }
        facts.push(event);
    }
    if lines.next()?.is_some() {
        return Err(lines.wrong("this is behind the end".to_owned()));
    }
    Ok(Parsed { id: header.id, facts })
}

/// The number that an event ends with, if it can come after the one that ended with `last`.
fn follows(event: &Event, last: u64, id: &SessionId) -> Result<u64, String> {
    let end = end_of(event);
    if event.seq <= last {
        return Err(format!("number {} is not above {last}", event.seq));
    }
    if end > MAX_NUMBER {
        return Err(format!("number {end} is above {MAX_NUMBER}"));
    }
    match &event.body {
        Body::Fact(Fact::SessionOpened { settings }) if last == 0 && settings.id == *id => Ok(event.seq),
        Body::Fact(Fact::SessionOpened { .. }) => Err("this opens another session".to_owned()),
        _ if last == 0 => Err(NO_OPENING.to_owned()),
        // By its number an answer finds it: of two with one number, it would reach either.
        Body::Fact(Fact::AskRaised { ask }) if ask.id.seq != event.seq => {
            Err(format!("ask {} has another number than its event, {}", ask.id, event.seq))
        }
        // As a session refuses it, and some models do.
        Body::Fact(Fact::PromptAccepted { text, .. }) if text.trim().is_empty() => {
            Err("the prompt is empty".to_owned())
        }
        Body::Fact(Fact::RunStarted { run, .. }) if run.goal.trim().is_empty() => Err("the goal is empty".to_owned()),
        Body::Fact(_) => Ok(event.seq),
        // Facts that could not be read when it was written out.
        Body::Delta(Delta::Gap { from, to }) if from <= to && *from == event.seq => Ok(*to),
        Body::Delta(_) => Err("this is no fact".to_owned()),
    }
}

/// The lines of a text.
struct Lines<'a> {
    text: &'a mut (dyn BufRead + Send),
    number: u64,
    /// What has been read.
    bytes: u64,
    sum: Sum,
}

impl Lines<'_> {
    /// The next line without its end; `None` behind the last.
    fn next(&mut self) -> Result<Option<Vec<u8>>, ImportError> {
        let mut line = Vec::new();
        self.number += 1;
        let (what, bound, left) = match MAX_TEXT - self.bytes {
            left if left < MAX_LINE => ("the text", MAX_TEXT, left),
            _ => ("the line", MAX_LINE, MAX_LINE),
        };
        // One more than there may be, to tell.
        if (&mut *self.text).take(left + 1).read_until(b'\n', &mut line)? == 0 {
            return Ok(None);
        }
        if line.len() as u64 > left {
            return Err(self.wrong(format!("{what} has more than {bound} bytes")));
        }
        self.bytes += line.len() as u64;
        self.sum.add(&line);
        match line.pop() {
            Some(b'\n') => Ok(Some(line)),
            _ => Err(self.wrong("it is cut".to_owned())),
        }
    }

    /// The next line, which there has to be.
    fn due(&mut self) -> Result<Vec<u8>, ImportError> {
        let line = self.next()?;
        line.ok_or_else(|| self.wrong("the text ends before its last line".to_owned()))
    }

    fn parse<T: DeserializeOwned>(&self, line: &[u8]) -> Result<T, ImportError> {
        serde_json::from_slice(line).map_err(|error| self.wrong(json::fault(&error)))
    }

    fn wrong(&self, what: String) -> ImportError {
        ImportError::Line { line: self.number, what }
    }
}

/// Makes a log under the session's own id, or under a fresh one if there is such a session.
async fn create(store: &dyn SessionStore, own: &SessionId) -> Result<(SessionId, Arc<dyn SessionLog>), StoreError> {
    let mut id = own.clone();
    loop {
        match store.create(&id).await {
            Ok(log) => return Ok((id, log)),
            Err(StoreError::Taken { .. }) => id = fresh_id(),
            Err(error) => return Err(error),
        }
    }
}

/// Makes an event one of the session of this id, wherever it names its own; and takes from it what a text has no say in:
/// what runs here unasked is for the user here to say, and a name has to stay on its line.
fn take_in(event: &mut Event, id: &SessionId) {
    let Body::Fact(fact) = &mut event.body else { return };
    match fact {
        Fact::SessionOpened { settings } => {
            let name = Some(std::mem::take(&mut settings.name)).filter(|name| check_name(name).is_ok());
            let folder = || folder_name(Path::new(&settings.workspace));
            *settings = SessionSettings {
                id: id.clone(),
                name: name.or_else(folder).unwrap_or_else(|| id.to_string()),
                workspace: std::mem::take(&mut settings.workspace),
                model: std::mem::take(&mut settings.model),
                asks: AsksMode::Wait,
                policy: PolicyMode::Ask,
                rules: PolicyRules::default(),
                max_steps: settings.max_steps,
                max_turn_tokens: settings.max_turn_tokens,
            };
        }
        Fact::SessionRenamed { name, .. } if check_name(name).is_err() => *name = id.to_string(),
        Fact::DebugChanged { enabled, .. } => *enabled = false,
        Fact::AskRaised { ask } => ask.id.session = id.clone(),
        Fact::AskAnswered { ask, .. } | Fact::AskClosed { ask, .. } => ask.session = id.clone(),
        Fact::TurnFinished { receipt: Some(receipt), .. } => {
            receipt.asks.iter_mut().for_each(|ask| ask.session = id.clone());
        }
        Fact::TurnFinished { receipt: None, .. }
        | Fact::SessionRestored { .. }
        | Fact::SessionClosed { .. }
        | Fact::SessionRenamed { .. }
        | Fact::ModelChanged { .. }
        | Fact::PromptAccepted { .. }
        | Fact::PromptReturned { .. }
        | Fact::PromptDelivered { .. }
        | Fact::RunStarted { .. }
        | Fact::IterationStarted { .. }
        | Fact::RunWaiting { .. }
        | Fact::RunExtended { .. }
        | Fact::RunFinished { .. }
        | Fact::TaskAdded { .. }
        | Fact::TaskMoved { .. }
        | Fact::NoteTaken { .. }
        | Fact::TurnStarted { .. }
        | Fact::StepStarted
        | Fact::AssistantMessage(_)
        | Fact::ToolStarted { .. }
        | Fact::ToolFinished(_)
        | Fact::FilesChanged { .. }
        | Fact::HistoryCut(_)
        | Fact::ProjectCut { .. }
        | Fact::JobStarted { .. }
        | Fact::JobEnded { .. }
        | Fact::StepFinished { .. }
        | Fact::HoldChanged { .. }
        | Fact::TurnCut { .. } => {}
    }
}
