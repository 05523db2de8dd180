//! Saving: how soon a streamed answer is on the disk, and how soon a failing disk is reported.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use holdpoint_common::limits::DRAFT_EVERY;
use holdpoint_common::{Delta, Fact, TurnFact};
use holdpoint_session::Attachment;
use holdpoint_session::store::{SessionStore, Sqlite};
use holdpoint_tests::model_server::Reply;
use holdpoint_tests::mounts::Mounted;
use tempfile::TempDir;

use crate::api::DaemonWorld;
use crate::daemon::StateDir;
use crate::floors::Floor;
use crate::support::{MODEL, until};
use crate::table::{Amount, Samples, Table};

/// Words of the streamed answer, and the pause after each.
const WORDS: usize = 250;
const PAUSE: Duration = Duration::from_millis(20);

const ROUNDS: usize = 5;

pub(crate) fn measure(table: &Table) {
    if table.wants("saving", &["word streamed to saved"]) {
        let saved = streamed();
        table.figure(
            "word streamed to saved, slowest of 250 (m-B7)",
            saved.slowest(),
            Amount::ms(2_000),
        );
        let beyond = saved.slowest().beyond(DRAFT_EVERY);
        table.note_beside(Floor::Sync, "   … beyond the second that a word waits", beyond);
        table.note("   … median", saved.median());
    }
    if table.wants("failing disks", &["full disk to client notified", "read-only data folder"]) {
        let Some(disk) = Disk::new() else {
            println!("   … skipped: only root can mount a file system");
            return;
        };
        let notified = between_turns(&disk);
        table.figure_beside(
            Floor::RoundTrip,
            "full disk to client notified, slowest (t-U6)",
            notified.slowest(),
            Amount::ms(2_000),
        );
        let notified = Samples::of(ROUNDS, in_mid_answer);
        // Most of this is the second that a word waits before it is saved.
        table.figure(
            "   … while an answer streams, slowest",
            notified.slowest(),
            Amount::ms(2_000),
        );
        let refused = read_only();
        table.figure_beside(
            Floor::Spawn,
            "read-only data folder: first command fails, slowest (t-U9)",
            refused.slowest(),
            Amount::ms(2_000),
        );
    }
}

/// For each piece of an answer, the time from its arrival at an attached client until the store has
/// it.
fn streamed() -> Samples {
    let world = DaemonWorld::new();
    let words: Vec<_> = (0..WORDS).map(|n| format!("word-{n} ")).collect();
    let answer = words.iter().fold(Reply::stream(), |answer, word| answer.say(word).pause(PAUSE));
    world.server.reply(answer.hang());
    let total: usize = words.iter().map(String::len).sum();
    let store = Sqlite::open(&world.place.data()).unwrap();
    let took = world.runtime.block_on(async {
        let (session, mut client) = world.watched(MODEL).await;
        session.prompt("go").await.unwrap();
        let log = store.open(session.id()).await.unwrap();
        // The answer's length after each piece, and when it arrived.
        let unsaved = RefCell::new(VecDeque::new());
        let mut length = 0;
        let reading = until(&mut client, |event| {
            length += text_of(event.delta()?);
            unsaved.borrow_mut().push_back((length, Instant::now()));
            (length == total).then_some(())
        });
        let polling = async {
            let (mut saved, mut took) = (0, Vec::new());
            while saved < total {
                tokio::time::sleep(Duration::from_millis(1)).await;
                let draft = log.draft().await.unwrap();
                saved = draft.iter().filter_map(|event| event.delta()).map(text_of).sum();
                let mut unsaved = unsaved.borrow_mut();
                while unsaved.front().is_some_and(|(length, _)| *length <= saved) {
                    took.extend(
                        unsaved.pop_front().map(|(_, arrived): (_, Instant)| arrived.elapsed()),
                    );
                }
            }
            took
        };
        tokio::join!(reading, polling).1
    });
    Samples::new(took)
}

