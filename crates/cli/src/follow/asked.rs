//! Shows an ask in the plain terminal: its subject, and the keys that answer it.

use std::io;

use holdpoint_common::{Ask, AskRequest, PauseKind, Question};
use holdpoint_session::form::{AskForm, Entry};
use holdpoint_tools::shown::{line, prose, prose_line};

use crate::ask_keys::{self, behind};
use crate::tone::Tone;
use crate::ui::Ui;

/// Shows a whole ask on its own, without keys.
pub(crate) fn show_alone(ask: &Ask, ui: &mut Ui) -> io::Result<()> {
    show(ask, 0, false, ui)
}

/// Shows a whole ask and the number of asks behind it. With `keys`, the part to be answered now is
/// left to [`show_keys`].
pub(super) fn show(ask: &Ask, waiting: usize, keys: bool, ui: &mut Ui) -> io::Result<()> {
    let tool = prose_line(ask.request.tool_name());
    match &ask.request {
        AskRequest::Pause(pause) => {
            let hint = if keys && pause.kind == PauseKind::Continue {
                " (Press Enter to continue)"
            } else {
                ""
            };
            ui.line(Tone::Strong, &format!("⏸ {tool}: {}{hint}", prose_line(&pause.message)))?;
            pause
                .details
                .iter()
                .try_for_each(|details| show_behind_bar(details.split('\n'), ui))?;
        }
        AskRequest::Question(request) => {
            ui.line(Tone::Strong, &format!("⏸ {tool} asks"))?;
            if !keys {
                request
                    .questions
                    .iter()
                    .try_for_each(|question| show_question(question, None, ui))?;
            }
        }
    }
    behind(waiting).map_or(Ok(()), |waits| ui.line(Tone::Dim, &format!("  {waits}")))
}

/// Shows foreign lines behind a bar, so that they can't look like the program's own.
fn show_behind_bar<'a>(mut lines: impl Iterator<Item = &'a str>, ui: &mut Ui) -> io::Result<()> {
    lines.try_for_each(|line| ui.line(Tone::Plain, &format!("  │ {}", prose(line))))
}

/// Shows the part of an ask that is to be answered now, with its keys.
pub(crate) fn show_keys(form: &AskForm, ui: &mut Ui) -> io::Result<()> {
    // A user who has chosen to write sees the question above.
    if let Some((question, ..)) = form.question()
        && form.entry() != (Entry::Text { chosen: true })
    {
        show_question(question, Some(form), ui)?;
    }
    match (&form.ask().request, form.entry()) {
        // The key hint is beside the message.
        (AskRequest::Pause(pause), Entry::Choice) if pause.kind == PauseKind::Continue => Ok(()),
        (AskRequest::Pause(_), Entry::Choice) => {
            let keys = ask_keys::confirm(form);
            if let (Some(key), Some(always)) = (keys.always, &form.ask().always) {
                ui.line(Tone::Plain, &format!("{key} {}", line(always)))?;
            }
            ui.line(Tone::Plain, keys.reason)?;
            ui.line(Tone::Strong, keys.answer)
        }
        (AskRequest::Question(_), Entry::Choice) => ui.line(Tone::Strong, &ask_keys::hint(form)),
        (_, Entry::Text { .. }) => {
            ui.line(Tone::Dim, &ask_keys::hint(form))?;
            ui.input(form.line())
        }
    }
}

/// Shows a question and its options. With a form, also shows its number and the earlier reply to
/// it.
fn show_question(question: &Question, form: Option<&AskForm>, ui: &mut Ui) -> io::Result<()> {
    let mut lines = question.question.trim().split('\n');
    let first = prose_line(lines.next().unwrap_or_default());
    let position = form.map(ask_keys::position).unwrap_or_default();
    ui.line(Tone::Strong, &format!("{}: {first}{position}", prose_line(&question.header)))?;
    show_behind_bar(lines, ui)?;
    for (number, option) in (1..).zip(&question.options) {
        let description = match option.description.as_str() {
            "" => String::new(),
            description => format!(" - {}", prose_line(description)),
        };
        let chosen = form.map_or("", |form| ask_keys::chosen(form, &option.label));
        ui.line(
            Tone::Plain,
            &format!("  {number}. {}{chosen}{description}", prose_line(&option.label)),
        )?;
    }
    Ok(())
}
