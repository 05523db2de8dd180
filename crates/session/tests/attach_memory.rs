//! The memory that an attach takes. A separate program, because the allocator counts for the whole
//! process.
#![allow(clippy::unwrap_used, reason = "a test: what goes wrong here ends it")]

use holdpoint_common::{Delta, Limits};
use holdpoint_session::AttachFrom;
use holdpoint_session::testing::Harness;
use peak_alloc::PeakAlloc;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// The text of the open answer in bytes: more than the output buffer holds, so that most pieces are
/// evicted.
const ANSWER: usize = 15 * 1024 * 1024;

/// The size of one piece from the model, in bytes.
const PIECE: usize = 1_500;

#[tokio::test]
async fn m_b4_an_attach_into_a_long_open_answer_takes_no_more_memory_than_the_output_buffer() {
    let harness = Harness::start();
    let live = harness.model.then_live();
    let session = harness.open().await;
    let mut first = session.attach(AttachFrom::start()).await.unwrap();
    session.prompt("go").await.unwrap();
    let piece = "word ".repeat(PIECE / 5);
    // Read while sending, so that the first client does not fall behind.
    let (mut sent, mut read, mut newest) = (0, 0, 0);
    while read < ANSWER {
        while sent < read + 100 * PIECE {
            assert!(live.text(piece.clone()));
            sent += piece.len();
        }
        let event = first.next().await.unwrap();
        newest = event.seq;
        if let Some(Delta::Text { text, .. }) = event.delta() {
            read += text.len();
        }
    }
    while read < sent {
        let event = first.next().await.unwrap();
        newest = event.seq;
        if let Some(Delta::Text { text, .. }) = event.delta() {
            read += text.len();
        }
    }

    let most = Limits::default().buffered_bytes;
    let froms = [
        ("from the start", 0, None),
        ("no past", 0, Some(0)),
        ("one fact", 0, Some(1)),
        ("a hundred facts", 0, Some(100)),
        ("from an evicted event", newest / 3, None),
        ("from an evicted event, no past", newest / 3, Some(0)),
        ("from a buffered event", newest - 5, None),
        ("from now", newest, None),
        ("from now, no past", newest, Some(0)),
    ];
    for (case, after, limit) in froms {
        ALLOCATOR.reset_peak_usage();
        let before = ALLOCATOR.current_usage();
        let mut client =
            session.attach(AttachFrom { limit, ..AttachFrom::after(after) }).await.unwrap();
        let (mut last, mut text) = (after, 0);
        while last < newest {
            let event = client.next().await.unwrap();
            assert!(event.seq > last, "{case}: {} after {last}", event.seq);
            last = event.seq;
            match event.delta() {
                Some(Delta::Text { text: piece, .. }) => text += piece.len(),
                // The whole text so far.
                Some(Delta::ItemSoFar { so_far, .. }) => text = so_far.head.len(),
                _ => {}
            }
        }
        let taken = ALLOCATOR.peak_usage().saturating_sub(before);
        println!("{case}: {} KiB for {} KiB of text", taken / 1024, text / 1024);
        assert!(taken <= most, "{case}: {taken} bytes, at most {most}");
        if after <= newest / 3 {
            assert_eq!(text, sent, "{case}: the whole answer");
        }
    }
}
