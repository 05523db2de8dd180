//! The pieces of an answer: text that arrives together is passed on as one piece.
//!
//! Each piece wakes the thread of its session and those of the clients. While many pieces arrive, all
//! answers of an engine pass on their text at common ticks, so that the pieces of a tick wake each
//! thread once. The first piece after a pause does not wait, and neither does a large one, nor any
//! other event.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::{FutureExt, StreamExt};
use holdpoint_common::BlockKind;
use holdpoint_common::limits::MAX_TEXT_DELTA;
use tokio::time::{Instant, timeout_at};

use crate::model::{ModelError, ModelEvent, ModelStream};

/// Text waits if at least this many pieces arrived in the last whole interval. With fewer, the timers
/// cause more wakes than they save.
const MANY: usize = 3;

/// A piece does not wait if none was passed on for this long.
const PAUSE: Duration = Duration::from_millis(250);

/// The ticks at which the answers of an engine pass on their text while many pieces arrive.
pub(crate) struct Ticks {
    start: Instant,
    /// The time between two ticks. If it is 0, no text waits.
    interval: Duration,
    /// The number of the current interval.
    current: AtomicU64,
    /// How many pieces have arrived in it, and arrived in the one before. The answers are read by one
    /// thread, so the counts are exact.
    arrived: AtomicUsize,
    arrived_before: AtomicUsize,
}

impl Ticks {
    pub(crate) fn every(interval: Duration) -> Self {
        Self {
            start: Instant::now(),
            interval,
            current: AtomicU64::default(),
            arrived: AtomicUsize::default(),
            arrived_before: AtomicUsize::default(),
        }
    }

    /// Counts a piece that arrives now. Returns the next tick if many pieces arrive.
    fn count(&self, now: Instant) -> Option<Instant> {
        let passed = now.saturating_duration_since(self.start).as_nanos();
        let interval = self.interval.as_nanos();
        let current = u64::try_from(passed.checked_div(interval)?).ok()?;
        let last = self.current.swap(current, Ordering::Relaxed);
        if current != last {
            let arrived = self.arrived.swap(0, Ordering::Relaxed);
            let arrived = if current == last + 1 { arrived } else { 0 };
            self.arrived_before.store(arrived, Ordering::Relaxed);
        }
        self.arrived.fetch_add(1, Ordering::Relaxed);
        if self.arrived_before.load(Ordering::Relaxed) < MANY {
            return None;
        }
        let until_tick = u64::try_from(interval - passed % interval).ok()?;
        Some(now + Duration::from_nanos(until_tick))
    }
}

type ModelResult = Result<ModelEvent, ModelError>;

/// The events of a model's stream, with text that arrives together as one event.
pub(super) struct Pieces<'a> {
    stream: ModelStream,
    ticks: &'a Ticks,
    waiting: Option<WaitingText>,
    /// The event after the waiting text, or the end of the stream.
    ahead: Option<Option<ModelResult>>,
    /// When text was passed on last.
    passed_on: Option<Instant>,
}

struct WaitingText {
    kind: BlockKind,
    text: String,
    /// When it is passed on at the latest. `None` means as soon as no more text has arrived.
    until: Option<Instant>,
}

impl<'a> Pieces<'a> {
    pub(super) fn new(stream: ModelStream, ticks: &'a Ticks) -> Self {
        Self { stream, ticks, waiting: None, ahead: None, passed_on: None }
    }

    /// The next event; `None` at the end of the stream. A call that is dropped half-way loses no
    /// event.
    pub(super) async fn next(&mut self) -> Option<ModelResult> {
        loop {
            let event = match self.ahead.take() {
                Some(event) => event,
                None => match self.arrival().await {
                    Some(event) => event,
                    None => return self.pass_on(),
                },
            };
            let (kind, text) = match event {
                Some(Ok(ModelEvent::Text(text))) => (BlockKind::Text, text),
                Some(Ok(ModelEvent::Thought(text))) => (BlockKind::Thought, text),
                other if self.waiting.is_none() => return other,
                other => {
                    self.ahead = Some(other);
                    return self.pass_on();
                }
            };
            match &mut self.waiting {
                Some(waiting) if waiting.kind == kind => waiting.text.push_str(&text),
                Some(_) => {
                    self.ahead = Some(Some(Ok(event_of(kind, text))));
                    return self.pass_on();
                }
                None => {
                    let now = Instant::now();
                    let is_paused = self.passed_on.is_none_or(|last| now - last >= PAUSE);
                    let until = self.ticks.count(now).filter(|_| !is_paused);
                    self.waiting = Some(WaitingText { kind, text, until });
                }
            }
        }
    }

