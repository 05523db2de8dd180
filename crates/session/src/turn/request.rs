//! The request of a step: the conversation, as much of it as the model's context has room for.

use std::sync::Arc;

use holdpoint_common::{HistoryCut, HistoryLimit, Outcome};

use super::{End, Runner};
use crate::context::{self, Bounds, Counter, LeftOut};
use crate::history::{self, Derived};
use crate::model::ModelRequest;
use crate::state::{Conversation, Report};

impl Runner {
    /// The next request.
    ///
    /// # Errors
    /// How the turn ends because there is none: what can't be left out of it is too large, or it was cut meanwhile.
    pub(super) async fn request(&mut self, history: Conversation) -> Result<ModelRequest, End> {
        let Derived { messages, omissible, refusals } = history::apart(history.events());
        (self.omissible, self.refusals) = (omissible, refusals);
        let request = ModelRequest { system: Arc::clone(&self.system), messages, tools: Arc::clone(&self.specs) };
        // Let go, so that the actor can add to it without a copy.
        let forgotten = history.forgotten();
        drop(history);
        let mut request = self.fit(request, forgotten).await?;
        history::join(&mut request.messages);
        Ok(request)
    }

    /// Leaves out of a request what the model's context has no room for, and tells it. So many facts are not even in it.
    async fn fit(&mut self, mut request: ModelRequest, forgotten: u64) -> Result<ModelRequest, End> {
        let bounds = Bounds::of(&self.outfit.limits, &self.outfit.model.settings());
        if !self.outfit.model.has_context() || bounds.hold(&request) {
            return Ok(request);
        }
        // Counting tokens may load a vocabulary, and takes its time.
        let mut counter = self.counter.take().unwrap_or_else(|| Counter::new(Arc::clone(&self.outfit.tokenizer)));
        let fitted = tokio::task::spawn_blocking(move || {
            let left_out = context::fit(&mut request, &bounds, &mut |text| counter.count(text));
            (request, left_out, counter)
        });
        // A long conversation takes seconds. It is counted to its end, unheard.
        let Some(fitted) = self.cancel.run_until_cancelled(fitted).await else {
            return Err(End::of(Outcome::Interrupted));
        };
        let (request, left_out, counter) =
            fitted.map_err(|panic| End::failed(format!("the conversation could not be cut to size: {panic}")))?;
        self.counter = Some(counter);
        let left_out = left_out.map_err(|error| End::failed(error.to_string()))?;
        let Some(LeftOut { messages, results, tokens, lines, by_lines }) = left_out else { return Ok(request) };
        let messages = messages + forgotten;
        let Bounds { tokens: limit, lines: line_limit } = bounds;
        let reached = match by_lines {
            true => HistoryLimit::Lines,
            false if limit < self.outfit.limits.max_history_tokens => HistoryLimit::Window,
            false => HistoryLimit::Tokens,
        };
        // Once in a turn; more of it is left out with each step.
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
