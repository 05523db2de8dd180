//! Rules that every store has to keep.

use std::path::Path;
use std::sync::Arc;

use holdpoint_common::{
    AssistantMessage, Body, Certificates, Delta, Event, Fact, ItemId, Outcome, Timestamp, TurnFact,
    TurnId, Usage,
};
use holdpoint_session::store::{
    Memory, NewLog, Page, Postgres, SavedPage, SavedSession, SessionStore, Sqlite, StoreError,
};
use holdpoint_tests::postgres_server::PostgresServer;
use tempfile::TempDir;

use super::{event, id, machine, opened, prompt, summary};

/// All stores, and the places of their data.
async fn stores() -> ((TempDir, PostgresServer), [Box<dyn SessionStore>; 3]) {
    let folder = TempDir::new().unwrap();
    let sqlite = Sqlite::open(&folder.path().join("state")).unwrap();
    let server = PostgresServer::start(Path::new(env!("CARGO_TARGET_TMPDIR")));
    let postgres =
        Postgres::connect(&server.database("rules"), &Certificates::default(), &machine("m1"))
            .await
            .unwrap();
    ((folder, server), [Box::new(Memory::default()), Box::new(sqlite), Box::new(postgres)])
}

fn numbers(facts: &[Arc<Event>]) -> Vec<u64> {
    facts.iter().map(|fact| fact.seq).collect()
}

#[tokio::test]
async fn m_i15_facts_are_read_unchanged_by_range_and_by_newest() {
    let (_places, stores) = stores().await;
    for store in stores {
        let session = id("one");
        let log = store.create(&session, NewLog::default()).await.unwrap();
        let facts = vec![
            opened(&session, 1),
            prompt(4, "zero\0 and \u{1f980} and \u{feff}\r\n"),
            prompt(9, ""),
        ];
        log.append(0, facts.clone(), summary(&session, "zero")).await.unwrap();
        log.append(9, vec![prompt(10, "ten")], summary(&session, "ten")).await.unwrap();
        let log = store.open(&session).await.unwrap();
        let all = log.read(0..u64::MAX).await.unwrap();
        assert_eq!(all[..3], facts[..]);
        assert_eq!(numbers(&all), [1, 4, 9, 10]);
        assert_eq!(numbers(&log.read(4..10).await.unwrap()), [4, 9]);
        assert_eq!(numbers(&log.read(5..9).await.unwrap()), [0_u64; 0]);
        let page = async |range: std::ops::Range<u64>, most| {
            let page = log.page(range, most).await.unwrap();
            (numbers(&page.facts), page.next.is_some())
        };
        assert_eq!(page(2..u64::MAX, 2).await, (vec![4, 9], true));
        assert_eq!(page(9..u64::MAX, 9).await, (vec![9, 10], false));
        assert_eq!(page(0..9, 9).await, (vec![1, 4], false));
        assert_eq!(page(11..u64::MAX, 9).await, (vec![], false));
        for (range, newest, from) in
            [(0..99, 2, 9), (0..10, 2, 4), (0..10, 4, 0), (5..9, 1, 5), (0..99, 0, 99)]
        {
            assert_eq!(
                log.newest(range.clone(), newest).await.unwrap(),
                from,
                "{newest} of {range:?}"
            );
        }
    }
}

#[tokio::test]
async fn m_i15_two_owners_of_a_session_can_not_both_write() {
    let (_places, stores) = stores().await;
    for store in stores {
        let session = id("one");
        let log = store.create(&session, NewLog::default()).await.unwrap();
        log.append(0, vec![opened(&session, 1)], summary(&session, "")).await.unwrap();
        let other = store.own(&session).await.unwrap();
        other.append(1, vec![prompt(5, "first")], summary(&session, "first")).await.unwrap();
        let refused = log.append(1, vec![prompt(6, "second")], summary(&session, "second")).await;
        let expected = [
            StoreError::Conflict { after: 1, last: 5 },
            StoreError::Fenced { session: session.clone(), by: "m1".to_owned() },
        ];
        assert!(refused.as_ref().is_err_and(|error| expected.contains(error)), "{refused:?}");
        assert_eq!(numbers(&log.read(0..u64::MAX).await.unwrap()), [1, 5]);
    }
}

