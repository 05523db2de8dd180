//! Into a store.

use std::io::{self, BufRead};
use std::sync::Arc;

use holdpoint_common::{Body, Delta, Event, Fact, Hold, SessionId, SessionStatus, SessionSummary};
use serde::de::DeserializeOwned;
use thiserror::Error;

use super::{FORMAT, Footer, Header, Sum, VERSION};
use crate::error::SessionError;
use crate::manager::{fresh_id, mend};
use crate::state::State;
use crate::store::{SessionStore, StoreError};

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
    /// The session is saved, but was open when it was written out, and can't be brought to rest.
    #[error("{0}")]
    Mend(SessionError),
    /// The engine would not, or can't be reached.
    #[error(transparent)]
    Session(#[from] SessionError),
}

/// Takes a session in, under its own id if no other has it, else under a fresh one. Returns the id. What was open when
/// it was written out is ended as after a restart.
///
/// # Errors
/// [`ImportError`]: with the number of the line, if the text is not as it was written; or if the store fails.
pub async fn import(store: &dyn SessionStore, text: &mut (dyn BufRead + Send)) -> Result<SessionId, ImportError> {
    let Parsed { id: own, mut facts } = parse(text)?;
    let id = free_id(store, &own).await?;
    if id != own {
        facts.iter_mut().for_each(|event| rename(Arc::make_mut(event), &id));
    }
    let Some(state) = State::fold(&facts) else {
        return Err(ImportError::Line { line: 2, what: NO_OPENING.to_owned() });
    };
    let summary = SessionSummary { live: false, ..SessionSummary::from(&state.snapshot(state.last(), 0, true)) };
    let open = summary.status != SessionStatus::Idle || summary.hold != Hold::Off;
    let log = store.create(&id).await?;
    if let Err(error) = log.append(0, facts, summary).await {
        // It may be there or not: it is not to be.
        let _ = store.delete(&id).await;
        return Err(error.into());
    }
    if open {
        mend(store, &id).await.map_err(ImportError::Mend)?;
    }
    Ok(id)
}

const NO_OPENING: &str = "the first fact is not the session's opening";

/// What a text says.
struct Parsed {
    id: SessionId,
    facts: Vec<Arc<Event>>,
}

/// Reads a whole text, or says where it is not as it was written.
fn parse(text: &mut (dyn BufRead + Send)) -> Result<Parsed, ImportError> {
    let mut lines = Lines { text, number: 0, sum: Sum::default() };
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
        facts.push(Arc::new(event));
    }
    if lines.next()?.is_some() {
        return Err(lines.wrong("this is behind the end".to_owned()));
    }
    Ok(Parsed { id: header.id, facts })
}

/// The number that an event ends with, if it can come after the one that ended with `last`.
fn follows(event: &Event, last: u64, id: &SessionId) -> Result<u64, String> {
    if event.seq <= last {
        return Err(format!("number {} is not above {last}", event.seq));
    }
    match &event.body {
        Body::Fact(Fact::SessionOpened { settings }) if last == 0 && settings.id == *id => Ok(event.seq),
        Body::Fact(Fact::SessionOpened { .. }) => Err("this opens another session".to_owned()),
        _ if last == 0 => Err(NO_OPENING.to_owned()),
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
    sum: Sum,
}

impl Lines<'_> {
    /// The next line without its end; `None` behind the last.
    fn next(&mut self) -> Result<Option<Vec<u8>>, ImportError> {
        let mut line = Vec::new();
        self.number += 1;
        if self.text.read_until(b'\n', &mut line)? == 0 {
            return Ok(None);
        }
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
        serde_json::from_slice(line).map_err(|error| self.wrong(error.to_string()))
    }

    fn wrong(&self, what: String) -> ImportError {
        ImportError::Line { line: self.number, what }
    }
}

/// The session's own id, or a fresh one if there is such a session.
async fn free_id(store: &dyn SessionStore, own: &SessionId) -> Result<SessionId, StoreError> {
    let mut id = own.clone();
    loop {
        match store.open(&id).await {
            Err(StoreError::Unknown { .. }) => return Ok(id),
            Err(error) => return Err(error),
            Ok(_) => id = fresh_id(),
        }
    }
}

/// Makes an event one of another session: wherever it names its own.
fn rename(event: &mut Event, id: &SessionId) {
    let Body::Fact(fact) = &mut event.body else { return };
    match fact {
        Fact::SessionOpened { settings } => settings.id = id.clone(),
        Fact::AskRaised { ask } => ask.id.session = id.clone(),
        Fact::AskAnswered { ask, .. } | Fact::AskClosed { ask, .. } => ask.session = id.clone(),
        Fact::TurnFinished { receipt: Some(receipt), .. } => {
            receipt.asks.iter_mut().for_each(|ask| ask.session = id.clone());
        }
        Fact::TurnFinished { receipt: None, .. }
        | Fact::SessionRestored { .. }
        | Fact::SessionClosed { .. }
        | Fact::SessionRenamed { .. }
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
        | Fact::JobStarted { .. }
        | Fact::JobEnded { .. }
        | Fact::StepFinished { .. }
        | Fact::HoldChanged { .. }
        | Fact::TurnCut { .. } => {}
    }
}
