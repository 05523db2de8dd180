//! Event streams: resumed from any number, complete for readers, and ended for clients that do not
//! read.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;

use holdpoint_common::api::ClientEnd;
use holdpoint_common::{
    AskFact, CutCause, Delta, Event, Fact, HeadAndTail, ItemId, ItemKind, Outcome, PromptFact,
    Refused, SessionFact, SessionStatus, Snapshot, ToolFact, TurnFact,
};
use holdpoint_session::store::Sqlite;
use holdpoint_session::{
    AttachFrom, Attachment, InterruptedTurn, Interruption, SessionError, SessionHandle,
};
use serde_json::json;

use super::client::{Api, Stream};
use super::harness::{DaemonWorld, until};
use crate::world::{is_root, rounds};

fn house() -> (DaemonWorld, Api) {
    let house = DaemonWorld::new();
    house.start();
    let api = Api::new(&house);
    (house, api)
}

/// Everything that a client has received over all its attachments.
#[derive(Default)]
struct ClientView {
    last: u64,
    facts: Vec<String>,
    items: BTreeMap<ItemId, HeadAndTail>,
    /// How many items were finished, and how many of them had arrived in pieces.
    finished: (usize, usize),
}

impl ClientView {
    /// Records an event and checks the promises of the stream.
    #[track_caller]
    fn take(&mut self, event: &Event) {
        assert!(event.seq > self.last, "{} after {}", event.seq, self.last);
        self.last = event.seq;
        match event.delta() {
            Some(Delta::Text { item, text } | Delta::Thought { item, text }) => {
                self.items.entry(*item).or_default().head.push_str(text);
            }
            Some(Delta::Output { item, text }) => self.items.entry(*item).or_default().push(text),
            Some(Delta::ItemSoFar { item, kind, so_far }) => {
                assert!(matches!(kind, ItemKind::Text | ItemKind::Thought | ItemKind::Output));
                self.items.insert(*item, so_far.clone());
            }
            _ => {}
        }
        let Some(fact) = event.fact() else { return };
        self.facts.push(serde_json::to_string(event).unwrap());
        match fact {
            Fact::Turn(TurnFact::AssistantMessage(message)) => {
                for block in &message.blocks {
                    let folded = self.items.remove(&block.item);
                    self.finish(
                        folded,
                        &HeadAndTail { head: block.text.clone(), ..HeadAndTail::default() },
                    );
                }
            }
            Fact::Tool(ToolFact::Finished(result)) => {
                let folded = self.items.remove(&result.call.item()).map(HeadAndTail::finish);
                self.finish(folded, &result.output);
            }
            _ => {}
        }
    }

    #[track_caller]
    fn finish(&mut self, folded: Option<HeadAndTail>, whole: &HeadAndTail) {
        self.finished.0 += 1;
        if let Some(folded) = folded {
            self.finished.1 += 1;
            assert_eq!(&folded, whole);
        }
    }
}

/// Reads up to `most` frames, or until a turn ends or the hold changes.
fn read(stream: &mut Stream, known: &mut ClientView, most: usize) {
    for _ in 0..most {
        let Some(frame) = stream.next() else { return };
        let Some(event) = frame.event() else { continue };
        assert_eq!(frame.id, Some(event.seq));
        known.take(&event);
        if matches!(
            event.fact(),
            Some(
                Fact::Turn(TurnFact::Finished { .. })
                    | Fact::Session(SessionFact::HoldChanged { .. })
            )
        ) {
            return;
        }
    }
}

/// Reads to the end of a turn, attaching again whenever the stream lags.
fn follow(api: &Api, session: &str, known: &mut ClientView) {
    let ended = |known: &ClientView| {
        known.facts.last().is_some_and(|fact| fact.contains("\"turnFinished\""))
    };
    let before = known.facts.len();
    while known.facts.len() == before || !ended(known) {
        let mut stream = api.attach(session, &format!("?after={}", known.last));
        read(&mut stream, known, usize::MAX);
    }
}

/// Reads until a turn has ended.
fn read_turn(stream: &mut Stream, known: &mut ClientView) {
    loop {
        let event = stream.until_event(|_| true);
        known.take(&event);
        if matches!(event.fact(), Some(Fact::Turn(TurnFact::Finished { .. }))) {
            return;
        }
    }
}