/// A stalled reader of a log keeps one page of it in memory.
#[tokio::test]
async fn t_s1_m_i15_a_page_has_a_megabyte_and_one_fact_at_most() {
    let folder = TempDir::new().unwrap();
    let session = id("large");
    let log =
        Sqlite::open(folder.path()).unwrap().create(&session, NewLog::default()).await.unwrap();
    let text = "x".repeat(200 * 1024);
    let facts: Vec<_> = (2..22).map(|seq| prompt(seq, &text)).collect();
    log.append(
        0,
        std::iter::once(opened(&session, 1)).chain(facts).collect(),
        summary(&session, ""),
    )
    .await
    .unwrap();
    let (mut next, mut seen) = (Some(0), Vec::new());
    while let Some(from) = next {
        let page = log.page(from..u64::MAX, 1_000).await.unwrap();
        let bytes: usize = page.facts.iter().map(|fact| fact.weight()).sum();
        assert!(bytes < (1 << 20) + text.len() + 4096, "{bytes} bytes");
        seen.append(&mut numbers(&page.facts));
        next = page.next;
    }
    assert_eq!(seen, (1..22).collect::<Vec<_>>());
}

#[tokio::test]
async fn m_i15_numbers_are_reserved_once_and_above_every_fact() {
    let (_places, stores) = stores().await;
    for store in stores {
        let session = id("one");
        let log = store.create(&session, NewLog::default()).await.unwrap();
        assert_eq!(log.reserve(100).await.unwrap(), 1..101);
        assert_eq!(log.reserve(1).await.unwrap(), 101..102);
        log.append(0, vec![opened(&session, 700)], summary(&session, "")).await.unwrap();
        assert_eq!(store.own(&session).await.unwrap().reserve(2).await.unwrap(), 701..703);
    }
}

#[tokio::test]
async fn m_i15_unused_numbers_are_returned_unless_later_ones_were_reserved() {
    let (_places, stores) = stores().await;
    for store in stores {
        let session = id("one");
        let log = store.create(&session, NewLog::default()).await.unwrap();
        let first = log.reserve(100).await.unwrap();
        let second = log.reserve(100).await.unwrap();
        log.give_back(40..first.end).await.unwrap();
        assert_eq!(log.reserve(10).await.unwrap(), 201..211, "the next reservation follows");
        log.give_back(211..211).await.unwrap();
        log.give_back(201..211).await.unwrap();
        log.give_back(150..second.end).await.unwrap();
        assert_eq!(log.reserve(10).await.unwrap(), 150..160);
        log.append(0, vec![opened(&session, 155)], summary(&session, "")).await.unwrap();
        log.give_back(152..160).await.unwrap();
        assert_eq!(log.reserve(10).await.unwrap(), 156..166, "the reservation is above every fact");
    }
}

#[tokio::test]
async fn m_i15_sessions_are_listed_as_saved_last_and_deleted() {
    let (_places, stores) = stores().await;
    for store in stores {
        let (one, two) = (id("one"), id("two"));
        for session in [&one, &two] {
            let log = store.create(session, NewLog::default()).await.unwrap();
            log.append(0, vec![opened(session, 1)], summary(session, "fresh")).await.unwrap();
            log.append(1, vec![prompt(2, "x")], summary(session, session.as_str())).await.unwrap();
        }
        let mut listed = store.list().await.unwrap();
        listed.sort_by(|a, b| a.summary.id.cmp(&b.summary.id));
        assert_eq!(
            listed.iter().map(|saved| &saved.summary.title[..]).collect::<Vec<_>>(),
            ["one", "two"]
        );
        assert!(listed[0].opened.0 > 1_700_000_000_000);

        let log = store.own(&one).await.unwrap();
        store.delete(&one).await.unwrap();
        let unknown = StoreError::Unknown { session: one.clone() };
        assert_eq!(store.delete(&one).await, Err(unknown.clone()));
        assert_eq!(store.open(&one).await.err(), Some(unknown.clone()));
        assert_eq!(
            log.append(2, vec![prompt(3, "late")], summary(&one, "late")).await,
            Err(unknown)
        );
        assert_eq!(store.list().await.unwrap().len(), 1);
        assert_eq!(numbers(&store.open(&two).await.unwrap().read(0..9).await.unwrap()), [1, 2]);
    }
}

