//! The backends of sessions: an engine in this process, or a daemon. Both implement the traits of
//! this module, and the public handles pass each call on to the one that they have.

use std::future::Future;
use std::io::{BufRead, Write};
use std::sync::Arc;

use holdpoint_common::api::{
    ClientEnd, InboxAsk, ListQuery, SessionList, SessionNews, TurnEnd, Verb,
};
use holdpoint_common::{
    Event, OpenSession, SessionError, SessionId, Snapshot, Supplies, TurnId, Who,
};
use tokio::sync::watch;

use crate::attach_from::AttachFrom;
use crate::local::CarryOut;
use crate::transfer::{ExportError, ImportError};

/// A verb that sessions of this crate carry out, in this process or in a daemon. Implemented for
/// every [`Verb`] of the API.
#[expect(private_bounds, reason = "only this crate can add a verb")]
pub trait SessionVerb: Verb + CarryOut {}

impl<V: Verb + CarryOut> SessionVerb for V {}

/// All sessions of one engine, for one client.
pub(crate) trait Backend: Sized + Clone + Send + Sync {
    type Session: SessionBackend;
    type Watch: WatchBackend;

    fn for_client(self, who: Who) -> Self;
    fn with_supplies(self, supplies: Supplies) -> Self;

    fn open(
        &self,
        open: OpenSession,
    ) -> impl Future<Output = Result<Self::Session, SessionError>> + Send;
    fn get(&self, given: &str) -> impl Future<Output = Result<Self::Session, SessionError>> + Send;
    fn reach(
        &self,
        id: &SessionId,
    ) -> impl Future<Output = Result<Self::Session, SessionError>> + Send;
    fn look(&self, given: &str)
    -> impl Future<Output = Result<Arc<Snapshot>, SessionError>> + Send;
    fn delete(&self, given: &str) -> impl Future<Output = Result<(), SessionError>> + Send;

    /// Carries out a verb on the session with this id, without opening it.
    fn act<V: SessionVerb>(
        &self,
        id: &SessionId,
        verb: V,
    ) -> impl Future<Output = Result<V::Reply, SessionError>> + Send;

    fn turn_end(
        &self,
        id: &SessionId,
        turn: TurnId,
    ) -> impl Future<Output = Result<Option<TurnEnd>, SessionError>> + Send;

    fn list(
        &self,
        query: ListQuery,
    ) -> impl Future<Output = Result<SessionList, SessionError>> + Send;
    fn inbox(&self) -> impl Future<Output = Result<Vec<InboxAsk>, SessionError>> + Send;
    fn asks(
        &self,
        id: &SessionId,
    ) -> impl Future<Output = Result<Vec<InboxAsk>, SessionError>> + Send;
    fn watch(&self) -> impl Future<Output = Result<Self::Watch, SessionError>> + Send;

    fn export(
        &self,
        given: &str,
        out: &mut (dyn Write + Send),
    ) -> impl Future<Output = Result<(), ExportError>> + Send;
    fn import(
        &self,
        text: &mut (dyn BufRead + Send),
    ) -> impl Future<Output = Result<SessionId, ImportError>> + Send;
}

/// One session.
pub(crate) trait SessionBackend: Clone + Send + Sync {
    type Events: EventsBackend;

    fn id(&self) -> &SessionId;

    /// The snapshots that the session publishes.
    fn shown(&self) -> watch::Receiver<Arc<Snapshot>>;

    /// Reads the snapshot again, unless it is always current.
    fn refresh(&self) -> impl Future<Output = Result<(), SessionError>> + Send;

    /// Waits until the published snapshot matches `predicate`.
    fn wait_for(
        &self,
        predicate: impl Fn(&Snapshot) -> bool + Send + Sync,
    ) -> impl Future<Output = Result<Arc<Snapshot>, SessionError>> + Send;

    /// Carries out a verb. An unloaded session is opened first, if the handle may open it and the
    /// verb needs an actor.
    fn act<V: SessionVerb>(
        &self,
        verb: V,
    ) -> impl Future<Output = Result<V::Reply, SessionError>> + Send;

    fn turn_end(
        &self,
        turn: TurnId,
    ) -> impl Future<Output = Result<Option<TurnEnd>, SessionError>> + Send;
    fn attach(
        &self,
        from: AttachFrom,
    ) -> impl Future<Output = Result<Self::Events, SessionError>> + Send;
}

/// The event stream of an attached client.
pub(crate) trait EventsBackend: Send {
    /// The snapshot at the moment of attaching.
    fn snapshot(&self) -> &Arc<Snapshot>;

    /// Whether events from before the attach are still to be delivered.
    fn has_past(&mut self) -> impl Future<Output = bool> + Send;

    fn next(&mut self) -> impl Future<Output = Option<Arc<Event>>> + Send;
    fn next_batch(
        &mut self,
        batch: &mut Vec<Arc<Event>>,
        max: usize,
    ) -> impl Future<Output = ()> + Send;
    fn end(&self) -> ClientEnd;
    fn detach(self) -> impl Future<Output = ()> + Send;
}

/// The stream of changes of all sessions.
pub(crate) trait WatchBackend: Send {
    fn next(&mut self) -> impl Future<Output = Option<SessionNews>> + Send;

    /// Whether the stream ended because the engine was stopped.
    fn has_stopped(&self) -> bool;
}

/// Evaluates an expression with the backend of a handle, whichever it is. `$handle` is an enum of
/// the backends.
macro_rules! with_backend {
    ($handle:ident, $value:expr, $backend:ident => $result:expr) => {
        match $value {
            $handle::Local($backend) => $result,
            #[cfg(feature = "remote")]
            $handle::Remote($backend) => $result,
        }
    };
}

pub(crate) use with_backend;

/// How a handle treats its session after it was unloaded.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum WhenUnloaded {
    /// Use opens the session again, with the client's supplies.
    Open,
    /// Use fails and the session stays unloaded, so that its client can first choose the supplies.
    Fail,
}
