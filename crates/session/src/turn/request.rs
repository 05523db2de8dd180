//! The request of a step: the part of the conversation that fits into the model's context.

use std::sync::Arc;

use holdpoint_common::{HistoryCut, HistoryLimit, Outcome};

use super::{End, Runner};
use crate::context::{self, Bounds, Counter, LeftOut};
use crate::history::{self, Derived};
use crate::model::ModelRequest;
use crate::state::{Conversation, Report};

impl Runner {
    /// Builds the next request. `content` was added to the prompt in this step.
    ///
    /// # Errors
    /// The end of the turn, if the parts that can't be left out are too large, or the turn was cut
    /// in the meantime.
    pub(super) async fn request(
        &mut self,
        conversation: Conversation,
        content: Option<&str>,
    ) -> Result<ModelRequest, End> {
        let Derived { mut messages, omissible, refusals } = match self.env.model.needs_messages() {
            true => history::derive(conversation.events()),
            false => Derived::default(),
        };
        // The conversation is from before this content was added.
        content.into_iter().for_each(|text| history::add_content(&mut messages, text));
        context::limit_images(&mut messages, self.env.model.takes_images());
        self.omissible = omissible;
        self.refusals = refusals;
        let request = ModelRequest {
            system: Arc::clone(&self.system),
            messages,
            tools: Arc::clone(&self.specs),
        };
        let forgotten = conversation.forgotten();
        // Dropped here, so that the actor can add to the conversation without a copy.
        drop(conversation);
        let mut request = self.fit(request, forgotten).await?;
        history::join_prompts(&mut request.messages);
        Ok(request)
    }

    /// Cuts a request to the model's context, and reports the cut. The conversation already lacks
    /// `forgotten` facts.
    async fn fit(
        &mut self,
        mut request: ModelRequest,
        forgotten: u64,
    ) -> Result<ModelRequest, End> {
        if !self.env.model.has_context() {
            return Ok(request);
        }
        let bounds = Bounds::new(&self.env.limits, &self.env.model.settings());
        let bytes = request.bytes();
        if bounds.allow(bytes, &request.messages) {
            self.env.tokenizer.load_if_near(&bounds, bytes, &self.env.runtime);
            return Ok(request);
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
        let Some(LeftOut { messages, results, tokens, lines, by_lines }) = left_out else {
            return Ok(request);
        };
        let messages = messages + forgotten;
        let Bounds { tokens: limit, lines: line_limit } = bounds;
        let reached = match by_lines {
            true => HistoryLimit::Lines,
            false if limit < self.env.limits.max_history_tokens => HistoryLimit::Window,
            false => HistoryLimit::Tokens,
        };
        // Reported once per turn, although each step may leave out more.
        if self.left_out.replace((reached, results > 0)) != Some((reached, results > 0)) {
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
        Ok(request)
    }
}