#[test]
fn m_b4_a_stream_begins_with_a_snapshot_and_continues_where_it_was_left() {
    let (_house, api) = house();
    let session = api.open("all");
    api.prompt(&session, "say one two three\nshell: echo four");
    api.settled(&session);
    api.wait_detached(&session);
    let mut all = ClientView::default();
    let mut stream = api.attach(&session, "");
    let first = stream.next().unwrap();
    assert_eq!((first.kind.as_str(), first.id), ("snapshot", None));
    let snapshot: Snapshot = first.read();
    assert_eq!((snapshot.status, snapshot.clients), (SessionStatus::Idle, 1));
    read_turn(&mut stream, &mut all);
    // By the query, by the header that browsers send, and by both, where the header wins.
    let middle = serde_json::from_str::<Event>(&all.facts[all.facts.len() / 2]).unwrap().seq;
    let path = format!("sessions/{session}/events");
    let header = format!("last-event-id: {middle}\r\n");
    for mut stream in [
        api.attach(&session, &format!("?after={middle}")),
        api.stream(&path, &header),
        api.stream(&format!("{path}?after=0"), &header),
    ] {
        let mut rest = ClientView { last: middle, ..ClientView::default() };
        read_turn(&mut stream, &mut rest);
        assert_eq!(rest.facts, all.facts[all.facts.len() - rest.facts.len()..]);
        assert_eq!(rest.facts.len(), all.facts.len() - all.facts.len() / 2 - 1);
    }
    let mut newest = ClientView::default();
    read_turn(&mut api.attach(&session, "?limit=2"), &mut newest);
    assert_eq!(newest.facts, all.facts[all.facts.len() - 2..]);
    for (path, headers) in [
        ("?after=x", ""),
        ("?limit=-1", ""),
        ("?after=1&after=2", ""),
        ("", "last-event-id: x\r\n"),
    ] {
        let mut line = api.line();
        line.send(&api.request("GET", &format!("sessions/{session}/events{path}"), headers, b""))
            .unwrap();
        assert_eq!(line.answer().unwrap().error(400).code, "malformed", "{path}{headers}");
    }
}

#[test]
fn a_snapshot_comes_before_the_events_that_changed_it() {
    let (_house, api) = house();
    let session = api.open("ask");
    let mut stream = api.attach(&session, "?snapshots=true");
    api.prompt(&session, "shell: touch made\nsay done");
    let mut shown: Snapshot = stream.next().unwrap().read();
    let mut snapshots = 0;
    loop {
        let frame = stream.next().unwrap();
        let Some(event) = frame.event() else {
            if frame.kind == "snapshot" {
                shown = frame.read();
                snapshots += 1;
            }
            continue;
        };
        match (event.fact(), event.delta()) {
            (Some(Fact::Ask(AskFact::Raised { ask })), _) => {
                assert_eq!(shown.asks.first(), Some(ask));
                api.answer(&ask.id.to_string(), &json!({ "type": "approve" })).ok();
            }
            (Some(Fact::Ask(AskFact::Answered { ask, .. })), _) => {
                assert!(shown.asks.iter().all(|open| open.id != *ask))
            }
            (Some(Fact::Prompt(PromptFact::Accepted { .. })), _) => {
                assert!(shown.status != SessionStatus::Idle)
            }
            (Some(Fact::Turn(TurnFact::Finished { outcome, .. })), _) => {
                assert_eq!(shown.last_turn.as_ref().unwrap().outcome, *outcome);
                break;
            }
            _ => {}
        }
    }
    assert!(snapshots > 3, "{snapshots}");
}

#[test]
fn m_b4_closing_a_session_ends_its_streams_with_the_reason() {
    let (_house, api) = house();
    let session = api.open("all");
    let mut stream = api.attach(&session, "");
    api.post(&format!("sessions/{session}/close"), &json!(null)).ok();
    let end: ClientEnd = stream.until(|frame| frame.kind == "end").read();
    assert_eq!(end, ClientEnd::Ended);
    assert!(stream.next().is_none());
}