#[tokio::test]
async fn m_b9_sessions_are_listed_in_pages_the_newest_first() {
    let (_places, stores) = stores().await;
    for store in stores {
        assert_eq!(store.list().await.unwrap(), []);
        // Times and ids have different orders, and two times are equal.
        for (name, at) in [("c", 30), ("b", 10), ("e", 50), ("a", 40), ("d", 40), ("g", 20)] {
            let session = id(name);
            let first = Event { at: Timestamp(at), ..(*opened(&session, 1)).clone() };
            let contents =
                NewLog { first: Some((Arc::new(first), summary(&session, ""))), reserved: 1 };
            store.create(&session, contents).await.unwrap();
        }
        let all = store.list().await.unwrap();
        let ids: Vec<_> = all.iter().map(|saved| saved.summary.id.as_str()).collect();
        assert_eq!(ids, ["e", "d", "a", "c", "g", "b"]);
        for limit in [1, 3, 6, 7, usize::MAX] {
            let (mut listed, mut after) = (Vec::new(), None);
            loop {
                let page = store.list_page(SavedPage { after, limit }).await.unwrap();
                assert!(page.len() <= limit);
                after = page.last().map(SavedSession::cursor);
                listed.extend(page);
                if after.is_none() {
                    break;
                }
            }
            assert_eq!(listed, all, "{limit}");
        }
        // A page begins where a session was, even if it was deleted.
        let after = Some(all[2].cursor());
        store.delete(&all[2].summary.id).await.unwrap();
        let page = store.list_page(SavedPage { after, limit: 2 }).await.unwrap();
        assert_eq!(page, all[3..5]);
    }
}

#[tokio::test]
async fn m_i15_concurrent_writes_of_many_sessions_stay_separate() {
    let (_places, stores) = stores().await;
    for store in stores {
        let logs = (0..50).map(|n| id(&format!("s{n}"))).map(|session| async {
            let log = store.create(&session, NewLog::default()).await.unwrap();
            log.append(0, vec![opened(&session, 1)], summary(&session, "")).await.unwrap();
            for seq in 2..20 {
                let fact = prompt(seq, &format!("{session} {seq}"));
                log.append(seq - 1, vec![fact], summary(&session, "")).await.unwrap();
            }
            (session, log)
        });
        for (session, log) in futures_util::future::join_all(logs).await {
            let facts = log.read(0..u64::MAX).await.unwrap();
            let expected: Vec<_> =
                (2..20).map(|seq| prompt(seq, &format!("{session} {seq}"))).collect();
            assert_eq!(facts[1..], expected[..]);
        }
    }
}

/// A read between an owner's writes sees the log at one moment, and no fact as lost. Facts taken
/// for lost would be skipped by the session's next owner, which would give the ids of their prompts
/// again.
#[tokio::test]
async fn m_b4_m_i15_a_fact_written_during_a_read_is_not_a_gap() {
    const LAST: u64 = 600;
    let (_places, stores) = stores().await;
    for store in stores {
        let session = id("one");
        let log = store.create(&session, NewLog::default()).await.unwrap();
        log.append(0, vec![opened(&session, 1)], summary(&session, "")).await.unwrap();
        let writes = async {
            for seq in 2..=LAST {
                log.append(seq - 1, vec![prompt(seq, "")], summary(&session, "")).await.unwrap();
            }
        };
        let reads = async {
            let reader = store.open(&session).await.unwrap();
            let mut seen = 0;
            while seen < LAST {
                for fact in reader.page(seen + 1..u64::MAX, usize::MAX).await.unwrap().facts {
                    assert!(
                        fact.fact().is_some() && fact.seq == seen + 1,
                        "after {seen}: {fact:?}"
                    );
                    seen = fact.seq;
                }
            }
        };
        futures_util::future::join(writes, reads).await;
    }
}

/// A piece of an answer that is still streaming.
fn piece(seq: u64, text: &str) -> Arc<Event> {
    let body = Body::Delta(Delta::Text { item: ItemId(1), text: text.to_owned() });
    Arc::new(Event { seq, at: Timestamp(seq), turn: Some(TurnId(1)), step: Some(1), body })
}

