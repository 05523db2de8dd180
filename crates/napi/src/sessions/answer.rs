//! Answering asks.

use std::sync::Arc;

use holdpoint_common::api::Answered;
use holdpoint_common::{Answer, AnswerError, AskId, QuestionReply};
use holdpoint_session::{SessionError, SessionHandle};
use napi::Env;
use napi::bindgen_prelude::{PromiseRaw, Unknown};
use napi_derive::napi;
use serde::Deserialize;

use super::supplies::Environment;
use super::turn::{InterruptOptions, Interrupted, interrupt};
use super::{Place, Sessions, read_again};
use crate::crossing::{promise, read};
use crate::failure::Failure;

/// Which ask is answered.
#[napi(object, object_from_js = false, object_to_js = false)]
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct AnswerOptions {
    /// This one. Without it: the ask that was shown here last, by an event or by being looked at; never whichever is
    /// first now.
    #[napi(ts_type = "AskId")]
    pub ask_id: Option<AskId>,
}

/// How a Confirm is answered.
#[napi(object, object_from_js = false, object_to_js = false)]
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct ConfirmOptions {
    /// This one. Without it: the ask that was shown here last, by an event or by being looked at; never whichever is
    /// first now.
    #[napi(ts_type = "AskId")]
    pub ask_id: Option<AskId>,
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
    #[napi(catch_unwind, ts_args_type = "id: string, options?: AnswerOptions", ts_return_type = "Promise<Answered>")]
    pub fn session_pause_resume<'env>(
        &self,
        env: &'env Env,
        id: String,
        options: Unknown<'_>,
    ) -> napi::Result<PromiseRaw<'env, Unknown<'env>>> {
        let options = read::<Option<AnswerOptions>>(env, "options", options);
        self.answer(env, id, options.map(|options| (options.unwrap_or_default().ask_id, Answer::Resume)))
    }

    /// Answers a Confirm.
    ///
    /// Rejects as `sessionPauseResume` does.
    #[napi(
        catch_unwind,
        ts_args_type = "id: string, approved: boolean, options?: ConfirmOptions",
        ts_return_type = "Promise<Answered>"
    )]
    pub fn session_pause_confirm<'env>(
        &self,
        env: &'env Env,
        id: String,
        approved: bool,
        options: Unknown<'_>,
    ) -> napi::Result<PromiseRaw<'env, Unknown<'env>>> {
        let options = read::<Option<ConfirmOptions>>(env, "options", options);
        let answer = options.map(|options| {
            let ConfirmOptions { ask_id, always, reason } = options.unwrap_or_default();
            let answer = match approved {
                true => Answer::Approve { always: always.unwrap_or(false) },
                false => Answer::Deny { reason },
            };
            (ask_id, answer)
        });
        self.answer(env, id, answer)
    }

    /// Answers a pause with Interrupted, as Esc does: its turn ends, and no other. Gives what the interrupt found: nothing
    /// if the ask that was shown here last is not open, or none was shown.
    #[napi(catch_unwind, ts_return_type = "Promise<Interrupted>")]
    pub fn session_pause_interrupt<'env>(
        &self,
        env: &'env Env,
        id: String,
    ) -> napi::Result<PromiseRaw<'env, Unknown<'env>>> {
        let shown = self.place().known.shown();
        let work = self.act(id, |session| async move {
            session.refresh().await?;
            let snapshot = session.snapshot();
            match snapshot.asks.iter().any(|ask| shown.get(session.id()) == Some(&ask.id)) {
                true => interrupt(&session, InterruptOptions { turn: snapshot.turn, wait: None }).await,
                false => Ok(Interrupted::nothing()),
            }
        });
        promise(env, work)
    }

    /// Answers a question: each by its id, with `answer: null` for one that is skipped; or all by `null`, to decline.
    ///
    /// Rejects as `sessionPauseResume` does, and with `incompleteAnswer` if a reply is missing, empty, or one too many.
    #[napi(
        catch_unwind,
        ts_args_type = "id: string, answers: QuestionReply[] | null, options?: AnswerOptions",
        ts_return_type = "Promise<Answered>"
    )]
    pub fn session_answer_question<'env>(
        &self,
        env: &'env Env,
        id: String,
        answers: Unknown<'_>,
        options: Unknown<'_>,
    ) -> napi::Result<PromiseRaw<'env, Unknown<'env>>> {
        let answers = read::<Option<Vec<QuestionReply>>>(env, "answers", answers);
        let options = read::<Option<AnswerOptions>>(env, "options", options);
        let answer = answers.and_then(|answers| {
            let answer = answers.map_or(Answer::Cancel, |answers| Answer::Reply { answers });
            Ok((options?.unwrap_or_default().ask_id, answer))
        });
        self.answer(env, id, answer)
    }
}

impl Sessions {
    /// A promise that an ask is answered: this one, or the one that is shown now.
    fn answer<'env>(
        &self,
        env: &'env Env,
        id: String,
        answer: Result<(Option<AskId>, Answer), Failure>,
    ) -> napi::Result<PromiseRaw<'env, Unknown<'env>>> {
        let place = self.place();
        let answer = match answer {
            Ok((Some(ask), answer)) if place.known.get(&id).is_err() => {
                let environment = Environment::or_ours(None);
                let work = async move { place.answer_saved(&id, ask, answer, environment).await };
                return self.place().promise_and_stay(env, work);
            }
            answer => answer,
        };
        let mut shown = place.known.shown();
        self.act_and_stay(env, id, |session| async move {
            let (ask, answer) = answer?;
            let ask =
                ask.or_else(|| shown.remove(session.id())).ok_or(SessionError::Answer(AnswerError::NothingShown))?;
            Ok::<Answered, Failure>(session.answer(&ask, answer).await?)
        })
    }
}

impl Place {
    /// Answers an ask of a session that was not used from here, which is opened only if it takes the answer.
    async fn answer_saved(
        self: Arc<Self>,
        what: &str,
        ask: AskId,
        answer: Answer,
        environment: Environment,
    ) -> Result<(SessionHandle, Answered), Failure> {
        let id = self.id(what).await?;
        if ask.session != id {
            return Err(SessionError::Answer(AnswerError::Unknown { ask }).into());
        }
        let (sessions, _) = self.sessions_with(environment)?;
        let answered = sessions.answer(&ask, answer).await?;
        let session = self.know(sessions.get(id.as_str()).await?);
        read_again(&session).await;
        Ok((session, answered))
    }
}
