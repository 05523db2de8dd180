//! The list of sessions, in pages.

use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use agent_client_protocol_schema::v1::{
    Error, ErrorCode, ListSessionsRequest, ListSessionsResponse, SessionInfo,
};
use holdpoint_common::{SessionSummary, Timestamp};
use serde_json::{Map, json};

use super::rpc::failure;

/// The number of sessions on a page.
const PAGE: usize = 50;

/// A page of the sessions that work in the folder of the request. The cursor names the last session
/// of the page, so that a session that is opened meanwhile moves no other one to another page.
///
/// # Errors
/// An error for the editor, if the session of the cursor is gone.
pub(super) fn page(
    sessions: &[SessionSummary],
    request: &ListSessionsRequest,
) -> Result<ListSessionsResponse, Error> {
    let folder = request.cwd.as_deref().map(|folder| {
        // The folder may be gone; its sessions are still listed.
        folder.canonicalize().unwrap_or_else(|_| folder.to_owned())
    });
    let is_listed = |session: &&SessionSummary| {
        folder.as_deref().is_none_or(|folder| Path::new(&session.workspace) == folder)
    };
    let mut listed: Vec<_> = sessions.iter().filter(is_listed).collect();
    listed.sort_by(|one, other| (other.since, &other.id).cmp(&(one.since, &one.id)));
    let begin = match request.cursor.as_deref() {
        None => 0,
        Some(cursor) => {
            let last = listed.iter().position(|session| session.id.as_str() == cursor);
            let gone = || failure(ErrorCode::InvalidParams, format!("unknown cursor `{cursor}`"));
            last.ok_or_else(gone)? + 1
        }
    };
    let page = &listed[begin..listed.len().min(begin + PAGE)];
    let next = page.last().filter(|_| begin + page.len() < listed.len());
    Ok(ListSessionsResponse::new(page.iter().copied().map(info).collect())
        .next_cursor(next.map(|session| session.id.to_string())))
}

fn info(session: &SessionSummary) -> SessionInfo {
    let meta = json!({
        "name": session.name,
        "status": session.status,
        "live": session.live,
        "asks": session.asks,
        "model": session.model,
    });
    SessionInfo::new(session.id.to_string(), &session.workspace)
        .title(session.title.clone())
        .updated_at(rfc3339(session.since))
        .meta(Map::from_iter([("holdpoint".to_owned(), meta)]))
}

/// The time in the form of RFC 3339.
fn rfc3339(time: Timestamp) -> String {
    humantime::format_rfc3339_millis(UNIX_EPOCH + Duration::from_millis(time.0)).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(number: usize, workspace: &str) -> SessionSummary {
        serde_json::from_value(json!({
            "id": format!("{number:010}"), "name": "n", "title": "t", "live": true,
            "status": "idle", "since": number, "lastTurn": null, "waitsFor": null,
            "hold": { "state": "off" }, "model": "rehearsal", "workspace": workspace,
        }))
        .unwrap()
    }

    #[test]
    fn m_h1_pages_of_the_list_have_every_session_once() {
        let mut sessions: Vec<_> = (0..120).map(|number| session(number, "/one")).collect();
        sessions.extend((200..203).map(|number| session(number, "/two")));
        let mut request = ListSessionsRequest::new().cwd(Path::new("/one").to_owned());
        let mut seen = Vec::new();
        loop {
            let page = page(&sessions, &request).unwrap();
            assert!(page.sessions.len() <= PAGE);
            seen.extend(page.sessions.iter().map(|session| session.session_id.to_string()));
            // A session that is opened between two pages is on neither.
            sessions.push(session(1000 + seen.len(), "/one"));
            match page.next_cursor {
                Some(cursor) => request = request.cursor(cursor),
                None => break,
            }
        }
        let expected: Vec<_> = (0..120).rev().map(|number| format!("{number:010}")).collect();
        assert_eq!(seen, expected);
        let gone = page(&sessions, &ListSessionsRequest::new().cursor("gone".to_owned()));
        assert_eq!(gone.unwrap_err().message, "unknown cursor `gone`");
    }
}
