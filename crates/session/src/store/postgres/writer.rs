//! The writes, which commit together if they wait at the same time.

use std::ops::Range;
use std::sync::Arc;

use futures_util::future::join_all;
use holdpoint_common::{Event, SessionId, SessionSummary, Timestamp};
use tokio::sync::{mpsc, oneshot};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Row, Statement};

use super::StoreError;
use super::connection::{Connected, Connection, Database, Statements, failed};
use super::lease::Incarnation;
use super::notifying::{CHANNEL, ShownSessions};
use super::rows::Rows;
use crate::store::stored_facts::{check_sum, signed};
use crate::store::{NewLog, SavedState, end_of_draft};

/// The most writes that share a commit.
const MAX_GROUP: usize = 256;

/// A request to write. A session has at most one of each kind in progress, and its sender waits for
/// the result.
pub(super) struct PendingWrite {
    pub(super) write: Write,
    /// The result of [`Write::Create`] and [`Write::Own`] is the epoch of the owner, that of
    /// [`Change::Reserve`] the first reserved number, and that of [`Write::TakeName`] 1 if the name is
    /// taken now. No other number has a meaning.
    pub(super) done: oneshot::Sender<Result<u64, StoreError>>,
}

pub(super) enum Write {
    Create {
        session: SessionId,
        opened: Timestamp,
        /// The home, as the database has it.
        home: String,
        contents: Box<NewLog>,
    },
    /// Makes this machine the owner, with the next epoch.
    Own {
        session: SessionId,
    },
    /// A change by the owner of this epoch.
    Change {
        session: SessionId,
        epoch: u64,
        change: Change,
    },
    Delete {
        session: SessionId,
    },
    /// Takes a name for a session of this machine.
    TakeName {
        session: SessionId,
        name: String,
    },
    /// Gives back the names of a session of this machine, except these.
    KeepNames {
        session: SessionId,
        kept: Vec<String>,
    },
}

pub(super) enum Change {
    Append {
        after: u64,
        facts: Vec<Arc<Event>>,
        summary: Box<SessionSummary>,
        /// The new home, if it changes.
        home: Option<String>,
    },
    SetHome {
        home: String,
    },
    KeepDraft {
        pieces: Vec<Arc<Event>>,
    },
    KeepState {
        state: SavedState,
    },
    Reserve {
        count: u64,
    },
    GiveBack {
        unused: Range<u64>,
    },
    /// Gives up the session.
    Release,
}

const CREATE: &str = "
    WITH made AS (
        INSERT INTO sessions (id, opened, home, owner, epoch, reserved, last, summary)
        VALUES ($1, $2, $10, $3, 1, $4, $5, $6) ON CONFLICT DO NOTHING RETURNING id
    ), added AS (
        INSERT INTO facts (session, seq, after, epoch, event, check_sum)
        SELECT id, seq, 0, 1, event, check_sum
        FROM made, unnest($7::bigint[], $8::text[], $9::bigint[]) AS fact (seq, event, check_sum)
    ) SELECT id FROM made";

/// The owner may be this machine, with an earlier epoch. The lease of another one must have ended. A
/// program of this machine that was started again elsewhere owns nothing more.
const OWN: &str = "
    UPDATE sessions SET owner = $2, epoch = epoch + 1
    WHERE id = $1 AND (owner IS NULL OR owner = $2 OR NOT EXISTS (
        SELECT FROM machines WHERE name = sessions.owner AND until > now()))
    AND EXISTS (SELECT FROM machines WHERE name = $2 AND incarnation = $3)
    RETURNING epoch";

/// The check of the epoch and of the order, the facts, and the home of a session that moves, are one
/// statement, so that they can't differ.
const APPEND: &str = "
    WITH own AS (
        UPDATE sessions SET last = $4, summary = $5, home = coalesce($11, home)
        WHERE id = $1 AND epoch = $2 AND last = $3
        RETURNING id
    ), added AS (
        INSERT INTO facts (session, seq, after, epoch, event, check_sum)
        SELECT id, seq, after, $2, event, check_sum
        FROM own, unnest($6::bigint[], $7::bigint[], $8::text[], $9::bigint[])
            AS fact (seq, after, event, check_sum)
    ), dropped AS (
        DELETE FROM drafts USING own WHERE session = id AND seq < $10
    ) SELECT id FROM own";