#[tokio::test]
async fn m_i15_a_draft_lasts_until_its_answer_or_its_turns_end_is_saved() {
    let (_places, stores) = stores().await;
    for store in stores {
        let (one, two) = (id("one"), id("two"));
        let (log, other) = (
            store.create(&one, NewLog::default()).await.unwrap(),
            store.create(&two, NewLog::default()).await.unwrap(),
        );
        log.append(0, vec![opened(&one, 1)], summary(&one, "")).await.unwrap();
        other.append(0, vec![opened(&two, 1)], summary(&two, "")).await.unwrap();
        other.keep_draft(vec![piece(9, "other")]).await.unwrap();
        let pieces = [piece(3, "half "), piece(5, "an \u{1f600}")];
        log.keep_draft(pieces[..1].to_vec()).await.unwrap();
        // A piece is sent again if its save seemed to fail.
        log.keep_draft(pieces.to_vec()).await.unwrap();
        log.keep_draft(vec![piece(6, "!")]).await.unwrap();
        log.append(1, vec![prompt(7, "queued")], summary(&one, "")).await.unwrap();
        let drafted = store.open(&one).await.unwrap().draft().await.unwrap();
        assert_eq!(drafted, [&pieces[..], &[piece(6, "!")]].concat());
        assert_eq!(numbers(&log.read(0..99).await.unwrap()), [1, 7], "a draft is not a fact");
        let answer =
            event(8, Fact::Turn(TurnFact::AssistantMessage(AssistantMessage::default().into())));
        log.append(7, vec![answer], summary(&one, "")).await.unwrap();
        assert_eq!(log.draft().await.unwrap(), []);

        // Saved late: the next answer has started.
        log.keep_draft(vec![piece(9, "more"), piece(11, "of the next")]).await.unwrap();
        let answer =
            event(10, Fact::Turn(TurnFact::AssistantMessage(AssistantMessage::default().into())));
        log.append(8, vec![answer], summary(&one, "")).await.unwrap();
        assert_eq!(log.draft().await.unwrap(), [piece(11, "of the next")]);

        let (outcome, usage) = (Outcome::Done, Usage::default());
        let end = Fact::Turn(TurnFact::Finished {
            outcome,
            error: None,
            cause: None,
            receipt: None,
            usage,
        });
        log.append(10, vec![event(12, end)], summary(&one, "")).await.unwrap();
        assert_eq!(log.draft().await.unwrap(), []);
        assert_eq!(other.draft().await.unwrap(), [piece(9, "other")]);
        store.delete(&two).await.unwrap();
        assert!(matches!(
            other.keep_draft(vec![piece(13, "late")]).await,
            Err(StoreError::Unknown { .. })
        ));
    }
}

/// A client that still has its log open writes nothing that reappears, and reads nothing of the
/// conversation.
#[tokio::test]
async fn m_i15_a_deleted_session_is_neither_written_nor_read_through_an_open_log() {
    let (_places, stores) = stores().await;
    for store in stores {
        let (one, two) = (id("one"), id("two"));
        let log = store.create(&one, NewLog::default()).await.unwrap();
        log.append(0, vec![opened(&one, 1), prompt(2, "x")], summary(&one, "")).await.unwrap();
        log.keep_draft(vec![piece(3, "half")]).await.unwrap();
        // A session without a saved fact.
        let empty = store.create(&two, NewLog::default()).await.unwrap();
        for (session, log) in [(&one, &log), (&two, &empty)] {
            store.delete(session).await.unwrap();
            let unknown = StoreError::Unknown { session: session.clone() };
            for last in [0, 2, 9] {
                let late =
                    log.append(last, vec![prompt(10, "late")], summary(session, "late")).await;
                assert_eq!(late, Err(unknown.clone()), "after {last}");
            }
            assert_eq!(log.keep_draft(vec![piece(11, "late")]).await, Err(unknown.clone()));
            assert_eq!(log.reserve(1).await, Err(unknown.clone()));
            assert_eq!(log.page(0..99, 9).await.unwrap(), Page::default());
            assert_eq!(log.newest(0..99, 1).await.unwrap(), 0);
            assert_eq!(log.draft().await.unwrap(), []);
            assert!(log.saved().await.unwrap().is_none());
        }
        // A session made again under the same id is another one.
        store.create(&one, NewLog::default()).await.unwrap();
        assert_eq!(store.open(&one).await.unwrap().read(0..99).await.unwrap(), []);
    }
}
