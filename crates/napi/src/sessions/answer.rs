//! Functions that answer asks.

use std::sync::Arc;

use holdpoint_common::api::Answered;
use holdpoint_common::{Answer, AnswerError, AskId, QuestionReply};
use holdpoint_session::{SessionError, SessionHandle};
use napi::Env;
use napi::bindgen_prelude::{PromiseRaw, Unknown};
use napi_derive::napi;
use serde::Deserialize;

use super::environment::Environment;
use super::turn::{InterruptOptions, Interrupted, interrupt};
use super::{NodeClient, Sessions, refresh};
use crate::convert::{promise, read_argument};
use crate::failure::Failure;

/// The options of an answer.
#[napi(object, object_from_js = false, object_to_js = false)]
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct AnswerOptions {
    /// Id of the ask. Default: the ask that this program was shown last, by an event or by reading
    /// the session, even if another ask is first by now.
    #[napi(ts_type = "AskId")]
    pub ask_id: Option<AskId>,
}

/// The options of `sessionPauseConfirm`.
#[napi(object, object_from_js = false, object_to_js = false)]
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct ConfirmOptions {
    /// Id of the ask. Default: the ask that this program was shown last, by an event or by reading
    /// the session, even if another ask is first by now.
    #[napi(ts_type = "AskId")]
    pub ask_id: Option<AskId>,
    /// Whether to approve later calls with the same key as well, for the life of the session.
    /// Default: `false`.
    pub always: Option<bool>,
    /// Reason of a denial, which the model reads.
    pub reason: Option<String>,
}

#[napi]
impl Sessions {
    /// Resumes a Continue, so that its tool proceeds.
    ///
    /// Rejects with `alreadyAnswered` (`error.details.by` is the origin of the first answer),
    /// `askClosed`, `kindMismatch`, `unknownAsk`, or `nothingShown` if `askId` is missing and no
    /// ask was shown. An answer that is rejected changes nothing.
    #[napi(
        catch_unwind,
        ts_args_type = "id: string, options?: AnswerOptions",
        ts_return_type = "Promise<Answered>"
    )]
    pub fn session_pause_resume<'env>(
        &self,
        env: &'env Env,
        id: String,
        options: Unknown<'_>,
    ) -> napi::Result<PromiseRaw<'env, Unknown<'env>>> {
        let options = read_argument::<Option<AnswerOptions>>(env, "options", options);
        self.answer(
            env,
            id,
            options.map(|options| (options.unwrap_or_default().ask_id, Answer::Resume)),
        )
    }

    /// Approves or denies a Confirm.
    ///
    /// Rejects like `sessionPauseResume`.
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
        let options = read_argument::<Option<ConfirmOptions>>(env, "options", options);
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

    /// Interrupts the turn of the ask that this program was shown last, as Esc does. Resolves to
    /// the effect of the interrupt; `found` is `nothing` if no ask was shown or it is no longer
    /// open.
    #[napi(catch_unwind, ts_return_type = "Promise<Interrupted>")]
    pub fn session_pause_interrupt<'env>(
        &self,
        env: &'env Env,
        id: String,
    ) -> napi::Result<PromiseRaw<'env, Unknown<'env>>> {
        let shown = self.client().known.shown();
        let work = self.act(id, |session| async move {
            session.refresh().await?;
            let snapshot = session.snapshot();
            match snapshot.asks.iter().any(|ask| shown.get(session.id()) == Some(&ask.id)) {
                true => {
                    interrupt(&session, InterruptOptions { turn: snapshot.turn, wait: None }).await
                }
                false => Ok(Interrupted::nothing()),
            }
        });
        promise(env, work)
    }

    /// Replies to the questions of an ask, or declines them all with `null`. There must be one
    /// reply per question, with `answer: null` for a skipped one.
    ///
    /// Rejects like `sessionPauseResume`, and with `incompleteAnswer` if a reply is missing, empty
    /// or one too many.
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
        let answers = read_argument::<Option<Vec<QuestionReply>>>(env, "answers", answers);
        let options = read_argument::<Option<AnswerOptions>>(env, "options", options);
        let answer = answers.and_then(|answers| {
            let answer = answers.map_or(Answer::Cancel, |answers| Answer::Reply { answers });
            Ok((options?.unwrap_or_default().ask_id, answer))
        });
        self.answer(env, id, answer)
    }
}

impl Sessions {
    /// Answers the given ask; without one, the ask of this session that this program was shown last.
    /// Returns a promise of the result.
    fn answer<'env>(
        &self,
        env: &'env Env,
        id: String,
        request: Result<(Option<AskId>, Answer), Failure>,
    ) -> napi::Result<PromiseRaw<'env, Unknown<'env>>> {
        let client = self.client();
        let request = match request {
            Ok((Some(ask), answer)) if client.known.get(&id).is_err() => {
                let environment = Environment::or_current(None);
                let work = async move { client.answer_saved(&id, ask, answer, environment).await };
                return self.client().promise_and_keep_alive(env, work);
            }
            request => request,
        };
        let mut shown = client.known.shown();
        self.act_and_keep_alive(env, id, |session| async move {
            let (ask, answer) = request?;
            let ask = ask
                .or_else(|| shown.remove(session.id()))
                .ok_or(SessionError::from(AnswerError::NothingShown))?;
            Ok::<Answered, Failure>(session.answer(&ask, answer).await?)
        })
    }
}

impl NodeClient {
    /// Answers an ask of a session that was not used here yet. The session is opened only if it
    /// accepts the answer.
    async fn answer_saved(
        self: Arc<Self>,
        given: &str,
        ask: AskId,
        answer: Answer,
        environment: Environment,
    ) -> Result<(SessionHandle, Answered), Failure> {
        let id = self.id(given).await?;
        if ask.session != id {
            return Err(SessionError::from(AnswerError::Unknown { ask }).into());
        }
        let (sessions, _) = self.sessions_with(environment)?;
        let answered = sessions.answer(&ask, answer).await?;
        let session = self.remember(sessions.get(id.as_str()).await?);
        refresh(&session).await;
        Ok((session, answered))
    }
}
