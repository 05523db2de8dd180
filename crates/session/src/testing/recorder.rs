//! An attached test client that keeps every event and checks the guarantees of the stream.

use std::collections::BTreeMap;
use std::sync::Arc;

use holdpoint_common::{
    Answer, Ask, AskFact, Body, CutCause, Delta, Event, Fact, HeadAndTail, Hold, ItemId, Outcome,
    Receipt, SessionError, SessionFact, ToolFact, TurnFact, TurnId, Usage,
};

use super::within_patience;
use crate::attachment::Attachment;
use holdpoint_common::api::{Answered, ClientEnd};

/// An attached client that keeps every event.
///
/// The recorder checks that numbers rise strictly, and that items folded from deltas equal the
/// finished items.
pub struct Recorder {
    attachment: Attachment,
    events: Vec<Arc<Event>>,
    /// The unfinished items, folded from deltas.
    items: BTreeMap<ItemId, Folded>,
    last: u64,
}

enum Folded {
    Text(String),
    Output(HeadAndTail),
}

/// The end of a turn, from its last event.
#[derive(Debug, Clone)]
pub struct Finished {
    /// The id of the turn.
    pub turn: TurnId,
    /// How the turn ended.
    pub outcome: Outcome,
    /// The error of a failed turn.
    pub error: Option<String>,
    /// The cause of the cut.
    pub cause: Option<CutCause>,
    /// The receipt of the cut.
    pub receipt: Option<Receipt>,
    /// The usage of the turn.
    pub usage: Usage,
}

impl Recorder {
    /// Records the events of this attachment.
    #[must_use]
    pub fn new(attachment: Attachment) -> Self {
        Self { attachment, events: Vec::new(), items: BTreeMap::new(), last: 0 }
    }

    /// The attachment that is recorded.
    #[must_use]
    pub fn attachment(&self) -> &Attachment {
        &self.attachment
    }

    /// All events that were received so far.
    #[must_use]
    pub fn events(&self) -> &[Arc<Event>] {
        &self.events
    }

    /// The facts that were received so far.
    pub fn facts(&self) -> impl Iterator<Item = &Fact> {
        self.events.iter().filter_map(|event| event.fact())
    }

    /// The next event; `None` when the stream has ended.
    ///
    /// # Panics
    /// If no event arrives, or the stream breaks a guarantee.
    pub async fn next(&mut self) -> Option<Arc<Event>> {
        let event = within_patience("an event", self.attachment.next()).await?;
        assert!(event.seq > self.last, "numbers rise: {} after {}", event.seq, self.last);
        self.last = event.seq;
        self.fold(&event);
        self.events.push(Arc::clone(&event));
        Some(event)
    }

    /// Waits for the first event, past ones included, for which `wanted` returns a value.
    ///
    /// # Panics
    /// If no such event arrives.
    pub async fn until<T>(&mut self, what: &str, mut wanted: impl FnMut(&Event) -> Option<T>) -> T {
        if let Some(found) = self.events.iter().find_map(|event| wanted(event)) {
            return found;
        }
        self.until_new(what, wanted).await
    }

    /// Waits for the first new event for which `wanted` returns a value.
    ///
    /// # Panics
    /// If no such event arrives.
    pub async fn until_new<T>(
        &mut self,
        what: &str,
        mut wanted: impl FnMut(&Event) -> Option<T>,
    ) -> T {
        let read = async {
            while let Some(event) = self.next().await {
                if let Some(found) = wanted(&event) {
                    return Some(found);
                }
            }
            None
        };
        let found = tokio::time::timeout(super::patience(), read).await;
        match found {
            Ok(Some(found)) => found,
            Ok(None) => {
                panic!("the stream ended ({:?}) before {what}: {:#?}", self.end(), self.events)
            }
            Err(_) => panic!("waited for {what}, got {:#?}", self.events),
        }
    }

    /// Waits for the next ask.
    pub async fn asked(&mut self) -> Ask {
        self.until_new("an ask", |event| match event.fact() {
            Some(Fact::Ask(AskFact::Raised { ask })) => Some(ask.clone()),
            _ => None,
        })
        .await
    }

    /// Waits for the hold to change.
    pub async fn hold_changed(&mut self) -> Hold {
        self.until_new("the hold to change", |event| match event.fact() {
            Some(Fact::Session(SessionFact::HoldChanged { hold })) => Some(hold.clone()),
            _ => None,
        })
        .await
    }

    /// Waits for the next turn's end.
    pub async fn turn_finished(&mut self) -> Finished {
        self.until_new("the turn's end", |event| match (event.turn, event.fact()) {
            (
                Some(turn),
                Some(Fact::Turn(TurnFact::Finished { outcome, error, cause, receipt, usage })),
            ) => Some(Finished {
                turn,
                outcome: *outcome,
                error: error.clone(),
                cause: cause.clone(),
                receipt: receipt.clone(),
                usage: *usage,
            }),
            _ => None,
        })
        .await
    }

    /// Waits for a step to begin, past ones included.
    pub async fn step_started(&mut self) {
        self.until("a step to begin", |event| {
            matches!(event.fact(), Some(Fact::Turn(TurnFact::StepStarted))).then_some(())
        })
        .await;
    }

    /// Waits for a tool to begin.
    pub async fn tool_started(&mut self) -> holdpoint_common::CallId {
        self.until_new("a tool to begin", |event| match event.fact() {
            Some(Fact::Tool(ToolFact::Started { call })) => Some(*call),
            _ => None,
        })
        .await
    }

    /// Waits for output that contains this.
    pub async fn output(&mut self, text: &str) {
        self.until(&format!("output `{text}`"), |event| match event.delta() {
            Some(Delta::Output { text: piece, .. }) => piece.contains(text).then_some(()),
            _ => None,
        })
        .await;
    }

    /// Answers the ask that the client shows.
    ///
    /// # Errors
    /// The errors of [`Attachment::answer`].
    pub async fn answer(&self, answer: Answer) -> Result<Answered, SessionError> {
        self.attachment.answer(answer).await
    }

    /// Why the stream ended.
    #[must_use]
    pub fn end(&self) -> ClientEnd {
        self.attachment.end()
    }

    fn fold(&mut self, event: &Event) {
        match &event.body {
            Body::Delta(Delta::Text { item, text } | Delta::Thought { item, text }) => {
                if let Folded::Text(so_far) =
                    self.items.entry(*item).or_insert(Folded::Text(String::new()))
                {
                    so_far.push_str(text);
                }
            }
            Body::Delta(Delta::Output { item, text }) => {
                if let Folded::Output(kept) =
                    self.items.entry(*item).or_insert(Folded::Output(HeadAndTail::default()))
                {
                    kept.push(text);
                }
            }
            Body::Delta(Delta::ItemSoFar { item, kind, so_far }) => {
                let folded = match kind {
                    holdpoint_common::ItemKind::Output => Folded::Output(so_far.clone()),
                    _ => Folded::Text(so_far.head.clone()),
                };
                self.items.insert(*item, folded);
            }
            Body::Fact(Fact::Turn(TurnFact::AssistantMessage(message))) => {
                for block in &message.blocks {
                    if let Some(Folded::Text(text)) = self.items.remove(&block.item) {
                        assert_eq!(text, block.text, "the folded item is the finished one");
                    }
                }
            }
            Body::Fact(Fact::Tool(ToolFact::Finished(result))) => {
                if let Some(Folded::Output(kept)) = self.items.remove(&result.call.item()) {
                    assert_eq!(
                        kept.finish(),
                        result.output,
                        "the folded output is the finished one"
                    );
                }
            }
            _ => {}
        }
    }
}
