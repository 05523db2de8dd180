//! The HTTP API of the daemon under `/v1`: every path and its handler.
//!
//! Handlers are thin: they read the request, call the session's handle and send its result.
//! [`openapi`] derives the description of the API from the types in their signatures.

mod asks;
mod body;
mod caller;
mod error;
mod events;
mod openapi;
mod operation;
mod parts;
mod process;
mod reply;
mod route;
mod sessions;
mod stream;
mod transfer;
mod turns;

use actix_web::HttpRequest;
use actix_web::HttpResponse;
use actix_web::web::{self, ServiceConfig};

pub(super) use self::body::read_ahead;
use self::error::ApiError;
use self::route::Resource;
pub(super) use self::transfer::MOST_IMPORTS;

/// Every path, with its methods.
fn resources() -> Vec<Resource> {
    vec![
        Resource::at("/status").get("Get the status of the daemon.", process::status),
        Resource::at("/openapi.json").get("Get this description.", process::openapi),
        Resource::at("/stop")
            .post("Stop the daemon. Running turns are interrupted; sessions stay saved.", process::stop),
        Resource::at("/events").get("Watch all sessions for changes.", events::watch),
        Resource::at("/asks").get("List the open asks of all sessions, live and saved.", asks::inbox),
        Resource::at("/asks/{ask}/answer").post("Answer an ask. The first valid answer wins.", asks::answer),
        Resource::at("/sessions")
            .get("List all sessions, live and saved.", sessions::list)
            .post("Open a new session.", sessions::open),
        Resource::at("/sessions/{what}")
            .get("Get the current snapshot of a session. A saved session stays saved.", sessions::look)
            .delete("Delete a session that is not live.", sessions::delete),
        Resource::at("/sessions/{what}/open")
            .post("Open a saved session, with supplies from the client.", sessions::reopen),
        Resource::at("/sessions/{what}/log").get("Export a session.", transfer::export),
        Resource::at("/import").post("Import an exported session.", transfer::import),
        Resource::at("/sessions/{id}/events")
            .get("Attach to a session. Closing the connection detaches.", events::attach),
        Resource::at("/sessions/{id}/asks").get("List the open asks of a session.", asks::of_session),
        Resource::at("/sessions/{id}/prompts").post("Send a prompt to a session.", turns::prompt),
        Resource::at("/sessions/{id}/run").post("Start a run, which works towards a goal in iterations.", turns::run),
        Resource::at("/sessions/{id}/interrupt")
            .post("Interrupt the open turn, and the run that it is part of.", turns::interrupt),
        Resource::at("/sessions/{id}/turns/{turn}")
            .get("Wait for the end of a turn and get it; `null` if there is no such turn.", turns::end),
        Resource::at("/sessions/{id}/hold").post("Hold a session at its next boundary.", turns::hold),
        Resource::at("/sessions/{id}/release").post("Release a held session.", turns::release),
        Resource::at("/sessions/{id}/toggle")
            .post("Hold or release a session, depending on the state that the client was showing.", turns::toggle),
        Resource::at("/sessions/{id}/rename").post("Rename a session. A saved session stays saved.", sessions::rename),
        Resource::at("/sessions/{id}/model").post("Change the model of a session.", sessions::change_model),
        Resource::at("/sessions/{id}/debug").post("Turn debug logging of a session on or off.", sessions::change_debug),
        Resource::at("/sessions/{id}/close").post("Close a session, live or not. It stays saved.", sessions::close),
    ]
}

/// Registers every path with the server.
pub(super) fn routes(config: &mut ServiceConfig) {
    let unknown = |request: HttpRequest| async move { Err::<HttpResponse, _>(ApiError::no_such_path(request.path())) };
    let scope =
        resources().into_iter().fold(web::scope("/v1"), |scope, resource| scope.service(resource.into_service()));
    config.service(scope).default_service(web::to(unknown));
}
