//! The request of a step: the part of the conversation that fits into the model's context.

use std::sync::Arc;

use holdpoint_common::{HistoryCut, HistoryLimit, Outcome};
use tokio::sync::oneshot;

use super::{End, Runner};
use crate::context::{self, Bounds, Counter, LeftOut};
use crate::history::{self, Derived};
use crate::lane::LaneMessage;
use crate::model::ModelRequest;
use crate::session_env::SessionEnv;
use crate::state::{Conversation, Report};

/// Counts the tokens of the texts that the next request probably has. Slow.
pub(crate) fn count_ahead(conversation: Conversation, env: &SessionEnv) -> Option<Counter> {
    let bounds = env.bounds()?;
    let from = conversation.start_of_newest(bounds.newest_bytes())?;
    let mut messages = history::derive(&conversation.events()[from..]).messages;
    // Dropped here, so that the actor can add to the conversation without a copy.
    drop(conversation);
    context::limit_images(&mut messages, env.model.takes_images());
    let (system, tools) = (Arc::clone(&env.system), Arc::clone(&env.tool_specs));
    let mut request = ModelRequest { system, messages, tools };
    let mut counter = Counter::new(Arc::clone(&env.tokenizer));
    // The request itself has another prompt, and may fit even if this one doesn't.
    let _ = context::fit(&mut request, &bounds, &mut |text| counter.count(text));
    Some(counter)
}

impl Runner {
    /// Builds the next request. `content` was added to the prompt in this step.
    ///
    /// # Errors
    /// The end of the turn, if the parts that can't be left out are too large, the conversation can't
    /// be read, or the turn was cut in the meantime.
    pub(super) async fn request(
        &mut self,
        mut conversation: Conversation,
        mut content: Option<&str>,
    ) -> Result<ModelRequest, End> {
        let model = Arc::clone(&self.env.model);
        let bounds = Bounds::new(&self.env.limits, &model.settings());
        // A long conversation has many more facts than fit. First only the newest are derived, and
        // four times as many while all of them fit.
        let mut bytes = if model.has_context() { bounds.newest_bytes() } else { u64::MAX };
        loop {
            let (from, derived) = match model.needs_messages() {
                false => (0, Derived::default()),
                true => match conversation.start_of_newest(bytes) {
                    Some(from) => (from, history::derive(&conversation.events()[from..])),
                    None => {
                        conversation = self.read_older(bytes).await?;
                        // It was added to this conversation.
                        content = None;
                        continue;
                    }
                },
            };
            let Derived { mut messages, omissible, refusals } = derived;
            // The conversation is from before this content was added.
            content.into_iter().for_each(|text| history::add_content(&mut messages, text));
            context::limit_images(&mut messages, model.takes_images());
            self.omissible = omissible;
            self.refusals = refusals;
            let request = ModelRequest {
                system: Arc::clone(&self.system),
                messages,
                tools: Arc::clone(&self.specs),
            };
            let (mut request, left_out) = match model.has_context() {
                true => self.fit(request, bounds).await?,
                false => (request, None),
            };
            if from > 0 && left_out.is_none_or(|left_out| left_out.has_room) {
                bytes = bytes.saturating_mul(4);
                continue;
            }
            if let Some(left_out) = left_out {
                self.report_cut(left_out, bounds, conversation, from).await;
            }
            history::join_prompts(&mut request.messages);
            return Ok(request);
        }
    }

    /// Has the actor read older facts from the log, until the newest have this many bytes. Returns the
    /// current conversation. Stops at a cut.
    async fn read_older(&self, bytes: u64) -> Result<Conversation, End> {
        let (sender, receiver) = oneshot::channel();
        // If the actor is gone, the receiver fails.
        let _ = self.lane.send(LaneMessage::ReadOlder(bytes, sender)).await;
        match self.cancel.run_until_cancelled(receiver).await {
            Some(Ok(Ok(conversation))) => Ok(conversation),
            Some(Ok(Err(error))) => Err(End::failed(format!(
                "the conversation can't be read: {error} (hint: prompt again)"
            ))),
            Some(Err(_)) | None => Err(End::with_outcome(Outcome::Interrupted)),
        }
    }

    /// Cuts a request to the model's context.
    async fn fit(
        &mut self,
        mut request: ModelRequest,
        bounds: Bounds,
    ) -> Result<(ModelRequest, Option<LeftOut>), End> {
        let bytes = request.bytes();
        if bounds.allow(bytes, &request.messages) {
            self.env.tokenizer.load_if_near(&bounds, bytes, &self.env.runtime);
            return Ok((request, None));
        }
        // Counting tokens is slow, and may load a vocabulary.
        let mut counter =
            self.counter.take().unwrap_or_else(|| Counter::new(Arc::clone(&self.env.tokenizer)));
        let fitted = tokio::task::spawn_blocking(move || {
            counter.begin();
            let left_out = context::fit(&mut request, &bounds, &mut |text| counter.count(text));
            (request, left_out, counter)
        });
        // A long conversation takes seconds. After a cut, the counting continues, but its result is
        // unused.
        let Some(fitted) = self.cancel.run_until_cancelled(fitted).await else {
            return Err(End::with_outcome(Outcome::Interrupted));
        };
        let (request, left_out, counter) = fitted.map_err(|panic| {
            End::failed(format!("the conversation could not be cut to its limits: {panic}"))
        })?;
        self.counter = Some(counter);
        let left_out = left_out.map_err(|error| End::failed(error.to_string()))?;
        Ok((request, left_out))
    }

    /// Reports a cut, once per turn, although each step may leave out more. The request was made
    /// without the facts of the conversation before `from`.
    async fn report_cut(
        &mut self,
        left_out: LeftOut,
        bounds: Bounds,
        conversation: Conversation,
        from: usize,
    ) {
        let LeftOut { messages, results, tokens, lines, by_lines, .. } = left_out;
        let Bounds { tokens: limit, lines: line_limit } = bounds;
        let reached = match by_lines {
            true => HistoryLimit::Lines,
            false if limit < self.env.limits.max_history_tokens => HistoryLimit::Window,
            false => HistoryLimit::Tokens,
        };
        if self.left_out.replace((reached, results > 0)) != Some((reached, results > 0)) {
            let messages = messages + conversation.messages_before(from);
            // Dropped here, so that the actor can add to the conversation without a copy.
            drop(conversation);
            self.report(Report::HistoryCut(HistoryCut {
                messages,
                results,
                tokens,
                limit,
                lines,
                line_limit,
                reached,
            }))
            .await;
        }
    }
}
