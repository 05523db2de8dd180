//! Answering asks.

use std::sync::Arc;

use holdpoint_common::api::Answered;
use holdpoint_common::{Answer, AnswerError, AskId, QuestionReply};
use holdpoint_session::SessionError;
use napi::Env;
use napi::bindgen_prelude::{PromiseRaw, Unknown};
use napi_derive::napi;

use super::turn::{InterruptOptions, interrupt};
use super::{Place, Sessions};
use crate::crossing::{promise, read};
use crate::failure::Failure;

/// Which ask is answered.
#[napi(object, object_to_js = false)]
#[derive(Default)]
pub struct AnswerOptions {
    /// This one. Without it: the ask that was shown here last, by an event or by being looked at; never whichever is
    /// first now.
    #[napi(ts_type = "AskId")]
    pub ask_id: Option<String>,
}

/// How a Confirm is answered.
#[napi(object, object_to_js = false)]
#[derive(Default)]
pub struct ConfirmOptions {
    /// This one. Without it: the ask that was shown here last, by an event or by being looked at; never whichever is
    /// first now.
    #[napi(ts_type = "AskId")]
    pub ask_id: Option<String>,
    /// Approves what it is about from now on, for as long as the session lives.
    pub always: Option<bool>,
    /// Why it is denied, for the model to read.
    pub reason: Option<String>,
}

#[napi]
impl Sessions {
    /// Answers a Continue: the tool goes on.
    ///
    /// Rejects with `alreadyAnswered` (`error.answer` says by whom), `askClosed`, `kindMismatch`, `unknownAsk`, or
    /// `nothingShown`. Whichever it is, nothing has changed.
    #[napi(ts_return_type = "Promise<Answered>")]
    pub fn session_pause_resume<'env>(
        &self,
        env: &'env Env,
        id: String,
        options: Option<AnswerOptions>,
    ) -> napi::Result<PromiseRaw<'env, Unknown<'env>>> {
        let ask = options.unwrap_or_default().ask_id;
        let shown = Shown::at(self.place(), id);
        promise(env, async move { shown.answer(ask, Answer::Resume).await })
    }

    /// Answers a Confirm.
    ///
    /// Rejects as `sessionPauseResume` does.
    #[napi(ts_return_type = "Promise<Answered>")]
    pub fn session_pause_confirm<'env>(
        &self,
        env: &'env Env,
        id: String,
        approved: bool,
        options: Option<ConfirmOptions>,
    ) -> napi::Result<PromiseRaw<'env, Unknown<'env>>> {
        let ConfirmOptions { ask_id, always, reason } = options.unwrap_or_default();
        let answer = match approved {
            true => Answer::Approve { always: always.unwrap_or(false) },
            false => Answer::Deny { reason },
        };
        let shown = Shown::at(self.place(), id);
        promise(env, async move { shown.answer(ask_id, answer).await })
    }

    /// Answers a pause with Interrupted, as Esc does: the turn ends. Gives what the interrupt found.
    #[napi(ts_return_type = "Promise<Interrupted>")]
    pub fn session_pause_interrupt<'env>(
        &self,
        env: &'env Env,
        id: String,
    ) -> napi::Result<PromiseRaw<'env, Unknown<'env>>> {
        promise(env, interrupt(self.place(), id, InterruptOptions::default()))
    }

    /// Answers a question: each by its id, or `null` to decline.
    ///
    /// Rejects as `sessionPauseResume` does, and with `incompleteAnswer` if a reply is missing, empty, or one too many.
    #[napi(
        ts_args_type = "id: string, answers: QuestionReply[] | null, options?: AnswerOptions",
        ts_return_type = "Promise<Answered>"
    )]
    pub fn session_answer_question<'env>(
        &self,
        env: &'env Env,
        id: String,
        answers: Unknown<'_>,
        options: Option<AnswerOptions>,
    ) -> napi::Result<PromiseRaw<'env, Unknown<'env>>> {
        let answers: Result<Option<Vec<QuestionReply>>, Failure> = read(env, "answers", answers);
        let ask = options.unwrap_or_default().ask_id;
        let shown = Shown::at(self.place(), id);
        promise(env, async move {
            let answer = answers?.map_or(Answer::Cancel, |answers| Answer::Reply { answers });
            shown.answer(ask, answer).await
        })
    }
}

/// A session, and the ask that was shown of it when it was answered.
struct Shown {
    place: Arc<Place>,
    id: String,
    ask: Option<AskId>,
}

impl Shown {
    /// What is shown now: what is shown later was not seen by who answers now.
    fn at(place: Arc<Place>, id: String) -> Self {
        let ask = place.known.get(&id).ok().and_then(|session| place.known.shown(session.id()));
        Self { place, id, ask }
    }

    async fn answer(self, ask: Option<String>, answer: Answer) -> Result<Answered, Failure> {
        let session = self.place.session(&self.id).await?;
        let ask = match ask {
            Some(ask) => ask.parse().map_err(|error| Failure::argument(format!("askId: {error}")))?,
            None => self.ask.ok_or(SessionError::Answer(AnswerError::NothingShown))?,
        };
        let answered = session.answer(&ask, answer).await?;
        session.refresh().await?;
        Ok(answered)
    }
}
