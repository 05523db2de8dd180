//! The reads, which run at the same time on one connection.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;
use std::time::SystemTime;

use holdpoint_common::api::SessionCursor;
use holdpoint_common::{Away, Event, SessionId, Timestamp};
use tokio::sync::{Semaphore, mpsc};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Row, Statement};
use tokio_util::task::TaskTracker;

use super::StoreError;
use super::connection::{Connected, Connection, Database, Statements, failed};
use super::lease::SILENT;
use super::places::Places;
use crate::store::reads::Read;
use crate::store::stored_facts::{self, PAGE_BYTES, StoredFact, check_sum, signed};
use crate::store::{Page, SavedPage, SavedSession, SavedState};

/// The most reads that run at the same time.
const MAX_RUNNING: usize = 64;

/// The most facts of a page: the server adds up the sizes of that many.
const MAX_PAGE_FACTS: usize = 1_024;

/// The first facts in a range, up to the one that exceeds the size of a page. In each row, also the
/// last fact of the session, and the one before the first fact after the range. One statement sees
/// the log at one moment.
const PAGE: &str = "
    WITH first AS (
        SELECT seq, after, event, check_sum FROM facts
        WHERE session = $1 AND seq >= $2 AND seq < $3 ORDER BY seq LIMIT $4
    ), measured AS (
        SELECT *, sum(octet_length(event)) OVER (ORDER BY seq) - octet_length(event) AS before
        FROM first
    ), page AS (
        SELECT seq, after, event, check_sum FROM measured WHERE before <= $5
    )
    SELECT seq, after, event, check_sum, last, (
        SELECT after FROM facts WHERE session = $1 AND seq >= $3 ORDER BY seq LIMIT 1
    ) FROM sessions LEFT JOIN page ON true WHERE id = $1 ORDER BY seq";

const NEWEST: &str = "
    SELECT seq FROM facts WHERE session = $1 AND seq >= $2 AND seq < $3
    ORDER BY seq DESC LIMIT 1 OFFSET $4";

const DRAFT: &str =
    "SELECT seq, 0::bigint, event, check_sum FROM drafts WHERE session = $1 ORDER BY seq";

const STATE: &str = "
    SELECT states.seq, state, states.check_sum FROM states JOIN facts USING (session, seq)
    WHERE session = $1";

const CLOCK: &str = "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint";

/// A machine without a lease owns nothing. The owner or, without one, the home of a session is away
/// if it is another machine that is not in the fleet, or that was not seen lately. A home with a colon
/// is a place.
fn sessions() -> String {
    format!(
        "SELECT opened, summary, home, owners.name, keeper.name <> $1 AND keeper.name NOT LIKE '%:%' AND (
            shown.name IS NULL OR shown.until <= now() OR shown.seen < now() - {SILENT}
        ), (extract(epoch FROM shown.seen) * 1000)::bigint
        FROM sessions LEFT JOIN machines AS owners
            ON owners.name = sessions.owner AND owners.name <> $1 AND owners.until > now()
        CROSS JOIN LATERAL (SELECT coalesce(owners.name, home) AS name) AS keeper
        LEFT JOIN machines AS shown ON shown.name = keeper.name"
    )
}

/// A page of the sessions: those that other machines own and come after $2 and $3, and then the
/// others that come after $4 and $5. Both are found by an index.
fn page_of_sessions() -> String {
    let page = |which| {
        format!(
            "SELECT id FROM sessions WHERE last > 0 AND {which}
            ORDER BY opened DESC, id COLLATE \"C\" DESC LIMIT $6"
        )
    };
    let theirs = page("id IN (SELECT id FROM theirs) AND (opened, id COLLATE \"C\") < ($2, $3)");
    let others =
        page("id NOT IN (SELECT id FROM theirs) AND (opened, id COLLATE \"C\") < ($4, $5)");
    let sessions = sessions();
    format!(
        "WITH theirs AS (
            SELECT sessions.id FROM sessions JOIN machines ON machines.name = owner
            WHERE machines.name <> $1 AND until > now()
        ), page AS (({theirs}) UNION ALL ({others}))
        {sessions} WHERE sessions.id IN (SELECT id FROM page)
        ORDER BY owners.name IS NOT NULL DESC, opened DESC, sessions.id COLLATE \"C\" DESC LIMIT $6"
    )
}

struct ReaderStatements {
    page: Statement,
    newest: Statement,
    draft: Statement,
    state: Statement,
    saved: Statement,
    list: Statement,
    /// By how many milliseconds the clock of the server, which times heartbeats, is ahead of that of
    /// this machine.
    clock_ahead_ms: i64,
}