const KEEP_DRAFT: &str = "
    WITH own AS (SELECT id FROM sessions WHERE id = $1 AND epoch = $2 FOR UPDATE), added AS (
        INSERT INTO drafts (session, seq, event, check_sum)
        SELECT id, seq, event, check_sum
        FROM own, unnest($3::bigint[], $4::text[], $5::bigint[]) AS piece (seq, event, check_sum)
        ON CONFLICT (session, seq) DO UPDATE
            SET event = excluded.event, check_sum = excluded.check_sum
    ) SELECT id FROM own";

const KEEP_STATE: &str = "
    WITH own AS (SELECT id FROM sessions WHERE id = $1 AND epoch = $2 FOR UPDATE), added AS (
        INSERT INTO states (session, seq, state, check_sum) SELECT id, $3, $4, $5 FROM own
        ON CONFLICT (session) DO UPDATE
            SET seq = excluded.seq, state = excluded.state, check_sum = excluded.check_sum
            WHERE states.seq < excluded.seq
    ) SELECT id FROM own";

const RESERVE: &str = "
    UPDATE sessions SET reserved = greatest(reserved, last) + $3 WHERE id = $1 AND epoch = $2
    RETURNING reserved";

/// Does nothing if more numbers were reserved since.
const GIVE_BACK: &str = "
    UPDATE sessions SET reserved = CASE reserved WHEN $4::bigint - 1 THEN $3::bigint - 1 ELSE reserved END
    WHERE id = $1 AND epoch = $2 RETURNING id";

const SET_HOME: &str = "UPDATE sessions SET home = $3 WHERE id = $1 AND epoch = $2 RETURNING id";

const RELEASE: &str = "
    WITH own AS (
        UPDATE sessions SET owner = NULL WHERE id = $1 AND epoch = $2 RETURNING id
    ), without_names AS (DELETE FROM names USING own WHERE session = id)
    SELECT id FROM own";

/// The caller knows the names of this machine. One of another machine is held while that has a lease
/// and the session; for a minute also without the session, which is created after its name is taken.
const TAKE_NAME: &str = "
    INSERT INTO names (name, session, machine, taken) VALUES ($1, $2, $3, now())
    ON CONFLICT (name) DO UPDATE
        SET session = excluded.session, machine = excluded.machine, taken = now()
        WHERE names.machine = excluded.machine OR names.session = excluded.session
        OR NOT EXISTS (SELECT FROM machines WHERE name = names.machine AND until > now())
        OR names.taken < now() - interval '1 minute' AND NOT EXISTS (
            SELECT FROM sessions WHERE id = names.session AND owner = names.machine)
    RETURNING 1";

const KEEP_NAMES: &str =
    "DELETE FROM names WHERE session = $1 AND machine = $2 AND name <> ALL ($3::text[])";

const DELETE: &str = "
    WITH gone AS (
        DELETE FROM sessions WHERE id = $1 AND (owner IS NULL OR owner = $2 OR NOT EXISTS (
            SELECT FROM machines WHERE name = sessions.owner AND until > now()))
        RETURNING id
    ), without_facts AS (DELETE FROM facts USING gone WHERE session = id),
    without_drafts AS (DELETE FROM drafts USING gone WHERE session = id),
    without_state AS (DELETE FROM states USING gone WHERE session = id),
    without_names AS (DELETE FROM names USING gone WHERE session = id)
    SELECT id FROM gone";

const NOTIFY: &str = "SELECT pg_notify($1, $2)";

const OWNER: &str = "SELECT owner, epoch, last FROM sessions WHERE id = $1";