/// A handle of a daemon's session reports the same as one of an engine in its process.
#[tokio::test]
async fn settled_returns_for_a_closed_session_and_fails_for_a_deleted_one() {
    let house = DaemonWorld::new();
    house.start();
    let sessions = house.sessions();
    let session = sessions.open(house.session()).await.unwrap();
    session.prompt("shell: true").await.unwrap();
    session.settled().await.unwrap();
    sessions.close(session.id()).await.unwrap();
    assert_eq!(session.settled().await.unwrap().last_turn.as_ref().unwrap().outcome, Outcome::Done);
    sessions.delete(session.id().as_str()).await.unwrap();
    assert_eq!(session.settled().await.unwrap_err().code(), "unknownSession");
}

#[test]
fn m_b9_all_sessions_can_be_watched() {
    let (_house, api) = house();
    let mut news = api.stream("events", "");
    let session = api.open("ask");
    let of_it =
        |frame: &super::client::Frame| frame.kind == "session" && frame.data.contains(&session);
    api.prompt(&session, "shell: touch made");
    news.until(|frame| of_it(frame) && frame.data.contains("\"waitsFor\":{"));
    let ask = api.asks(&session, 1).remove(0);
    api.answer(&ask, &json!({ "type": "deny" })).ok();
    news.until(|frame| of_it(frame) && frame.data.contains("\"outcome\":\"done\""));
    api.post(&format!("sessions/{session}/close"), &json!(null)).ok();
    news.until(|frame| of_it(frame) && frame.data.contains("\"live\":false"));
    api.delete(&format!("sessions/{session}")).ok();
    news.until(|frame| frame.kind == "deleted" && frame.data.contains(&session));
}

#[test]
fn t_s8_clients_that_attach_and_detach_at_random_miss_no_event() {
    const CLIENTS: usize = 20;
    let (_house, api) = house();
    let session = api.open("all");
    let (attaches, turns) = (rounds(50, 500), rounds(4, 40));
    let mut all = ClientView::default();
    let clients = std::thread::scope(|scope| {
        let client = |_| {
            scope.spawn(|| {
                let mut known = ClientView::default();
                let mut attached = 0;
                while !known.facts.last().is_some_and(|fact| fact.contains("\"holdChanged\"")) {
                    let mut stream = api.attach(&session, &format!("?after={}", known.last));
                    let most =
                        if attached < attaches { fastrand::usize(1..200) } else { usize::MAX };
                    read(&mut stream, &mut known, most);
                    attached += 1;
                }
                known
            })
        };
        let clients: Vec<_> = (0..CLIENTS).map(client).collect();
        for _ in 0..turns {
            api.prompt(
                &session,
                "flood 1000 20\nshell: seq 20000\nthink@2000 a b c d e f\nflood 300 300",
            );
            api.settled(&session);
        }
        read_all(&api, &session, &mut all, turns);
        clients.into_iter().map(|client| client.join().unwrap()).collect::<Vec<_>>()
    });
    for known in clients {
        assert_eq!(known.facts, all.facts);
        assert!(known.finished.1 > 0, "items came in pieces");
    }
}

/// Reads all facts of a session and then sets a hold, the last fact by which every client knows the
/// end.
fn read_all(api: &Api, session: &str, all: &mut ClientView, turns: usize) {
    let mut stream = api.attach(session, "");
    for _ in 0..turns {
        read_turn(&mut stream, all);
    }
    api.post(&format!("sessions/{session}/hold"), &json!(null)).ok();
    all.take(&stream.until_event(|event| {
        matches!(event.fact(), Some(Fact::Session(SessionFact::HoldChanged { .. })))
    }));
}

