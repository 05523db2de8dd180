//! What messages do to the state, and what they want done. Pure: no terminal, no clock.

mod act;
mod hub;
mod overlay;
mod session;
mod slash;

use self::act::{act, leave, open, open_new};
pub(crate) use self::slash::{COMMANDS, candidates};

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use holdpoint_common::SessionSummary;
use holdpoint_common::api::SessionNews;
use holdpoint_session::form::Guard;
use holdpoint_tools::shown::prose_line;

use super::ask::AskView;
use super::keymap::{Action, Found};
use super::message::{Command, Message, Moment};
use super::session::Session;
use super::state::{Overlay, Refused, State};
use super::style::Tone;

/// Why nothing can be done in a session any more.
const CLOSED: &str = "the session is closed";

/// Changes the state by what it is told.
pub(crate) fn update(state: &mut State, message: Message, now: Moment) -> Vec<Command> {
    state.now = now;
    if state.notice.as_ref().is_some_and(|notice| notice.until <= now.instant) {
        state.notice = None;
    }
    match message {
        Message::Key(key) => press(state, &key),
        Message::Paste(text) => paste(state, &text),
        Message::Focus(focused) => {
            state.focused = focused;
            state.put_off_asks();
            vec![]
        }
        Message::Other => {
            state.put_off_asks();
            vec![]
        }
        Message::Tick => vec![],
        Message::Watching => {
            state.hub.known = true;
            vec![]
        }
        Message::News(news) => hear(state, news),
        Message::Attached { attachment, id, snapshot } => {
            match (&mut state.session, &state.opening) {
                (Some(session), _) if session.attachment == attachment && session.id == id => {
                    (session.snapshot, session.lost, session.closed) = (snapshot, None, false);
                }
                (_, Some(opening)) if opening.attachment == attachment => {
                    let (pid, steps) = (state.me.pid, state.settings.show_intermediate_steps);
                    let mut session = Session::new(snapshot, attachment, pid, steps, opening.fresh);
                    for (_, text) in state.drafts.extract_if(.., |(of, _)| *of == id) {
                        session.type_again(&text);
                    }
                    if state.hub.has_panel() {
                        session.after.begin(now.instant);
                        state.begun.keep(state.hub.close_panel());
                    }
                    state.session = Some(session);
                    state.opening = None;
                }
                _ => {}
            }
            appear(state)
        }
        Message::Happened { attachment, events, snapshot } => match current(state, attachment) {
            Some(session) => {
                session.add(&events);
                session.snapshot = snapshot;
                appear(state)
            }
            None => vec![],
        },
        Message::Lost { attachment } => {
            current(state, attachment).into_iter().for_each(|session| session.lost = session.lost.or(Some(now.time)));
            vec![]
        }
        Message::Branch { attachment, branch } => {
            current(state, attachment).into_iter().for_each(|session| session.branch.clone_from(&branch));
            vec![]
        }
        Message::Live { attachment } => {
            current(state, attachment).into_iter().for_each(Session::live);
            vec![]
        }
        Message::Closed { attachment } => match current(state, attachment) {
            Some(session) => {
                session.closed = true;
                // What was asked for of its past does not come.
                session.pending = None;
                appear(state)
            }
            // Before anything of it was shown.
            None => not_opened(state, attachment, CLOSED.to_owned()),
        },
        Message::Daemon { here } => {
            // Somebody else may have started it.
            let started = here && state.overlay.take_if(|overlay| matches!(overlay, Overlay::Stopped { .. })).is_some();
            if here && !state.daemon || started {
                state.tell(Tone::Good, "the daemon is back");
            }
            if !here && state.daemon {
                // That it is gone is more than what was told before; why it can't be started is more than that.
                state.notice = None;
            }
            state.daemon = here;
            vec![]
        }
        Message::Stopped => {
            state.hide_asks();
            state.prefix = None;
            state.overlay = Some(Overlay::Stopped { guard: Guard::new(state.now.instant) });
            vec![]
        }
        Message::PromptRefused { id, text, why } => {
            match state.session.as_mut().filter(|session| session.id == id) {
                Some(session) => {
                    session.refuse(&text);
                    state.tell(Tone::Fault, &*why);
                }
                None => {
                    state.tell(Tone::Fault, format!("{}: {why}", state.name_of(&id)));
                    state.drafts.push((id.clone(), text.clone()));
                }
            }
            state.refuse(Refused { id, text, why });
            vec![]
        }
        Message::AnswerRefused { ask, why } => {
            for view in state.asks() {
                if view.form.ask().id == ask {
                    view.form.reopen(now.instant);
                    view.hide();
                }
            }
            state.tell(Tone::Warning, why);
            vec![]
        }
        Message::AskEnded { ask, how } => {
            if let Some(mut view) = state.hub.closed.take_if(|view| view.form.ask().id == ask) {
                view.ended = Some(how);
                tell_closed(state, &view);
            }
            vec![]
        }
        Message::NotOpened { attachment, why } => not_opened(state, attachment, why),
        Message::Edited(text) => {
            state.session.iter_mut().for_each(|session| session.prompt.set(text.trim_end()));
            vec![]
        }
        Message::Told(text) => {
            state.tell(Tone::Plain, text);
            vec![]
        }
        Message::Failed(text) => {
            state.tell(Tone::Fault, text);
            vec![]
        }
    }
}