impl Statements for ReaderStatements {
    async fn prepare(client: &Client) -> Result<Self, tokio_postgres::Error> {
        let prepare = |statement| client.prepare(statement);
        Ok(Self {
            page: prepare(PAGE).await?,
            newest: prepare(NEWEST).await?,
            draft: prepare(DRAFT).await?,
            state: prepare(STATE).await?,
            saved: client.prepare(&format!("{} WHERE sessions.id = $2", sessions())).await?,
            list: client.prepare(&page_of_sessions()).await?,
            clock_ahead_ms: {
                let server: i64 = client.query_one(CLOCK, &[]).await?.get(0);
                server.saturating_sub(signed(Timestamp::from(SystemTime::now()).0))
            },
        })
    }
}

/// Reads until every sender is gone.
pub(super) async fn run(database: &Database, places: &Places, mut reads: mpsc::Receiver<Read>) {
    let mut connection = Connection::new(database);
    let (running, slots) = (TaskTracker::new(), Arc::new(Semaphore::new(MAX_RUNNING)));
    while let Some(read) = reads.recv().await {
        // Never closed.
        let slot = Arc::clone(&slots).acquire_owned().await;
        let places = places.clone();
        match connection.get().await {
            Ok(db) => drop(running.spawn(async move {
                answer(&db, &places, read).await;
                drop(slot);
            })),
            Err(error) => fail(read, error),
        }
    }
    running.close();
    running.wait().await;
}

/// Answers a request. The caller may have stopped waiting.
async fn answer(db: &Connected<ReaderStatements>, places: &Places, read: Read) {
    let machine = &*places.machine;
    match read {
        Read::Page { session, range, max_facts, done } => {
            let _ = done.send(db.within_limit(page(db, &session, &range, max_facts)).await);
        }
        Read::Newest { session, range, count, done } => {
            let _ = done.send(db.within_limit(newest(db, &session, &range, count)).await);
        }
        Read::Draft { session, done } => {
            let _ = done.send(db.within_limit(draft(db, &session)).await);
        }
        Read::State { session, done } => {
            let _ = done.send(db.within_limit(state(db, &session)).await);
        }
        Read::Find { session, done } => {
            let found = db.within_limit(saved_row(db, machine, &session)).await;
            let unknown = || StoreError::Unknown { session };
            let _ = done.send(found.and_then(|row| row.map(drop).ok_or_else(unknown)));
        }
        Read::Saved { session, done } => {
            let found = db.within_limit(saved_row(db, machine, &session)).await;
            let _ = done.send(found.map(|row| row.as_ref().and_then(|row| saved(db, row, places))));
        }
        Read::List { page, done } => {
            let _ = done.send(db.within_limit(list(db, places, &page)).await);
        }
    }
}

/// Answers a request with an error.
fn fail(read: Read, error: StoreError) {
    let _ = match read {
        Read::Page { done, .. } => done.send(Err(error)).is_ok(),
        Read::Newest { done, .. } => done.send(Err(error)).is_ok(),
        Read::Draft { done, .. } => done.send(Err(error)).is_ok(),
        Read::State { done, .. } => done.send(Err(error)).is_ok(),
        Read::Find { done, .. } => done.send(Err(error)).is_ok(),
        Read::Saved { done, .. } => done.send(Err(error)).is_ok(),
        Read::List { done, .. } => done.send(Err(error)).is_ok(),
    };
}

async fn rows(
    db: &Connected<ReaderStatements>,
    statement: &Statement,
    parameters: &[&(dyn ToSql + Sync)],
) -> Result<Vec<Row>, StoreError> {
    db.client.query(statement, parameters).await.map_err(|error| failed(&error))
}

/// The row that a statement finds for a session.
async fn row(
    db: &Connected<ReaderStatements>,
    statement: &Statement,
    session: &SessionId,
) -> Result<Option<Row>, StoreError> {
    Ok(rows(db, statement, &[&session.as_str()]).await?.pop())
}

/// The row that lists a session.
async fn saved_row(
    db: &Connected<ReaderStatements>,
    machine: &str,
    session: &SessionId,
) -> Result<Option<Row>, StoreError> {
    Ok(rows(db, &db.statements.saved, &[&machine, &session.as_str()]).await?.pop())
}

async fn list(
    db: &Connected<ReaderStatements>,
    places: &Places,
    page: &SavedPage,
) -> Result<Vec<SavedSession>, StoreError> {
    // Below and above every session.
    let (none, all) = ((-1, ""), (i64::MAX, ""));
    let (live, saved_only) = match &page.after {
        Some(SessionCursor { live: true, opened, id }) => ((signed(opened.0), id.as_str()), all),
        Some(SessionCursor { live: false, opened, id }) => (none, (signed(opened.0), id.as_str())),
        None => (all, all),
    };
    let mut limit = page.limit;
    loop {
        let most = i64::try_from(limit).unwrap_or(i64::MAX);
        let parameters: [&(dyn ToSql + Sync); 6] =
            [&&*places.machine, &live.0, &live.1, &saved_only.0, &saved_only.1, &most];
        let rows = rows(db, &db.statements.list, &parameters).await?;
        let mut listed: Vec<_> = rows.iter().filter_map(|row| saved(db, row, places)).collect();
        // A session that can't be read does not end the list.
        if listed.len() >= page.limit || rows.len() < limit {
            listed.truncate(page.limit);
            return Ok(listed);
        }
        limit = limit.saturating_mul(2);
    }
}

