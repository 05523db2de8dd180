//! Functions that answer asks.

use std::collections::HashMap;
use std::sync::Arc;

use holdpoint_common::api::Answered;
use holdpoint_common::{Answer, AnswerError, AskId, QuestionReply, SessionId};
use holdpoint_session::{SessionError, SessionHandle};
use napi::Env;
use napi::bindgen_prelude::{PromiseRaw, Unknown};
use napi_derive::napi;
use serde::Deserialize;

use super::environment::Environment;
use super::turn::{InterruptOptions, Interrupted, interrupt};
use super::{NodeClient, Sessions, refresh};
use crate::convert::{argument, promise};
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
    /// Whether to approve or deny later calls with the same key as well, for the life of the
    /// session. Default: `false`.
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
        let options = argument::<Option<AnswerOptions>>(env, "options", options)?;
        self.answer(env, id, options.unwrap_or_default().ask_id, Answer::Resume)
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
        let options = argument::<Option<ConfirmOptions>>(env, "options", options)?;
        let ConfirmOptions { ask_id, always, reason } = options.unwrap_or_default();
        let always = always.unwrap_or(false);
        let answer = match approved {
            true => Answer::Approve { always },
            false => Answer::Deny { reason, always },
        };
        self.answer(env, id, ask_id, answer)
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
        let client = self.client();
        let shown = client.known.shown();
        let work = async move {
            let id = client.id(&id).await?;
            // Only a known session can have shown an ask.
            let Ok(session) = client.known.get(id.as_str()) else {
                return Ok(Interrupted::nothing());
            };
            session.refresh().await?;
            let snapshot = session.snapshot();
            if !snapshot.asks.iter().any(|ask| shown.get(&id) == Some(&ask.id)) {
                return Ok(Interrupted::nothing());
            }
            let options = InterruptOptions { turn: snapshot.turn, wait: None };
            let interrupted = interrupt(&session, options).await?;
            refresh(&session).await;
            Ok(interrupted)
        };
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
        let answers = argument::<Option<Vec<QuestionReply>>>(env, "answers", answers)?;
        let options = argument::<Option<AnswerOptions>>(env, "options", options)?;
        let answer = answers.map_or(Answer::Cancel, |answers| Answer::Reply { answers });
        self.answer(env, id, options.unwrap_or_default().ask_id, answer)
    }
}

impl Sessions {
    /// Answers the given ask; without one, the ask of this session that this program was shown
    /// last. Returns a promise of the result.
    fn answer<'env>(
        &self,
        env: &'env Env,
        id: String,
        ask: Option<AskId>,
        answer: Answer,
    ) -> napi::Result<PromiseRaw<'env, Unknown<'env>>> {
        let client = self.client();
        let shown = client.known.shown();
        if client.known.get(&id).is_err() {
            let environment = Environment::or_current(None);
            let work = async move {
                let id = client.id(&id).await?;
                let ask = ask_or_shown(ask, shown, &id)?;
                client.answer_by_ask(&id, ask, answer, environment).await
            };
            return self.client().promise_and_keep_alive(env, work);
        }
        self.act_and_keep_alive(env, id, |session| async move {
            let ask = ask_or_shown(ask, shown, session.id())?;
            Ok::<Answered, Failure>(session.answer(&ask, answer).await?)
        })
    }
}

impl NodeClient {
    /// Answers an ask of a session that was not given by the id of a known one. A saved session is
    /// opened only if it accepts the answer.
    async fn answer_by_ask(
        self: Arc<Self>,
        id: &SessionId,
        ask: AskId,
        answer: Answer,
        environment: Environment,
    ) -> Result<(SessionHandle, Answered), Failure> {
        if ask.session != *id {
            return Err(SessionError::from(AnswerError::Unknown { ask }).into());
        }
        let (sessions, _) = self.sessions_with(environment)?;
        let answered = sessions.answer(&ask, answer).await?;
        let session = self.remember(sessions.get(id.as_str()).await?);
        refresh(&session).await;
        Ok((session, answered))
    }
}

/// Returns the given ask; without one, the ask of this session that was shown last.
fn ask_or_shown(
    given: Option<AskId>,
    mut shown: HashMap<SessionId, AskId>,
    session: &SessionId,
) -> Result<AskId, Failure> {
    given
        .or_else(|| shown.remove(session))
        .ok_or_else(|| SessionError::from(AnswerError::NothingShown).into())
}