/// The bytes of text in a delta.
fn text_of(delta: &Delta) -> usize {
    if let Delta::Text { text, .. } = delta { text.len() } else { 0 }
}

/// The disk is full before a prompt is sent. Prompts that still fit into space that SQLite has
/// reserved are included.
fn between_turns(disk: &Disk) -> Samples {
    let world = disk.world();
    Samples::of(ROUNDS, || {
        world.runtime.block_on(async {
            let (session, mut client) = world.watched(MODEL).await;
            let ballast = disk.fill();
            let since = Instant::now();
            loop {
                world.server.reply(Reply::text(["fine"]));
                session.prompt("x".repeat(100_000)).await.unwrap();
                let reported = until(&mut client, |event| match (event.delta(), event.fact()) {
                    (Some(Delta::NotSaved { .. }), _) => Some(true),
                    (_, Some(Fact::Turn(TurnFact::Finished { .. }))) => Some(false),
                    _ => None,
                });
                if reported.await {
                    break;
                }
            }
            let took = since.elapsed();
            recover(&ballast, &mut client).await;
            // The reply for the next round must not answer a request of this one.
            session.settled().await.unwrap();
            session.close().await.unwrap();
            took
        })
    })
}

/// The disk is full when a large part of an answer arrives. Each round has a new disk: in a log
/// that earlier rounds have grown, there would be room.
fn in_mid_answer() -> Duration {
    let disk = Disk::new().unwrap();
    let world = disk.world();
    let gate = world.server.gate();
    let begun = Reply::stream().say("I begin. ").gate(&gate);
    world.server.reply((0..20).fold(begun, |answer, _| answer.say(&"x".repeat(100_000))).hang());
    world.runtime.block_on(async {
        let (session, mut client) = world.watched(MODEL).await;
        session.prompt("go").await.unwrap();
        until(&mut client, |event| matches!(event.delta(), Some(Delta::Text { .. })).then_some(()))
            .await;
        let ballast = disk.fill();
        let since = Instant::now();
        gate.open();
        until(&mut client, |event| {
            matches!(event.delta(), Some(Delta::NotSaved { .. })).then_some(())
        })
        .await;
        let took = since.elapsed();
        recover(&ballast, &mut client).await;
        session.close().await.unwrap();
        took
    })
}

/// Frees the disk and waits until everything is saved.
async fn recover(ballast: &Path, client: &mut Attachment) {
    fs::remove_file(ballast).unwrap();
    until(client, |event| matches!(event.delta(), Some(Delta::SavedAgain)).then_some(())).await;
}

fn read_only() -> Samples {
    let place = StateDir::new();
    // Creates the store.
    place.succeed(&["daemon", "start"]);
    place.succeed(&["daemon", "stop"]);
    let data = place.data();
    let _bound = Mounted::read_only(&data).unwrap();
    Samples::of(ROUNDS, || {
        let since = Instant::now();
        let status = place.command(&["list"]).stdout(Stdio::null()).status().unwrap();
        let took = since.elapsed();
        assert_eq!(status.code(), Some(1));
        took
    })
}

/// A small file system, mounted until dropped.
struct Disk {
    // Unmounted before its folder is removed.
    _mounted: Mounted,
    folder: TempDir,
}

impl Disk {
    /// Returns `None` if this process may not mount.
    fn new() -> Option<Self> {
        let folder = TempDir::new().unwrap();
        let mounted = Mounted::disk(folder.path(), 32)?;
        Some(Self { _mounted: mounted, folder })
    }

    /// A daemon with its state on this disk.
    fn world(&self) -> DaemonWorld {
        DaemonWorld::on(StateDir::within(self.folder.path()))
    }

    /// Uses up all space. Returns the file that occupies it.
    fn fill(&self) -> PathBuf {
        let path = self.folder.path().join("ballast");
        let mut file = File::create(&path).unwrap();
        for size in [65_536, 512, 1] {
            while file.write_all(&vec![1; size]).is_ok() {}
        }
        path
    }
}
