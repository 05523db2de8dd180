//! Applies messages to the state and returns the commands that follow. Pure: no I/O and no clock.

mod act;
mod hub;
mod overlay;
mod session;
mod slash;

use self::act::{act, leave, leave_for_hub, open, open_new, quit};
pub(crate) use self::slash::{COMMANDS, candidates};

use std::sync::Arc;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use holdpoint_common::api::SessionNews;
use holdpoint_common::{SessionId, Snapshot};
use holdpoint_session::form::Guard;
use holdpoint_tools::shown::prose_line;

use super::ask::AskView;
use super::keymap::{Action, KeyMeaning};
use super::message::{Command, EventTime, Message};
use super::session::Session;
use super::state::{Overlay, RefusedPrompt, State};
use crate::tone::Tone;

/// The error for input to a closed session.
const CLOSED: &str = "the session is closed";

/// Changes the state by one message.
pub(crate) fn update(state: &mut State, message: Message, now: EventTime) -> Vec<Command> {
    state.now = now;
    if state.notice.as_ref().is_some_and(|notice| notice.until <= now.instant) {
        state.notice = None;
    }
    match message {
        Message::Key(key) => return press(state, &key),
        Message::Paste(text) => return paste(state, &text),
        Message::Focus(focused) => {
            state.focused = focused;
            state.delay_asks();
        }
        Message::Other => state.delay_asks(),
        Message::Tick => {}
        Message::Watching => state.hub.loaded = true,
        Message::SessionChanged(news) => return apply_change(state, news),
        Message::Attached { attachment, id, snapshot } => {
            return attached(state, attachment, id, snapshot);
        }
        Message::Events { attachment, events, snapshot } => {
            if let Some(session) = current(state, attachment) {
                session.add(&events);
                session.snapshot = snapshot;
                return show_first_ask(state);
            }
        }
        Message::Lost { attachment } => {
            if let Some(session) = current(state, attachment) {
                session.lost = session.lost.or(Some(now.time));
            }
        }
        Message::Branch { attachment, branch } => {
            if let Some(session) = current(state, attachment) {
                session.branch = branch;
            }
        }
        Message::ReplayEnded { attachment } => {
            if let Some(session) = current(state, attachment) {
                session.end_replay();
            }
        }
        Message::Closed { attachment } => return closed(state, attachment),
        Message::Daemon { running } => daemon_changed(state, running),
        Message::Stopped => {
            state.hide_asks();
            state.prefix = None;
            state.overlay = Some(Overlay::Stopped { guard: Guard::new(state.now.instant) });
        }
        Message::PromptRefused { id, text, why } => {
            prompt_refused(state, RefusedPrompt { id, text, why })
        }
        Message::AnswerRefused { ask, why } => {
            for view in state.asks() {
                if view.form.ask().id == ask {
                    view.form.reopen(now.instant);
                    view.hide();
                }
            }
            state.show_notice(Tone::Warning, why);
        }
        Message::AskEnded { ask, how } => {
            if let Some(mut view) = state.hub.closed_ask.take_if(|view| view.form.ask().id == ask) {
                view.how_closed = Some(how);
                show_close_notice(state, &view);
            }
        }
        Message::NotOpened { attachment, why } => return not_opened(state, attachment, why),
        Message::Edited(text) => {
            if let Some(session) = &mut state.session {
                session.prompt.set(text.trim_end());
            }
        }
        Message::Notice(text) => state.show_notice(Tone::Plain, text),
        Message::Failed(text) => state.show_notice(Tone::Fault, text),
    }
    vec![]
}

/// Shows the session that the user has chosen, or that is attached again.
fn attached(
    state: &mut State,
    attachment: u64,
    id: SessionId,
    snapshot: Arc<Snapshot>,
) -> Vec<Command> {
    match (&mut state.session, &state.opening) {
        (Some(session), _) if session.attachment == attachment && session.id == id => {
            session.snapshot = snapshot;
            session.lost = None;
            session.closed = false;
        }
        (_, Some(opening)) if opening.attachment == attachment => {
            let (pid, steps) = (state.process.pid, state.settings.show_intermediate_steps);
            let mut session = Session::new(snapshot, attachment, pid, steps, opening.fresh);
            for (_, text) in state.drafts.extract_if(.., |(session_id, _)| *session_id == id) {
                session.prepend_text(&text);
            }
            if state.hub.has_panel() {
                session.after_ask.begin(state.now.instant);
                state.started_forms.keep(state.hub.close_panel());
            }
            state.session = Some(session);
            state.opening = None;
        }
        _ => {}
    }
    show_first_ask(state)
}