/// A session can't be shown: the one before is, if there is one, or else the hub.
fn not_opened(state: &mut State, attachment: u64, why: String) -> Vec<Command> {
    if !state.awaits(attachment) {
        // Something else was chosen meanwhile.
        return vec![];
    }
    match state.opening.take() {
        Some(opening) => {
            state.tell_not_opened(why);
            opening.back.map_or_else(Vec::new, |id| open(state, id))
        }
        // It was closed, and can't be opened again: there is still what was said.
        None if state.session.as_ref().is_some_and(|session| session.closed) => {
            state.session.iter_mut().for_each(|session| session.pending = None);
            state.tell(Tone::Fault, why);
            vec![]
        }
        // What is shown is fed by nothing any more.
        None => {
            if state.session.as_ref().is_some_and(|session| session.asking.is_some()) {
                state.hub.after.begin(state.now.instant);
            }
            state.tell(Tone::Fault, why);
            leave(state, false)
        }
    }
}

/// The session that is fed by this attachment, if it is shown.
fn current(state: &mut State, attachment: u64) -> Option<&mut Session> {
    state.session.as_mut().filter(|session| session.attachment == attachment)
}

/// Shows the ask that is first now.
fn appear(state: &mut State) -> Vec<Command> {
    let now = state.now.instant;
    let Some(session) = &mut state.session else { return vec![] };
    let before = session.asking.as_ref().map(|view| view.form.ask().id.clone());
    let (appears, closed) = session.ask(&mut state.begun, now);
    if let Some(closed) = closed {
        state.tell(Tone::Warning, closed);
    }
    let Some(session) = state.session.as_ref().filter(|_| appears) else { return vec![] };
    let notice = session.snapshot.asks.first().filter(|ask| before.as_ref() != Some(&ask.id));
    let name = prose_line(&session.snapshot.settings.name).into_owned();
    let text = notice.map(|ask| format!("{name}: {} asks", prose_line(ask.request.tool_name())));
    notify(state, text)
}

/// Calls for the user, if that is wanted and another terminal is looked at.
fn notify(state: &State, text: Option<String>) -> Vec<Command> {
    let text = text.filter(|_| state.settings.bell && !state.focused);
    text.map(|text| Command::Notify { text }).into_iter().collect()
}

/// News of all sessions.
fn hear(state: &mut State, news: SessionNews) -> Vec<Command> {
    let asks = |summary: Option<&SessionSummary>| summary.and_then(|summary| summary.waits_for.clone());
    let mut commands = match news {
        SessionNews::Session(summary) => {
            let before = asks(state.hub.get(&summary.id)).map(|ask| ask.id);
            let asked = summary.waits_for.as_ref().filter(|ask| before.as_ref() != Some(&ask.id));
            let shown = state.session.as_ref().filter(|session| session.id == summary.id);
            let (is_shown, is_closed) = (shown.is_some(), shown.is_some_and(|session| session.closed));
            // It was closed for all, and somebody has opened it again. What is told late of the time before is not that.
            let was_saved = state.hub.get(&summary.id).is_some_and(|before| !before.live);
            let reopened = is_closed && was_saved && summary.live;
            let text = asked.filter(|_| !is_shown).map(|_| format!("{} waits for you", prose_line(&summary.name)));
            let loud = text.clone();
            if summary.waits_for.is_none() {
                state.begun.forget(&summary.id);
            }
            state.hub.put(*summary);
            if let Some(text) = text.filter(|_| state.session.is_some()) {
                let key = state.keymap.key(Action::Inbox);
                state.tell(Tone::Waits, format!("{text} ({key})"));
            }
            let mut commands = if reopened { session::show_reopened(state) } else { vec![] };
            commands.extend(notify(state, loud));
            commands
        }
        SessionNews::Deleted(id) => {
            state.hub.remove(&id);
            state.drafts.retain(|(of, _)| *of != id);
            state.begun.forget(&id);
            vec![]
        }
    };
    if let Some(view) = state.hub.follow(&mut state.begun, state.now.instant) {
        // The summary says only that it is closed.
        tell_closed(state, &view);
        commands.push(Command::ReadAskEnd { ask: view.form.ask().id.clone() });
        state.hub.closed = Some(view);
    }
    commands
}

/// Tells how an ask that was shown in the hub was closed.
fn tell_closed(state: &mut State, view: &AskView) {
    if let Some(closed) = view.closed() {
        let name = state.name_of(&view.form.ask().id.session);
        state.tell(Tone::Warning, format!("{name}: {closed}"));
    }
}

fn paste(state: &mut State, text: &str) -> Vec<Command> {
    state.prefix = None;
    state.stay();
    if state.overlay.is_some() {
        state.put_off_asks();
        return vec![];
    }
    match &mut state.session {
        Some(session) => session::paste(session, text, state.now.instant),
        None => hub::paste(state, text),
    }
    vec![]
}

fn press(state: &mut State, key: &KeyEvent) -> Vec<Command> {
    if !is_ctrl_c(key) {
        state.stay();
    }
    if let Some(prefix) = state.prefix.take() {
        state.put_off_asks();
        // Esc, or a key that means nothing, leaves.
        return match state.keymap.find(Some(prefix), key) {
            Found::Action(action) => act(state, action),
            Found::Prefix(_) | Found::Nothing => vec![],
        };
    }
    if let Some(stopped) = state.overlay.take_if(|overlay| matches!(overlay, Overlay::Stopped { .. })) {
        return overlay::press(state, stopped, key);
    }
    match state.keymap.find(None, key) {
        Found::Prefix(prefix) => {
            state.put_off_asks();
            state.prefix = Some(prefix);
            return vec![];
        }
        Found::Action(action) => {
            state.put_off_asks();
            return act(state, action);
        }
        Found::Nothing => {}
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