#[test]
fn t_s1_a_client_that_never_reads_is_bounded_and_gets_its_cursor() {
    const MOST: u64 = 16 * 1024 * 1024;
    if !is_root() {
        return;
    }
    let (house, api) = house();
    let session = api.open("all");
    let bytes = rounds(32, 1024) * 1024 * 1024;
    let script = format!("shell: head -c {bytes} /dev/zero | tr '\\0' 'x' | fold -w 1000");
    // No stream is read meanwhile: a reader takes memory too, sometimes more and sometimes less.
    let flood = || {
        let mut news = api.stream("events", "");
        let turns = || api.look(&session).last_turn.map(|last| last.turn);
        let before = turns();
        api.prompt(&session, &script);
        while turns() == before {
            news.until(|frame| frame.data.contains(&session));
        }
    };
    // The baseline: the buffer and the memory that the allocator keeps.
    flood();
    let without = house.peak(flood);
    // A client that wants only new events, and one that wants the past, too.
    for query in ["?limit=0", ""] {
        let mut deaf = api.attach(&session, query);
        let start: Snapshot = deaf.next().unwrap().read();
        let with = house.peak(flood);
        let mut known = ClientView { last: start.seq, ..ClientView::default() };
        follow(&api, &session, &mut known);
        let grown = with.saturating_sub(without);
        println!("{:?}: {} KiB for one that does not read", query, grown / 1024);
        assert!(grown <= MOST, "{grown} bytes for one that does not read");
        // Now the client reads the events in transit and the number to resume from.
        let last = if query.is_empty() { 0 } else { start.seq };
        let mut late = ClientView { last, ..ClientView::default() };
        while let Some(frame) = deaf.next() {
            match frame.event() {
                Some(event) => late.take(&event),
                None if frame.kind == "end" => {
                    assert_eq!(frame.read::<ClientEnd>(), ClientEnd::Lagged { after: late.last });
                }
                None => assert_eq!(frame.kind, "live"),
            }
        }
        // If this took too long, the connection was cut: the client resumes from its last event.
        while !late.facts.ends_with(&known.facts) {
            follow(&api, &session, &mut late);
        }
    }
}

/// The store is restored from a backup. A client that has seen later events learns that its number
/// is not in this log.
#[test]
fn m_b4_a_cursor_beyond_the_log_is_refused() {
    let (house, api) = house();
    let session = api.open("all");
    let restart = || {
        house.run(&["daemon", "stop"]).code(0);
        house.wait_gone();
    };
    let say = |words: &str| {
        house.start();
        api.post(&format!("sessions/{session}/open"), &json!(api.supplies())).ok();
        api.prompt(&session, &format!("say {words}"));
        api.settled(&session).seq
    };
    api.prompt(&session, "say before");
    api.settled(&session);
    restart();
    let backup: Vec<_> = Sqlite::files(&house.data())
        .into_iter()
        .map(|file| (std::fs::read(&file).ok(), file))
        .collect();
    say("after");
    restart();
    let seen = say("and on");
    restart();
    for (was, file) in backup {
        match was {
            Some(bytes) => OpenOptions::new()
                .create(true)
                .write(true)
                .truncate(true)
                .mode(0o600)
                .open(file)
                .and_then(|mut file| file.write_all(&bytes))
                .unwrap(),
            None => drop(std::fs::remove_file(file)),
        }
    }
    let newest = say("another");
    assert!(newest < seen, "{newest} is none that comes after {seen}");

    let path = format!("sessions/{session}/events");
    for (path, header) in [
        (format!("{path}?after={seen}"), String::new()),
        (path, format!("last-event-id: {seen}\r\n")),
    ] {
        let mut line = api.line();
        line.send(&api.request("GET", &path, &header, b"")).unwrap();
        let refused = line.answer().unwrap().error(404);
        assert_eq!(refused.code, "unknownEvent", "{refused:?}");
        assert!(
            refused.message.contains(&seen.to_string())
                && refused.message.contains(&newest.to_string()),
            "{refused:?}"
        );
        assert!(refused.hint.is_some_and(|hint| hint.contains("leave out `after`")));
    }
    let err = house.run(&["attach", "--plain", "--after", &seen.to_string(), &session]).code(1).err;
    assert!(
        err.contains(&format!("has no event {seen}: its newest is {newest}"))
            && err.contains("hint: leave out"),
        "{err}"
    );
    let mut all = api.attach(&session, "");
    all.until_event(|event| format!("{event:?}").contains("another"));
}

/// Interrupts a session while its tool runs. Returns the session, its events and the turn.
async fn interrupted(
    house: &DaemonWorld,
    script: &str,
) -> (SessionHandle, Attachment, InterruptedTurn) {
    let session = house.sessions().open(house.session()).await.unwrap();
    let mut events = session.attach(AttachFrom::start()).await.unwrap();
    session.prompt(script).await.unwrap();
    until(&mut events, |event| matches!(event.delta(), Some(Delta::Output { .. }))).await;
    let Interruption::Interrupting(turn) = session.interrupt(None).await.unwrap() else {
        panic!("no turn was running")
    };
    (session, events, turn)
}