struct WriterStatements {
    create: Statement,
    own: Statement,
    append: Statement,
    keep_draft: Statement,
    keep_state: Statement,
    reserve: Statement,
    give_back: Statement,
    set_home: Statement,
    release: Statement,
    delete: Statement,
    take_name: Statement,
    keep_names: Statement,
    notify: Statement,
    owner: Statement,
}

impl Statements for WriterStatements {
    async fn prepare(client: &Client) -> Result<Self, tokio_postgres::Error> {
        let prepare = |statement| client.prepare(statement);
        Ok(Self {
            create: prepare(CREATE).await?,
            own: prepare(OWN).await?,
            append: prepare(APPEND).await?,
            keep_draft: prepare(KEEP_DRAFT).await?,
            keep_state: prepare(KEEP_STATE).await?,
            reserve: prepare(RESERVE).await?,
            give_back: prepare(GIVE_BACK).await?,
            set_home: prepare(SET_HOME).await?,
            release: prepare(RELEASE).await?,
            delete: prepare(DELETE).await?,
            take_name: prepare(TAKE_NAME).await?,
            keep_names: prepare(KEEP_NAMES).await?,
            notify: prepare(NOTIFY).await?,
            owner: prepare(OWNER).await?,
        })
    }
}

/// Writes until every sender is gone.
pub(super) async fn run(
    database: &Database,
    incarnation: &Incarnation,
    mut pending_writes: mpsc::UnboundedReceiver<PendingWrite>,
) {
    let mut connection = Connection::new(database);
    let mut group = Vec::new();
    let mut shown = ShownSessions::default();
    while pending_writes.recv_many(&mut group, MAX_GROUP).await > 0 {
        let notifies = shown.change(&group);
        let results = write_group(&mut connection, incarnation, &group, notifies).await;
        for (pending, result) in group.drain(..).zip(results) {
            // The caller may have stopped waiting.
            let _ = pending.done.send(result);
        }
    }
}

/// The result of each write in a group.
type Results = Vec<Result<u64, StoreError>>;

/// Writes a group in one commit, or, if the server refuses that, each alone: a write that can't
/// succeed must not fail the others.
async fn write_group(
    connection: &mut Connection<WriterStatements>,
    incarnation: &Incarnation,
    group: &[PendingWrite],
    notifies: bool,
) -> Results {
    match commit(connection, incarnation, group, notifies).await {
        Ok(results) => results,
        Err(Failed::Lost(error)) => group.iter().map(|_| Err(error.clone())).collect(),
        Err(Failed::Refused(error)) if group.len() == 1 => vec![Err(error)],
        Err(Failed::Refused(_)) => {
            let mut results = Vec::with_capacity(group.len());
            for pending in group {
                let alone = std::slice::from_ref(pending);
                let alone = commit(connection, incarnation, alone, notifies).await;
                results.push(match alone {
                    Ok(mut result) => result.pop().unwrap_or(Ok(0)),
                    Err(Failed::Lost(error) | Failed::Refused(error)) => Err(error),
                });
            }
            results
        }
    }
}

/// Why a commit failed.
enum Failed {
    /// The server can't be reached.
    Lost(StoreError),
    /// The server refused a statement.
    Refused(StoreError),
}

