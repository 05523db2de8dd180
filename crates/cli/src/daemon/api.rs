//! The HTTP API of the daemon under `/v1`: every path and its handler.
//!
//! Handlers are thin: they read the request, call the session's handle and send its result.
//! [`openapi`] derives the description of the API from the types in their signatures.

mod body;
mod caller;
mod events;
mod forward;
mod forwarded;
mod moving;
mod openapi;
mod operation;
mod parts;
mod process;
mod reply;
mod route;
mod sessions;
mod stream;
mod transfer;
mod verbs;

use actix_web::HttpRequest;
use actix_web::HttpResponse;
use actix_web::web::{self, ServiceConfig};
use holdpoint_common::api::{
    AnswerRequest, AsksRequest, ChangeModelRequest, CloseRequest, DebugRequest, HandOverRequest,
    HoldRequest, InterruptRequest, PolicyRequest, PromptRequest, ReleaseRequest, RenameRequest,
    RequestError, RunRequest, ToggleRequest, UnqueueRequest, Verb,
};

pub(super) use self::body::read_ahead;
pub(super) use self::forward::{is_forwarded, to_owner};
use self::route::Resource;
use crate::daemon::error::ApiError;

/// Every path, with its methods.
fn resources() -> Vec<Resource> {
    vec![
        Resource::at("/status").get("Get the status of the daemon.", process::status),
        Resource::at("/openapi.json").get("Get this description.", process::openapi),
        Resource::at("/stop").post(
            "Stop the daemon. Running turns are interrupted; sessions stay saved.",
            process::stop,
        ),
        Resource::at("/events").get("Watch all sessions for changes.", events::watch),
        Resource::at("/asks")
            .get("List the open asks of all sessions, live and saved.", sessions::inbox),
        Resource::at(AnswerRequest::PATH)
            .post("Answer an ask. The first valid answer wins.", verbs::answer),
        Resource::at("/sessions")
            .get("List all sessions, live and saved.", sessions::list)
            .post("Open a new session.", sessions::open),
        Resource::at("/sessions/{session}")
            .get(
                "Get the current snapshot of a session. A saved session stays saved.",
                sessions::look,
            )
            .delete("Delete a session that is not live.", sessions::delete),
        Resource::at("/sessions/{session}/open")
            .post("Open a saved session, with supplies from the client.", sessions::reopen),
        Resource::at("/sessions/{session}/move").post(
            "Move a session to another folder or machine, as soon as nothing of it runs.",
            moving::move_here,
        ),
        Resource::at(HandOverRequest::PATH).post(
            "Hand a session over to another folder, as soon as nothing of it runs. `move` also opens it there.",
            moving::hand_over,
        ),
        Resource::at("/sessions/{session}/log").get("Export a session.", transfer::export),
        Resource::at("/import").post("Import an exported session.", transfer::import),
        Resource::at("/sessions/{id}/events")
            .get("Attach to a session. Closing the connection detaches.", events::attach),
        Resource::verb::<AsksRequest>(
            "Change the asks mode of a session. The new mode also answers the open asks.",
        )
        .get("List the open asks of a session.", sessions::asks),
        Resource::verb::<PromptRequest>("Send a prompt to a session."),
        Resource::verb::<UnqueueRequest>("Take a queued prompt back, so that it never runs."),
        Resource::verb::<RunRequest>("Start a run, which works towards a goal in iterations."),
        Resource::at(InterruptRequest::PATH)
            .post("Interrupt the open turn, and the run that it is part of.", verbs::interrupt),
        Resource::at("/sessions/{id}/turns/{turn}").get(
            "Wait for the end of a turn and get it; `null` if there is no such turn.",
            verbs::turn_end,
        ),
        Resource::verb::<HoldRequest>("Hold a session at its next boundary."),
        Resource::verb::<ReleaseRequest>("Release a held session."),
        Resource::verb::<ToggleRequest>(
            "Hold or release a session, depending on the state that the client was showing.",
        ),
        Resource::verb::<RenameRequest>("Rename a session. A saved session stays saved."),
        Resource::verb::<ChangeModelRequest>("Change the model of a session."),
        Resource::verb::<DebugRequest>("Turn debug logging of a session on or off."),
        Resource::verb::<PolicyRequest>(
            "Change the policy mode of a session, for the calls that follow.",
        ),
        Resource::verb::<CloseRequest>("Close a session, live or not. It stays saved."),
    ]
}

/// Registers every path with the server.
pub(super) fn routes(config: &mut ServiceConfig) {
    let unknown = |request: HttpRequest| async move {
        Err::<HttpResponse, _>(ApiError::from(RequestError::UnknownPath {
            path: request.path().to_owned(),
        }))
    };
    let scope = resources()
        .into_iter()
        .fold(web::scope("/v1"), |scope, resource| scope.service(resource.into_service()));
    config.service(scope).default_service(web::to(unknown));
}
