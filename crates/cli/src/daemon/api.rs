//! What is said over the socket, under `/v1`: every path, and the handler that answers it.
//!
//! Handlers are thin: what came is read, the session's handle does it, the outcome is answered. What a handler takes
//! and gives are types of its signature, from which [`openapi`] describes it.

mod asks;
mod body;
mod caller;
mod events;
mod fault;
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
use self::fault::Fault;
use self::route::Resource;
pub(super) use self::transfer::MOST_IMPORTS;

/// Every path.
fn resources() -> Vec<Resource> {
    vec![
        Resource::at("/status").get("How the daemon is.", process::status),
        Resource::at("/openapi.json").get("This description.", process::openapi),
        Resource::at("/stop").post("Stops the daemon. What runs is cut, and can be gone on with.", process::stop),
        Resource::at("/events").get("Watches all sessions.", events::watch),
        Resource::at("/asks").get("Every open ask, of live and of saved sessions.", asks::inbox),
        Resource::at("/asks/{ask}/answer").post("Answers an ask. The first valid answer counts.", asks::answer),
        Resource::at("/sessions")
            .get("Every session, live and saved.", sessions::list)
            .post("Opens a fresh session.", sessions::open),
        Resource::at("/sessions/{what}")
            .get("A session as it is now. A saved one stays saved.", sessions::look)
            .delete("Deletes a session that is not live.", sessions::delete),
        Resource::at("/sessions/{what}/open")
            .post("Opens a saved session, with what the client brings along for it.", sessions::reopen),
        Resource::at("/sessions/{what}/log").get("Writes a session out.", transfer::export),
        Resource::at("/import").post("Takes a session in that was written out.", transfer::import),
        Resource::at("/sessions/{id}/events").get("Attaches to a session. Closing it detaches.", events::attach),
        Resource::at("/sessions/{id}/asks").get("A session's open asks.", asks::of_session),
        Resource::at("/sessions/{id}/prompts").post("Gives a session something to do.", turns::prompt),
        Resource::at("/sessions/{id}/run").post("Begins a run: a goal, worked through in iterations.", turns::run),
        Resource::at("/sessions/{id}/interrupt").post("Ends the open turn, and the run it is of.", turns::interrupt),
        Resource::at("/sessions/{id}/turns/{turn}")
            .get("Says how a turn has ended, once it has; `null` if there is no such turn.", turns::end),
        Resource::at("/sessions/{id}/hold").post("Stops a session at its next boundary.", turns::hold),
        Resource::at("/sessions/{id}/release").post("Lets a session go on.", turns::release),
        Resource::at("/sessions/{id}/toggle")
            .post("Holds or releases: the other of what the client was showing.", turns::toggle),
        Resource::at("/sessions/{id}/rename")
            .post("Calls a session something else. A saved one stays saved.", sessions::rename),
        Resource::at("/sessions/{id}/model").post("Gives a session another model.", sessions::change_model),
        Resource::at("/sessions/{id}/debug")
            .post("Has a session logged at debug level, or not any more.", sessions::change_debug),
        Resource::at("/sessions/{id}/close").post("Ends a session, live or not. It stays saved.", sessions::close),
    ]
}

/// Serves all of it.
pub(super) fn routes(config: &mut ServiceConfig) {
    let unknown = |request: HttpRequest| async move { Err::<HttpResponse, _>(Fault::no_such_path(request.path())) };
    let scope =
        resources().into_iter().fold(web::scope("/v1"), |scope, resource| scope.service(resource.into_service()));
    config.service(scope).default_service(web::to(unknown));
}