/// A page of the facts in a range, with gaps in place of unreadable facts.
async fn page(
    db: &Connected<ReaderStatements>,
    session: &SessionId,
    range: &Range<u64>,
    max_facts: usize,
) -> Result<Page, StoreError> {
    let max_facts = max_facts.min(MAX_PAGE_FACTS);
    let (start, end) = (signed(range.start), signed(range.end));
    let (limit, bytes) = (signed(max_facts as u64), signed(PAGE_BYTES as u64));
    let parameters: [&(dyn ToSql + Sync); 5] = [&session.as_str(), &start, &end, &limit, &bytes];
    let rows = rows(db, &db.statements.page, &parameters).await?;
    // A deleted session has no row.
    let Some(first) = rows.first() else { return Ok(Page::default()) };
    let last = first.get::<_, i64>(4);
    let last_before_end = first.get::<_, Option<i64>>(5).unwrap_or(last);
    // Without a fact in the range, the only row has no number.
    let stored: Vec<_> =
        rows.iter().filter(|row| row.get::<_, Option<i64>>(0).is_some()).map(stored_fact).collect();
    let bytes: usize = stored.iter().map(|fact| fact.text.len()).sum();
    let more = stored.len() >= max_facts || bytes > PAGE_BYTES;
    let read = stored.iter().map(|fact| fact.read(session)).collect();
    let last = Some(last.cast_unsigned());
    let last_before_end = || Some(last_before_end.cast_unsigned());
    Ok(stored_facts::page(session, range, (read, more), last, last_before_end))
}

fn stored_fact(row: &Row) -> StoredFact<'_> {
    StoredFact {
        seq: row.get::<_, i64>(0).cast_unsigned(),
        after: Some(row.get::<_, i64>(1).cast_unsigned()),
        text: Cow::Borrowed(row.get(2)),
        check_sum: Some(row.get(3)),
    }
}

/// The number at which the newest `count` facts of a range begin; the start of the range if it has
/// fewer.
async fn newest(
    db: &Connected<ReaderStatements>,
    session: &SessionId,
    range: &Range<u64>,
    count: usize,
) -> Result<u64, StoreError> {
    let Some(skipped) = count.checked_sub(1) else { return Ok(range.end) };
    let (start, end, skipped) = (signed(range.start), signed(range.end), signed(skipped as u64));
    let parameters: [&(dyn ToSql + Sync); 4] = [&session.as_str(), &start, &end, &skipped];
    let found = rows(db, &db.statements.newest, &parameters).await?.pop();
    Ok(found.map_or(range.start, |row| row.get::<_, i64>(0).cast_unsigned()))
}

async fn draft(
    db: &Connected<ReaderStatements>,
    session: &SessionId,
) -> Result<Vec<Arc<Event>>, StoreError> {
    let rows = rows(db, &db.statements.draft, &[&session.as_str()]).await?;
    let stored: Vec<_> = rows.iter().map(stored_fact).collect();
    Ok(stored_facts::draft(session, &stored))
}

/// The saved state of a session; `None` if there is none, if it is damaged, or if the fact that it
/// ends with is not in the log.
async fn state(
    db: &Connected<ReaderStatements>,
    session: &SessionId,
) -> Result<Option<SavedState>, StoreError> {
    let Some(row) = row(db, &db.statements.state, session).await? else { return Ok(None) };
    let (upto, text): (i64, String) = (row.get(0), row.get(1));
    let state = SavedState { upto: upto.cast_unsigned(), text };
    let is_whole = check_sum(session, state.upto, 0, &state.text) == row.get::<_, i64>(2);
    if !is_whole {
        tracing::error!(%session, "the saved state is damaged; all facts are folded");
    }
    Ok(is_whole.then_some(state))
}

/// The saved summary in a row; `None` if the session has none yet, or it can't be read.
fn saved(db: &Connected<ReaderStatements>, row: &Row, places: &Places) -> Option<SavedSession> {
    let opened = Timestamp(row.get::<_, i64>(0).cast_unsigned());
    let summary = serde_json::from_str(row.get::<_, Option<&str>>(1)?);
    let summary = summary.inspect_err(|error| {
        tracing::error!(%error, "the summary of a session can't be read");
    });
    let (home, owner) = (places.read_home(row.get(2)), row.get(3));
    let here = |seen: i64| seen.saturating_sub(db.statements.clock_ahead_ms).max(0);
    let seen = row.get::<_, Option<i64>>(5).map(|seen| Timestamp(here(seen).cast_unsigned()));
    let away = row.get::<_, bool>(4).then_some(Away { seen });
    Some(SavedSession { summary: summary.ok()?, opened, home, owner, away })
}