fn closed(state: &mut State, attachment: u64) -> Vec<Command> {
    let Some(session) = current(state, attachment) else {
        // The session was closed before any of it was shown.
        return not_opened(state, attachment, CLOSED.to_owned());
    };
    session.closed = true;
    // The rest of a requested past will not arrive.
    session.pending = None;
    show_first_ask(state)
}

fn daemon_changed(state: &mut State, running: bool) {
    let is_stopped = |overlay: &mut Overlay| matches!(overlay, Overlay::Stopped { .. });
    // Another client may have started it.
    let started = running && state.overlay.take_if(is_stopped).is_some();
    if running && !state.daemon || started {
        state.show_notice(Tone::Good, "the daemon is back");
    }
    if !running && state.daemon {
        // The loss of the daemon outdates earlier notices. A later one may report why it can't be
        // started.
        state.notice = None;
    }
    state.daemon = running;
}

/// Returns the text of a refused prompt to its session.
fn prompt_refused(state: &mut State, prompt: RefusedPrompt) {
    let RefusedPrompt { id, text, why } = &prompt;
    match state.session.as_mut().filter(|session| session.id == *id) {
        Some(session) => {
            session.restore_refused(text);
            state.show_notice(Tone::Fault, &**why);
        }
        None => {
            state.show_notice(Tone::Fault, format!("{}: {why}", state.name_of(id)));
            state.drafts.push((id.clone(), text.clone()));
        }
    }
    state.record_refused(prompt);
}

/// Handles a session that can't be shown, by returning to the previous one or to the hub.
fn not_opened(state: &mut State, attachment: u64, why: String) -> Vec<Command> {
    if !state.awaits(attachment) {
        // The user has chosen something else meanwhile.
        return vec![];
    }
    match state.opening.take() {
        Some(opening) => {
            state.show_open_error(why);
            opening.back.map_or_else(Vec::new, |id| open(state, id))
        }
        // The closed session can't be opened again; its transcript stays on the screen.
        None if state.session.as_ref().is_some_and(|session| session.closed) => {
            state.session.iter_mut().for_each(|session| session.pending = None);
            state.show_notice(Tone::Fault, why);
            vec![]
        }
        // The shown session receives no more events.
        None => {
            if state.session.as_ref().is_some_and(|session| session.open_ask.is_some()) {
                state.hub.after_ask.begin(state.now.instant);
            }
            state.show_notice(Tone::Fault, why);
            leave_for_hub(state)
        }
    }
}

/// The shown session, if this attachment delivers its events.
fn current(state: &mut State, attachment: u64) -> Option<&mut Session> {
    state.session.as_mut().filter(|session| session.attachment == attachment)
}

/// Shows the first open ask, and alerts the user to a new one.
fn show_first_ask(state: &mut State) -> Vec<Command> {
    let now = state.now.instant;
    let Some(session) = &mut state.session else { return vec![] };
    let (appears, closed) = session.show_first_ask(&mut state.started_forms, now);
    if let Some(closed) = closed {
        state.show_notice(Tone::Warning, closed);
    }
    let Some(session) = state.session.as_ref().filter(|_| appears) else { return vec![] };
    let name = prose_line(&session.snapshot.settings.name).into_owned();
    let ask = session.snapshot.asks.first();
    let text = ask.map(|ask| format!("{name} needs you: {}", prose_line(ask.request.tool_name())));
    notify(state, text)
}

/// Alerts the user, if the settings want that and the terminal lacks the focus.
fn notify(state: &State, text: Option<String>) -> Vec<Command> {
    let text = text.filter(|_| state.settings.bell && !state.focused);
    text.map(|text| Command::Notify { text }).into_iter().collect()
}

