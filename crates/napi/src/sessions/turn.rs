//! Turns and runs: begun, waited for, cut.

use holdpoint_common::{Outcome, Receipt, TurnId};
use holdpoint_session::{Interruption, SessionHandle};
use napi::Env;
use napi::bindgen_prelude::{PromiseRaw, Unknown};
use napi_derive::napi;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::Sessions;
use crate::crossing::{given, promise, read};
use crate::failure::Failure;

/// How a turn is interrupted.
#[napi(object, object_from_js = false, object_to_js = false)]
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct InterruptOptions {
    /// Only if it is this one.
    #[napi(ts_type = "TurnId")]
    pub turn: Option<TurnId>,
    /// Whether to wait until nothing of it runs any more, for the receipt: `true`.
    pub wait: Option<bool>,
}

/// What an interrupt found, as it crosses. Its type is written down in the header of the declarations.
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

    /// There was nothing to interrupt.
    pub(super) fn nothing() -> Self {
        Self::found(Found::Nothing, None)
    }
}

#[napi]
impl Sessions {
    /// Gives a session something to do. It runs, or the prompt waits, before this resolves. Node stays until it has
    /// settled; of a daemon's session, if anyone is attached to it from here.
    ///
    /// Rejects with `emptyPrompt`, `promptTooLong`, `queueFull` or `notSaving`.
    #[napi(catch_unwind, ts_return_type = "Promise<Prompted>")]
    pub fn session_prompt<'env>(
        &self,
        env: &'env Env,
        id: String,
        text: String,
    ) -> napi::Result<PromiseRaw<'env, Unknown<'env>>> {
        self.act_and_stay(env, id, |session| async move { Ok(session.prompt(text).await?) })
    }

    /// Begins a run: a goal, worked through in iterations until no task is left or it is interrupted.
    ///
    /// Rejects with `emptyGoal`, `promptTooLong`, `badTask`, `turnOpen` or `runOpen`.
    #[napi(catch_unwind, ts_args_type = "id: string, run: RunRequest", ts_return_type = "Promise<RunStarted>")]
    pub fn session_run<'env>(
        &self,
        env: &'env Env,
        id: String,
        run: Unknown<'_>,
    ) -> napi::Result<PromiseRaw<'env, Unknown<'env>>> {
        let run = read::<Map<String, Value>>(env, "run", run);
        let place = self.place();
        self.act_and_stay(env, id, |session| async move {
            let mut run = run?;
            let (_, config) = place.sessions()?;
            run.entry("holdAt").or_insert_with(|| json!(config.hold_at));
            Ok(session.start_run(given("run", Value::from(run))?).await?)
        })
    }

    /// Waits until no turn and no run is open and no prompt waits, or the session is held; and until callbacks that are
    /// attached from here have been given all of it.
    #[napi(catch_unwind, ts_return_type = "Promise<Snapshot>")]
    pub fn session_settled<'env>(&self, env: &'env Env, id: String) -> napi::Result<PromiseRaw<'env, Unknown<'env>>> {
        let place = self.place();
        let session = self.session(id);
        promise(env, async move {
            let session = session.await?;
            let snapshot = session.settled().await?;
            place.known.reach(session.id(), snapshot.seq).await;
            Ok(snapshot)
        })
    }

    /// Ends the open turn now, and gives the receipt: what was stopped, ended, released and handed back.
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
        let options = read::<Option<InterruptOptions>>(env, "options", options);
        let work = self.act(id, |session| async move { interrupt(&session, options?.unwrap_or_default()).await });
        promise(env, work)
    }
}

/// Ends a turn now.
pub(super) async fn interrupt(
    session: &SessionHandle,
    InterruptOptions { turn, wait }: InterruptOptions,
) -> Result<Interrupted, Failure> {
    Ok(match session.interrupt(turn).await? {
        Interruption::Interrupting(turn) if wait.unwrap_or(true) => {
            let end = turn.end().await?;
            Interrupted { found: Found::Turn, turn: Some(end.turn), outcome: Some(end.outcome), receipt: end.receipt }
        }
        Interruption::Interrupting(turn) => Interrupted::found(Found::Turn, Some(turn.turn)),
        Interruption::RunEnded => Interrupted::found(Found::Run, None),
        Interruption::NotRunning => Interrupted::nothing(),
    })
}