/// Writes a group in one commit. All statements are sent at once.
async fn commit(
    connection: &mut Connection<WriterStatements>,
    incarnation: &Incarnation,
    group: &[PendingWrite],
    notifies: bool,
) -> Result<Results, Failed> {
    let connected = connection.get().await.map_err(Failed::Lost)?;
    let client = &connected.client;
    let committing = async {
        let writes = group.iter().map(|pending| write_one(&connected, incarnation, &pending.write));
        let notifying = async {
            let parameters: [&(dyn ToSql + Sync); 2] = [&CHANNEL, &incarnation.machine];
            match notifies {
                true => client.execute(&connected.statements.notify, &parameters).await,
                false => Ok(0),
            }
        };
        // They are sent in the order in which they are polled first.
        let (begun, written, notified, committed) = tokio::join!(
            biased;
            client.batch_execute("BEGIN"),
            join_all(writes),
            notifying,
            client.batch_execute("COMMIT"),
        );
        Ok::<_, StoreError>((begun, written, notified.and(committed)))
    };
    let finished = connected.within_limit(committing).await;
    let (begun, written, committed) = finished.map_err(Failed::Lost)?;
    // After an error, the commit has rolled everything back.
    let written: Result<Results, _> = written.into_iter().collect();
    let results = begun.and(written).and_then(|results| committed.map(|()| results));
    results.map_err(|error| match error.as_db_error() {
        Some(_) => Failed::Refused(failed(&error)),
        None => {
            connected.suspect();
            Failed::Lost(failed(&error))
        }
    })
}

/// The outer error is that of the server, which fails the whole group.
type Written = Result<Result<u64, StoreError>, tokio_postgres::Error>;

async fn write_one(
    connected: &Connected<WriterStatements>,
    incarnation: &Incarnation,
    write: &Write,
) -> Written {
    let Connected { client, statements, .. } = connected;
    match write {
        Write::Create { session, opened, home, contents } => {
            let machine_and_home = (&*incarnation.machine, &**home);
            create(connected, machine_and_home, session, *opened, contents).await
        }
        Write::Own { session } => {
            let Incarnation { machine, number } = incarnation;
            let parameters: [&(dyn ToSql + Sync); 3] = [&session.as_str(), machine, number];
            let owned = client.query_opt(&statements.own, &parameters).await?;
            match owned {
                Some(row) => Ok(Ok(row.get::<_, i64>(0).cast_unsigned())),
                None => owned_elsewhere(connected, session).await,
            }
        }
        Write::Delete { session } => {
            let gone = client
                .query_opt(&statements.delete, &[&session.as_str(), &incarnation.machine])
                .await?;
            match gone {
                Some(_) => Ok(Ok(0)),
                None => owned_elsewhere(connected, session).await,
            }
        }
        Write::TakeName { session, name } => {
            let parameters: [&(dyn ToSql + Sync); 3] =
                [name, &session.as_str(), &incarnation.machine];
            let taken = client.query_opt(&statements.take_name, &parameters).await?;
            Ok(Ok(u64::from(taken.is_some())))
        }
        Write::KeepNames { session, kept } => {
            let parameters: [&(dyn ToSql + Sync); 3] =
                [&session.as_str(), &incarnation.machine, kept];
            client.execute(&statements.keep_names, &parameters).await?;
            Ok(Ok(0))
        }
        Write::Change { session, epoch, change } => {
            write_change(connected, session, *epoch, change).await
        }
    }
}

async fn create(
    Connected { client, statements, .. }: &Connected<WriterStatements>,
    (machine, home): (&str, &str),
    session: &SessionId,
    opened: Timestamp,
    NewLog { first, reserved }: &NewLog,
) -> Written {
    let rows = Rows::new(session, 0, first.iter().map(|(fact, _)| fact));
    let summary = first.as_ref().map(|(_, summary)| serde_json::to_string(summary)).transpose();
    let (rows, summary) = match (rows, summary) {
        (Ok(rows), Ok(summary)) => (rows, summary),
        (Err(error), _) => return Ok(Err(error)),
        (_, Err(error)) => return Ok(Err(error.into())),
    };
    let parameters: [&(dyn ToSql + Sync); 10] = [
        &session.as_str(),
        &signed(opened.0),
        &machine,
        &signed(*reserved),
        &rows.last,
        &summary,
        &rows.seqs,
        &rows.events,
        &rows.check_sums,
        &home,
    ];
    let made = client.query_opt(&statements.create, &parameters).await?;
    let taken = || StoreError::Taken { session: session.clone() };
    Ok(made.map(|_| 1).ok_or_else(taken))
}