/// Applies a change in the list of sessions.
fn apply_change(state: &mut State, news: SessionNews) -> Vec<Command> {
    let mut commands = match news {
        SessionNews::Session(summary) => {
            let before = state.hub.get(&summary.id);
            let ask_before = before.and_then(|before| before.waits_for.as_ref()).map(|ask| &ask.id);
            let asked = summary.waits_for.as_ref().filter(|ask| ask_before != Some(&ask.id));
            let shown = state.session.as_ref().filter(|session| session.id == summary.id);
            let (is_shown, is_closed) =
                (shown.is_some(), shown.is_some_and(|session| session.closed));
            // Another client has opened the closed session again. A late report from before the
            // close does not count.
            let was_saved = before.is_some_and(|before| !before.live);
            let reopened = is_closed && was_saved && summary.live;
            let text = asked
                .filter(|_| !is_shown)
                .map(|_| format!("{} needs you", prose_line(&summary.name)));
            let alert = text.clone();
            if summary.waits_for.is_none() {
                state.started_forms.forget(&summary.id);
            }
            state.hub.put(*summary);
            if let Some(text) = text.filter(|_| state.session.is_some()) {
                let key = state.keymap.key(Action::Inbox);
                state.show_notice(Tone::Waits, format!("{text} ({key})"));
            }
            let mut commands = if reopened { session::show_reopened(state) } else { vec![] };
            commands.extend(notify(state, alert));
            commands
        }
        SessionNews::Deleted(id) => {
            state.hub.remove(&id);
            state.drafts.retain(|(session_id, _)| *session_id != id);
            state.started_forms.forget(&id);
            vec![]
        }
    };
    if let Some(view) = state.hub.follow(&mut state.started_forms, state.now.instant) {
        // The summary reports only that the ask is closed, not how.
        show_close_notice(state, &view);
        commands.push(Command::ReadAskEnd { ask: view.form.ask().id.clone() });
        state.hub.closed_ask = Some(view);
    }
    commands
}

/// Reports how an ask in the hub was closed.
fn show_close_notice(state: &mut State, view: &AskView) {
    if let Some(closed) = view.close_notice() {
        let name = state.name_of(&view.form.ask().id.session);
        state.show_notice(Tone::Warning, format!("{name}: {closed}"));
    }
}

fn paste(state: &mut State, text: &str) -> Vec<Command> {
    state.hub.restore_cursor();
    state.prefix = None;
    state.cancel_leaving();
    if state.overlay.is_some() {
        state.delay_asks();
        return vec![];
    }
    match &mut state.session {
        Some(session) => session::paste(session, text, state.now.instant),
        None => hub::paste(state, text),
    }
    vec![]
}

fn press(state: &mut State, key: &KeyEvent) -> Vec<Command> {
    state.hub.restore_cursor();
    if !is_ctrl_c(key) {
        state.cancel_leaving();
    }
    if let Some(prefix) = state.prefix.take() {
        state.delay_asks();
        // Esc or an unbound key cancels the chord.
        return match state.keymap.find(Some(prefix), key) {
            KeyMeaning::Action(action) => act(state, action),
            KeyMeaning::Prefix(_) | KeyMeaning::Nothing => vec![],
        };
    }
    if let Some(stopped) =
        state.overlay.take_if(|overlay| matches!(overlay, Overlay::Stopped { .. }))
    {
        return overlay::press(state, stopped, key);
    }
    match state.keymap.find(None, key) {
        KeyMeaning::Prefix(prefix) => {
            state.delay_asks();
            state.prefix = Some(prefix);
            return vec![];
        }
        KeyMeaning::Action(action) => {
            state.delay_asks();
            return act(state, action);
        }
        KeyMeaning::Nothing => {}
    }
    if let Some(overlay) = state.overlay.take() {
        return overlay::press(state, overlay, key);
    }
    match state.session {
        Some(_) => session::press(state, key),
        None => hub::press(state, key),
    }
}

fn is_ctrl_c(key: &KeyEvent) -> bool {
    key.code == KeyCode::Char('c') && key.modifiers == KeyModifiers::CONTROL
}

#[cfg(test)]
mod tests;
