//! Functions that start, await and interrupt turns and runs.

use holdpoint_common::api::RunRequest;
use holdpoint_common::{Outcome, PromptId, Receipt, TurnId};
use holdpoint_session::{Interruption, SessionHandle};
use napi::Env;
use napi::bindgen_prelude::{PromiseRaw, Unknown};
use napi_derive::napi;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::Sessions;
use crate::convert::{argument, promise, read_argument, read_value, run_sync};
use crate::failure::Failure;

/// The options of `sessionInterrupt`.
#[napi(object, object_from_js = false, object_to_js = false)]
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct InterruptOptions {
    /// Turn to interrupt. If another turn is open, nothing changes. Default: the open turn.
    #[napi(ts_type = "TurnId")]
    pub turn: Option<TurnId>,
    /// Whether to wait until nothing of the turn runs any more, so that the result has a receipt.
    /// Default: `true`.
    pub wait: Option<bool>,
}

/// The effect of an interrupt. Its TypeScript type is in `dts-header.d.ts`.
#[derive(Serialize)]
pub(super) struct Interrupted {
    found: Found,
    #[serde(skip_serializing_if = "Option::is_none")]
    turn: Option<TurnId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    outcome: Option<Outcome>,
    #[serde(skip_serializing_if = "Option::is_none")]
    receipt: Option<Receipt>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
enum Found {
    Turn,
    Run,
    Nothing,
}

impl Interrupted {
    fn found(found: Found, turn: Option<TurnId>) -> Self {
        Self { found, turn, outcome: None, receipt: None }
    }

    /// The effect of an interrupt that found nothing.
    pub(super) fn nothing() -> Self {
        Self::found(Found::Nothing, None)
    }
}

#[napi]
impl Sessions {
    /// Sends a prompt to a session. When the promise resolves, the prompt's turn has started or the
    /// prompt is queued. Node stays alive until the session has settled; for a daemon's session,
    /// only if this program is attached to it.
    ///
    /// Rejects with `emptyPrompt`, `promptTooLong`, `queueFull` or `notSaving`.
    #[napi(catch_unwind, ts_return_type = "Promise<Prompted>")]
    pub fn session_prompt<'env>(
        &self,
        env: &'env Env,
        id: String,
        text: String,
    ) -> napi::Result<PromiseRaw<'env, Unknown<'env>>> {
        self.act_and_keep_alive(env, id, |session| async move { Ok(session.prompt(text).await?) })
    }

    /// Takes a queued prompt back, so that it never runs. Resolves with its text.
    ///
    /// Rejects with `notQueued` if its turn has started, or it has ended.
    #[napi(
        catch_unwind,
        ts_args_type = "id: string, prompt: PromptId",
        ts_return_type = "Promise<Unqueued>"
    )]
    pub fn session_unqueue<'env>(
        &self,
        env: &'env Env,
        id: String,
        prompt: Unknown<'_>,
    ) -> napi::Result<PromiseRaw<'env, Unknown<'env>>> {
        let prompt = argument::<PromptId>(env, "prompt", prompt)?;
        promise(env, self.act(id, move |session| async move { Ok(session.unqueue(prompt).await?) }))
    }

    /// Starts a run: a goal that is worked through in iterations until no task is left or the run
    /// is interrupted. Node stays alive as for `sessionPrompt`.
    ///
    /// Rejects with `emptyGoal`, `promptTooLong`, `badTask`, `turnOpen` or `runOpen`.
    #[napi(
        catch_unwind,
        ts_args_type = "id: string, run: RunRequest",
        ts_return_type = "Promise<RunStarted>"
    )]
    pub fn session_run<'env>(
        &self,
        env: &'env Env,
        id: String,
        run: Unknown<'_>,
    ) -> napi::Result<PromiseRaw<'env, Unknown<'env>>> {
        let (mut run, has_hold_at) = run_sync(env, || {
            let run = read_argument::<Map<String, Value>>(env, "run", run)?;
            let has_hold_at = run.contains_key("holdAt");
            Ok((read_value::<RunRequest>("run", Value::from(run))?, has_hold_at))
        })?;
        let client = self.client();
        self.act_and_keep_alive(env, id, move |session| async move {
            if !has_hold_at {
                run.hold_at = client.sessions()?.1.hold_at;
            }
            Ok(session.start_run(run).await?)
        })
    }

    /// Waits until a session has no open turn, no run and no queued prompt, or is held, and until
    /// this program's callbacks have got all its events. Resolves to the snapshot.
    #[napi(catch_unwind, ts_return_type = "Promise<Snapshot>")]
    pub fn session_settled<'env>(
        &self,
        env: &'env Env,
        id: String,
    ) -> napi::Result<PromiseRaw<'env, Unknown<'env>>> {
        let client = self.client();
        let session = self.session(id);
        promise(env, async move {
            let session = session.await?;
            let snapshot = session.settled().await?;
            client.known.wait_delivered(session.id(), snapshot.seq).await;
            Ok(snapshot)
        })
    }

    /// Interrupts the open turn, or ends a run that is between two turns. Resolves to the effect,
    /// with the receipt of the stopped tools, ended processes, closed asks and returned prompts.
    #[napi(
        catch_unwind,
        ts_args_type = "id: string, options?: InterruptOptions",
        ts_return_type = "Promise<Interrupted>"
    )]
    pub fn session_interrupt<'env>(
        &self,
        env: &'env Env,
        id: String,
        options: Unknown<'_>,
    ) -> napi::Result<PromiseRaw<'env, Unknown<'env>>> {
        let options =
            argument::<Option<InterruptOptions>>(env, "options", options)?.unwrap_or_default();
        promise(env, self.act(id, |session| async move { interrupt(&session, options).await }))
    }
}

pub(super) async fn interrupt(
    session: &SessionHandle,
    InterruptOptions { turn, wait }: InterruptOptions,
) -> Result<Interrupted, Failure> {
    Ok(match session.interrupt(turn).await? {
        Interruption::Interrupting(turn) if wait.unwrap_or(true) => {
            let end = turn.end().await?;
            Interrupted {
                found: Found::Turn,
                turn: Some(end.turn),
                outcome: Some(end.outcome),
                receipt: end.receipt,
            }
        }
        Interruption::Interrupting(turn) => Interrupted::found(Found::Turn, Some(turn.turn)),
        Interruption::RunEnded => Interrupted::found(Found::Run, None),
        Interruption::NotRunning => Interrupted::nothing(),
    })
}
