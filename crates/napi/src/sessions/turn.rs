//! Turns and runs: begun, waited for, cut.

use std::sync::Arc;

use holdpoint_common::{Outcome, Receipt, TurnId};
use holdpoint_session::{Interruption, RunRequest};
use napi::Env;
use napi::bindgen_prelude::{PromiseRaw, Unknown};
use napi_derive::napi;
use serde::Serialize;

use super::{Place, Sessions};
use crate::crossing::{promise, read};
use crate::failure::Failure;

/// How a turn is interrupted.
#[napi(object, object_to_js = false)]
#[derive(Default)]
pub struct InterruptOptions {
    /// Only if it is this one.
    #[napi(ts_type = "TurnId")]
    pub turn: Option<i64>,
    /// Whether to wait until nothing of it runs any more, for the receipt: `true`.
    pub wait: Option<bool>,
}

/// What an interrupt found, as it crosses. Its type is written down in the header of the declarations.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
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

#[napi]
impl Sessions {
    /// Gives a session something to do. It runs, or the prompt waits, before this resolves. Node stays until it has
    /// settled; of a daemon's session, if anyone is attached to it from here.
    ///
    /// Rejects with `emptyPrompt`, `promptTooLong`, `queueFull` or `notSaving`.
    #[napi(ts_return_type = "Promise<Prompted>")]
    pub fn session_prompt<'env>(
        &self,
        env: &'env Env,
        id: String,
        text: String,
    ) -> napi::Result<PromiseRaw<'env, Unknown<'env>>> {
        let place = self.place();
        self.place().promise_and_stay(env, async move {
            let session = place.session(&id).await?;
            let prompted = session.prompt(text).await?;
            session.refresh().await?;
            Ok((session, prompted))
        })
    }

    /// Begins a run: a goal, worked through in iterations until no task is left or it is interrupted.
    ///
    /// Rejects with `emptyGoal`, `promptTooLong`, `badTask`, `turnOpen` or `runOpen`.
    #[napi(ts_args_type = "id: string, run: RunRequest", ts_return_type = "Promise<RunStarted>")]
    pub fn session_run<'env>(
        &self,
        env: &'env Env,
        id: String,
        run: Unknown<'_>,
    ) -> napi::Result<PromiseRaw<'env, Unknown<'env>>> {
        let run: Result<RunRequest, Failure> = read(env, "run", run);
        let place = self.place();
        self.place().promise_and_stay(env, async move {
            let session = place.session(&id).await?;
            let started = session.start_run(run?).await?;
            session.refresh().await?;
            Ok((session, started))
        })
    }

    /// Waits until no turn and no run is open and no prompt waits, or the session is held; and until callbacks that are
    /// attached from here have been given all of it.
    #[napi(ts_return_type = "Promise<Snapshot>")]
    pub fn session_settled<'env>(&self, env: &'env Env, id: String) -> napi::Result<PromiseRaw<'env, Unknown<'env>>> {
        let place = self.place();
        promise(env, async move {
            let session = place.session(&id).await?;
            let snapshot = session.settled().await?;
            place.known.reach(session.id(), snapshot.seq).await;
            Ok(snapshot)
        })
    }

    /// Ends the open turn now, and gives the receipt: what was stopped, ended, released and handed back.
    #[napi(ts_return_type = "Promise<Interrupted>")]
    pub fn session_interrupt<'env>(
        &self,
        env: &'env Env,
        id: String,
        options: Option<InterruptOptions>,
    ) -> napi::Result<PromiseRaw<'env, Unknown<'env>>> {
        promise(env, interrupt(self.place(), id, options.unwrap_or_default()))
    }
}

pub(super) async fn interrupt(
    place: Arc<Place>,
    id: String,
    options: InterruptOptions,
) -> Result<Interrupted, Failure> {
    let session = place.session(&id).await?;
    let only = options.turn.map(|turn| TurnId(turn.unsigned_abs()));
    let interrupted = match session.interrupt(only).await? {
        Interruption::Interrupting(turn) if options.wait.unwrap_or(true) => {
            let end = turn.end().await?;
            Interrupted { found: Found::Turn, turn: Some(end.turn), outcome: Some(end.outcome), receipt: end.receipt }
        }
        Interruption::Interrupting(turn) => {
            Interrupted { found: Found::Turn, turn: Some(turn.turn), outcome: None, receipt: None }
        }
        Interruption::RunEnded => Interrupted { found: Found::Run, turn: None, outcome: None, receipt: None },
        Interruption::NotRunning => Interrupted { found: Found::Nothing, turn: None, outcome: None, receipt: None },
    };
    session.refresh().await?;
    Ok(interrupted)
}