/// `end` reads the receipt from the log of the closed session and does not open it.
#[tokio::test]
async fn m_c3_an_interrupt_has_its_receipt_when_the_session_is_closed_at_once() {
    let house = DaemonWorld::new();
    house.start();
    let sessions = house.sessions();
    let (session, mut events, turn) = interrupted(&house, "shell: echo up; sleep 1000").await;
    until(&mut events, |event| matches!(event.fact(), Some(Fact::Turn(TurnFact::Finished { .. }))))
        .await;
    sessions.close(session.id()).await.unwrap();
    let end = turn.end().await.unwrap();
    assert_eq!((end.outcome, end.receipt.unwrap().tools.len()), (Outcome::Interrupted, 1));
    assert!(!sessions.list().await.unwrap()[0].live);
}

/// The same while the session is being closed: its turn is not over, and its log has no end yet.
#[tokio::test]
async fn m_c3_an_interrupt_has_its_receipt_when_the_session_is_closed_meanwhile() {
    let house = DaemonWorld::new();
    house.0.config("[limits]\ngrace_ms = 3000\n");
    house.start();
    let sessions = house.sessions();
    let stubborn = "shell: trap '' TERM; echo up; while true; do sleep 0.1; done";
    let (session, mut events, turn) = interrupted(&house, stubborn).await;
    let closing = tokio::spawn({
        let (sessions, id) = (sessions.clone(), session.id().clone());
        async move { sessions.close(&id).await }
    });
    until(&mut events, |event| {
        matches!(event.fact(), Some(Fact::Turn(TurnFact::Cut { cause: CutCause::Close { .. } })))
    })
    .await;
    let end = turn.end().await.unwrap();
    assert_eq!((end.outcome, end.receipt.unwrap().tools.len()), (Outcome::Interrupted, 1));
    closing.await.unwrap().unwrap();
}

/// A command on all live sessions does not open one that was closed since they were listed.
#[tokio::test]
async fn m_b9_using_a_reached_handle_does_not_open_a_closed_session() {
    let house = DaemonWorld::new();
    house.start();
    let sessions = house.sessions();
    let opened = sessions.open(house.session()).await.unwrap();
    let reached = sessions.reach(opened.id()).await.unwrap();
    reached.hold().await.unwrap();
    assert!(opened.release().await.is_ok());
    opened.close().await.unwrap();
    let gone = SessionError::Refused(Refused::Closed);
    assert_eq!(reached.hold().await, Err(gone.clone()));
    assert_eq!(reached.release().await, Err(gone.clone()));
    assert_eq!(reached.interrupt(None).await.err(), Some(gone.clone()));
    assert_eq!(reached.attach(AttachFrom::start()).await.err(), Some(gone));
    assert!(!sessions.list().await.unwrap()[0].live);
    // An explicit request opens it.
    sessions.get(opened.id().as_str()).await.unwrap().hold().await.unwrap();
}

/// A close is refused if another client has used the session since.
#[tokio::test]
async fn m_b2_close_unused_is_refused_after_later_use() {
    let house = DaemonWorld::new();
    house.start();
    let sessions = house.sessions();
    let session = sessions.open(house.session()).await.unwrap();
    let fresh = session.snapshot().seq;
    session.prompt("say Hi.").await.unwrap();
    let settled = session.settled().await.unwrap().seq;
    assert_eq!(session.close_unused(fresh).await, Err(SessionError::Refused(Refused::InUse)));
    assert_eq!(
        sessions.close_unused(session.id(), fresh).await,
        Err(SessionError::Refused(Refused::InUse))
    );
    let (path, request) =
        (format!("sessions/{}/close", session.id()), json!({ "unusedSince": fresh }));
    assert_eq!(Api::new(&house).post(&path, &request).error(409).code, "inUse");
    session.close_unused(settled).await.unwrap();
    assert!(!sessions.list().await.unwrap()[0].live);
}