async fn write_change(
    connected: &Connected<WriterStatements>,
    session: &SessionId,
    epoch: u64,
    change: &Change,
) -> Written {
    let Connected { client, statements, .. } = connected;
    let (id, owner_epoch) = (session.as_str(), signed(epoch));
    let own: [&(dyn ToSql + Sync); 2] = [&id, &owner_epoch];
    let query = async |statement: &Statement, more: &[&(dyn ToSql + Sync)]| {
        client.query_opt(statement, &[&own[..], more].concat()).await
    };
    let mut expected = None;
    let found: Option<Row> = match change {
        Change::Append { after, facts, summary, home } => {
            expected = Some(*after);
            let rows = Rows::new(session, *after, facts);
            let (rows, summary) = match (rows, serde_json::to_string(&**summary)) {
                (Ok(rows), Ok(summary)) => (rows, summary),
                (Err(error), _) => return Ok(Err(error)),
                (_, Err(error)) => return Ok(Err(error.into())),
            };
            let draft_end = signed(end_of_draft(facts).unwrap_or_default());
            query(
                &statements.append,
                &[
                    &signed(*after),
                    &rows.last,
                    &summary,
                    &rows.seqs,
                    &rows.afters,
                    &rows.events,
                    &rows.check_sums,
                    &draft_end,
                    home,
                ],
            )
            .await?
        }
        Change::KeepDraft { pieces } => {
            let rows = match Rows::new_draft(session, pieces) {
                Ok(rows) => rows,
                Err(error) => return Ok(Err(error)),
            };
            query(&statements.keep_draft, &[&rows.seqs, &rows.events, &rows.check_sums]).await?
        }
        Change::KeepState { state: SavedState { upto, text } } => {
            let sum = check_sum(session, *upto, 0, text);
            query(&statements.keep_state, &[&signed(*upto), text, &sum]).await?
        }
        Change::Reserve { count } => {
            let reserved = query(&statements.reserve, &[&signed(*count)]).await?;
            if let Some(row) = reserved {
                return Ok(Ok(row.get::<_, i64>(0).cast_unsigned() + 1 - count));
            }
            None
        }
        Change::GiveBack { unused } => {
            let (start, end) = (signed(unused.start), signed(unused.end));
            query(&statements.give_back, &[&start, &end]).await?
        }
        Change::SetHome { home } => query(&statements.set_home, &[home]).await?,
        Change::Release => query(&statements.release, &[]).await?,
    };
    match found {
        Some(_) => Ok(Ok(0)),
        None => refused(connected, session, epoch, expected).await,
    }
}

/// Why a change by the owner of `epoch` was refused.
async fn refused(
    Connected { client, statements, .. }: &Connected<WriterStatements>,
    session: &SessionId,
    epoch: u64,
    after: Option<u64>,
) -> Written {
    let found = client.query_opt(&statements.owner, &[&session.as_str()]).await?;
    let Some(row) = found else { return Ok(Err(unknown(session))) };
    let (by, found_epoch, last): (Option<String>, i64, i64) = (row.get(0), row.get(1), row.get(2));
    Ok(Err(match after {
        Some(after) if found_epoch == signed(epoch) => {
            StoreError::Conflict { after, last: last.cast_unsigned() }
        }
        _ => StoreError::Fenced {
            session: session.clone(),
            by: by.unwrap_or_else(|| "another owner".to_owned()),
        },
    }))
}

/// Why this machine can't own a session.
async fn owned_elsewhere(
    Connected { client, statements, .. }: &Connected<WriterStatements>,
    session: &SessionId,
) -> Written {
    let found = client.query_opt(&statements.owner, &[&session.as_str()]).await?;
    let Some(row) = found else { return Ok(Err(unknown(session))) };
    let by: Option<String> = row.get(0);
    let by = by.unwrap_or_else(|| "another machine".to_owned());
    Ok(Err(StoreError::Owned { session: session.clone(), by }))
}

fn unknown(session: &SessionId) -> StoreError {
    StoreError::Unknown { session: session.clone() }
}