    /// The next event of the stream, or its end; `None` if the waiting text is to be passed on first.
    async fn arrival(&mut self) -> Option<Option<ModelResult>> {
        let Some(waiting) = &self.waiting else { return Some(self.stream.next().await) };
        if waiting.text.len() >= MAX_TEXT_DELTA {
            return None;
        }
        // What has arrived together counts as one piece.
        if let Some(event) = self.stream.next().now_or_never() {
            return Some(event);
        }
        let event = timeout_at(waiting.until?, self.stream.next()).await.ok()?;
        self.ticks.count(Instant::now());
        Some(event)
    }

    fn pass_on(&mut self) -> Option<ModelResult> {
        let WaitingText { kind, text, .. } = self.waiting.take()?;
        self.passed_on = Some(Instant::now());
        Some(Ok(event_of(kind, text)))
    }
}

fn event_of(kind: BlockKind, text: String) -> ModelEvent {
    match kind {
        BlockKind::Text => ModelEvent::Text(text),
        BlockKind::Thought => ModelEvent::Thought(text),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use futures_util::stream;
    use holdpoint_common::Usage;
    use proptest::prelude::*;
    use tokio::time::sleep;

    use super::*;

    const INTERVAL: Duration = Duration::from_millis(16);

    fn text(text: &str) -> ModelEvent {
        ModelEvent::Text(text.to_owned())
    }

    /// A stream of these events, each with its milliseconds since the one before.
    fn paced(events: Vec<(u64, ModelEvent)>) -> ModelStream {
        let step = |(after, event)| async move {
            sleep(Duration::from_millis(after)).await;
            Ok(event)
        };
        stream::iter(events).then(step).boxed()
    }

    /// The events that are passed on, with the milliseconds since the start of the ticks.
    async fn passed_on(stream: ModelStream, ticks: &Ticks) -> Vec<(u64, ModelEvent)> {
        let mut pieces = Pieces::new(stream, ticks);
        let mut events = Vec::new();
        while let Some(event) = pieces.next().await {
            let at = u64::try_from(ticks.start.elapsed().as_millis()).unwrap();
            events.push((at, event.unwrap()));
        }
        events
    }

    #[tokio::test(start_paused = true)]
    async fn few_pieces_do_not_wait() {
        let events = passed_on(paced(vec![(9, text("a")); 100]), &Ticks::every(INTERVAL)).await;
        assert_eq!(events, (1..=100).map(|n| (9 * n, text("a"))).collect::<Vec<_>>());
    }

    #[tokio::test(start_paused = true)]
    async fn many_pieces_are_passed_on_at_common_moments() {
        let ticks = Ticks::every(INTERVAL);
        let one = passed_on(paced(vec![(5, text("a")); 200]), &ticks);
        let other = passed_on(paced(vec![(7, text("b")); 140]), &ticks);
        let (one, other) = tokio::join!(one, other);
        for (events, letter, count) in [(one, "a", 200), (other, "b", 140)] {
            let all: String = events
                .iter()
                .map(|(_, event)| if let ModelEvent::Text(text) = event { text } else { "" })
                .collect();
            assert_eq!(all, letter.repeat(count));
            let late = events.iter().filter(|(at, _)| *at > 32 && at % 16 != 0).count();
            // Only the last piece ends with its stream.
            assert!(late <= 1, "{events:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_piece_after_a_pause_does_not_wait_nor_do_other_events_and_large_pieces() {
        let ticks = Ticks::every(INTERVAL);
        let busy = async {
            for _ in 0..1_000 {
                ticks.count(Instant::now());
                sleep(Duration::from_millis(1)).await;
            }
        };
        let large = "x".repeat(MAX_TEXT_DELTA);
        let usage = ModelEvent::Usage(Usage::default());
        let events = passed_on(
            paced(vec![
                (33, text("first")),
                (1, text("waits")),
                (1, usage.clone()),
                (1, text("thinks")),
                (1, ModelEvent::Thought("then".to_owned())),
                (1, text(&large)),
                (263, text("after a pause")),
            ]),
            &ticks,
        );
        let (events, ()) = tokio::join!(events, busy);
        let expected = [
            (33, text("first")),
            (35, text("waits")),
            (35, usage),
            (37, text("thinks")),
            (38, ModelEvent::Thought("then".to_owned())),
            (38, text(&large)),
            (301, text("after a pause")),
        ];
        assert_eq!(events, expected);
    }

    #[tokio::test(start_paused = true)]
    async fn without_an_interval_no_piece_waits() {
        let ticks = Ticks::every(Duration::ZERO);
        let events = passed_on(paced(vec![(1, text("a")); 100]), &ticks).await;
        assert_eq!(events, (1..=100).map(|at| (at, text("a"))).collect::<Vec<_>>());
    }

    fn any_event() -> impl Strategy<Value = ModelEvent> {
        prop_oneof![
            4 => "[a-z]{1,9}".prop_map(ModelEvent::Text),
            2 => "[a-z]{1,9}".prop_map(ModelEvent::Thought),
            1 => "[a-z]{1,9}".prop_map(ModelEvent::ThoughtSignature),
            1 => (1..9_usize).prop_map(|bytes| ModelEvent::Writing { bytes }),
        ]
    }

    /// The kind and the text of a piece.
    fn piece_of(event: &ModelEvent) -> Option<(BlockKind, &str)> {
        match event {
            ModelEvent::Text(text) => Some((BlockKind::Text, text)),
            ModelEvent::Thought(text) => Some((BlockKind::Thought, text)),
            _ => None,
        }
    }

    /// Checks that these events are passed on in order and whole, text after at most an interval and
    /// all others at once.
    fn check(arrived: &[(u64, ModelEvent)], passed_on: &[(u64, ModelEvent)]) {
        let mut arrived = arrived.iter();
        for (at, event) in passed_on {
            let (first_at, first) = arrived.next().expect("more is passed on than has arrived");
            let Some((kind, text)) = piece_of(event) else {
                assert_eq!((at, event), (first_at, first));
                continue;
            };
            assert!((*first_at..=first_at + 16).contains(at), "{text}: {first_at} {at}");
            let mut part = first;
            let mut rest = text;
            loop {
                let (part_kind, part_text) = piece_of(part).expect("the part is text");
                assert_eq!(part_kind, kind, "{text}");
                rest = rest.strip_prefix(part_text).expect("the text is whole");
                if rest.is_empty() {
                    break;
                }
                part = &arrived.next().expect("more text is passed on than has arrived").1;
            }
        }
        assert_eq!(arrived.next(), None);
    }

    async fn check_with_others(events: Vec<(u64, ModelEvent)>, others: u32) {
        let ticks = Ticks::every(INTERVAL);
        let mut at = 0;
        let arrived: Vec<_> = events
            .iter()
            .map(|(after, event)| {
                at += after;
                (at, event.clone())
            })
            .collect();
        let other_pieces = async {
            for _ in 0..u64::from(others) * at / 16 {
                ticks.count(Instant::now());
                sleep(INTERVAL / others).await;
            }
        };
        let failed = stream::once(async { Err(ModelError::Failed { message: "end".to_owned() }) });
        let mut pieces = Pieces::new(paced(events).chain(failed).boxed(), &ticks);
        let mut passed_on = Vec::new();
        let reading = async {
            loop {
                // A call that is dropped loses nothing.
                match timeout_at(Instant::now() + Duration::from_millis(1), pieces.next()).await {
                    Err(_) => {}
                    Ok(Some(Ok(event))) => {
                        let at = ticks.start.elapsed().as_millis();
                        passed_on.push((u64::try_from(at).unwrap(), event));
                    }
                    Ok(Some(Err(_))) => break,
                    Ok(None) => panic!("the error is lost"),
                }
            }
        };
        tokio::join!(reading, other_pieces);
        check(&arrived, &passed_on);
    }

    proptest! {
        #[test]
        fn events_stay_whole_and_in_order_and_text_waits_at_most_an_interval(
            events in prop::collection::vec((0..40_u64, any_event()), 0..60),
            others in 0..8_u32,
        ) {
            let mut runtime = tokio::runtime::Builder::new_current_thread();
            let runtime = runtime.enable_time().start_paused(true).build().unwrap();
            runtime.block_on(check_with_others(events, others));
        }
    }
}
