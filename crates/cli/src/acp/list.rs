//! The list of sessions, in pages.

use std::collections::{HashMap, VecDeque};
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use agent_client_protocol_schema::v1::{Error, ErrorCode, ListSessionsResponse, SessionInfo};
use holdpoint_common::{SessionId, SessionSummary, Timestamp};
use serde_json::{Map, json};

use super::rpc::failure;

/// The number of sessions on a page.
const PAGE: usize = 50;
/// The number of lists whose next page can be requested. The oldest is dropped.
const MAX_LISTS: usize = 8;

/// A request for a page.
#[derive(Debug, Default)]
pub(super) struct ListPage {
    /// The folder of the sessions, or all.
    pub(super) folder: Option<PathBuf>,
    /// The cursor of the page before; `None` for the first page.
    pub(super) cursor: Option<String>,
}

/// The lists that an editor reads page by page. The order of a list is that of its first page, so a
/// session that changes meanwhile moves to no other page.
#[derive(Debug, Default)]
pub(super) struct Lists {
    lists: VecDeque<List>,
    /// The number of lists so far.
    count: u64,
}

#[derive(Debug)]
struct List {
    number: u64,
    sessions: Vec<SessionId>,
}

impl Lists {
    /// A page of these sessions, newest change first. Sessions that are opened after the first page
    /// are on none, and deleted ones are left out.
    ///
    /// # Errors
    /// An error for the editor, if the list of the cursor is unknown, or was dropped.
    pub(super) fn page(
        &mut self,
        sessions: &[SessionSummary],
        page: &ListPage,
    ) -> Result<ListSessionsResponse, Error> {
        let (list, begin) = match &page.cursor {
            None => (self.begin(sessions, page.folder.as_deref()), 0),
            Some(cursor) => self.find(cursor)?,
        };
        let by_id: HashMap<_, _> = sessions.iter().map(|session| (&session.id, session)).collect();
        let end = list.sessions.len().min(begin + PAGE);
        let shown = list.sessions[begin..end].iter().filter_map(|id| by_id.get(id).copied());
        let next = (end < list.sessions.len()).then(|| format!("{}-{end}", list.number));
        Ok(ListSessionsResponse::new(shown.map(info).collect()).next_cursor(next))
    }

    fn begin(&mut self, sessions: &[SessionSummary], folder: Option<&Path>) -> &List {
        let is_listed = |session: &&SessionSummary| {
            let is_here = session.machine.is_none();
            folder.is_none_or(|folder| is_here && Path::new(&session.workspace) == folder)
        };
        let mut listed: Vec<_> = sessions.iter().filter(is_listed).collect();
        listed.sort_by(|one, other| (other.since, &other.id).cmp(&(one.since, &one.id)));
        self.count += 1;
        let sessions = listed.into_iter().map(|session| session.id.clone()).collect();
        self.lists.push_front(List { number: self.count, sessions });
        self.lists.truncate(MAX_LISTS);
        &self.lists[0]
    }

    /// The list of a cursor, and the beginning of the page.
    fn find(&self, cursor: &str) -> Result<(&List, usize), Error> {
        let found = || {
            let (number, begin) = cursor.split_once('-')?;
            let (number, begin): (u64, usize) = (number.parse().ok()?, begin.parse().ok()?);
            let list = self.lists.iter().find(|list| list.number == number)?;
            (begin <= list.sessions.len()).then_some((list, begin))
        };
        found().ok_or_else(|| {
            failure(ErrorCode::InvalidParams, format!("unknown cursor `{cursor}`"))
                .data(json!({ "hint": "list the sessions from the first page on" }))
        })
    }
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

    fn ids(page: &ListSessionsResponse) -> Vec<String> {
        page.sessions.iter().map(|session| session.session_id.to_string()).collect()
    }

    #[test]
    fn m_h1_pages_of_the_list_have_every_session_once() {
        let mut sessions: Vec<_> = (0..120).map(|number| session(number, "/one")).collect();
        sessions.extend((200..203).map(|number| session(number, "/two")));
        let (mut lists, mut request) = (Lists::default(), ListPage::default());
        request.folder = Some("/one".into());
        let mut seen = Vec::new();
        loop {
            let page = lists.page(&sessions, &request).unwrap();
            assert!(page.sessions.len() <= PAGE);
            seen.extend(ids(&page));
            // Between two pages, one session is opened, and others that are shown or not change.
            sessions.push(session(1000 + seen.len(), "/one"));
            for changed in [3, 60, 110] {
                sessions[changed].since = Timestamp(5000 + seen.len() as u64);
            }
            match page.next_cursor {
                Some(cursor) => request.cursor = Some(cursor),
                None => break,
            }
        }
        let expected: Vec<_> = (0..120).rev().map(|number| format!("{number:010}")).collect();
        assert_eq!(seen, expected);
    }

    #[test]
    fn m_h1_a_deleted_session_moves_no_other_one_to_another_page() {
        let mut sessions: Vec<_> = (0..60).map(|number| session(number, "/one")).collect();
        let mut lists = Lists::default();
        let first = lists.page(&sessions, &ListPage::default()).unwrap();
        // The last of the first page, and one of the second.
        sessions.retain(|session| !["0000000010", "0000000005"].contains(&session.id.as_str()));
        let next = ListPage { cursor: first.next_cursor, ..ListPage::default() };
        let second = lists.page(&sessions, &next).unwrap();
        let expected = (0..10).rev().filter(|number| *number != 5);
        assert_eq!(ids(&second), expected.map(|n| format!("{n:010}")).collect::<Vec<_>>());
        assert_eq!(second.next_cursor, None);
    }

    #[test]
    fn m_h1_a_cursor_of_no_list_is_refused() {
        let sessions: Vec<_> = (0..60).map(|number| session(number, "/one")).collect();
        let mut lists = Lists::default();
        let first = lists.page(&sessions, &ListPage::default()).unwrap().next_cursor.unwrap();
        for _ in 0..MAX_LISTS {
            lists.page(&sessions, &ListPage::default()).unwrap();
        }
        let dropped = first.as_str();
        for cursor in [dropped, "gone", "", "2-", "2-61", "-1", "2-99999999999999999999"] {
            let page = ListPage { cursor: Some(cursor.to_owned()), ..ListPage::default() };
            let error = lists.page(&sessions, &page).unwrap_err();
            assert_eq!(error.message, format!("unknown cursor `{cursor}`"));
        }
    }
}
