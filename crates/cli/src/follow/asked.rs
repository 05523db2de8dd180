//! How an ask looks: what it wants, and the keys that answer it.

use std::io;

use holdpoint_common::{Ask, AskRequest, PauseKind, Question};
use holdpoint_tools::shown::{line, prose, prose_line};

use crate::asking::{Asking, Entry, behind};
use crate::ui::{Style, Ui};

/// Shows an ask, all of it, and how many wait behind it. With keys, what is to be answered follows by
/// [`show_keys`].
pub(crate) fn show(ask: &Ask, waiting: usize, keys: bool, ui: &mut Ui) -> io::Result<()> {
    let tool = prose_line(ask.request.tool_name());
    match &ask.request {
        AskRequest::Pause(pause) => {
            let hint = if keys && pause.kind == PauseKind::Continue { " (Press Enter to continue)" } else { "" };
            ui.line(Style::Bold, &format!("⏸ {tool}: {}{hint}", prose_line(&pause.message)))?;
            pause.details.iter().try_for_each(|details| behind_bar(details.split('\n'), ui))?;
        }
        AskRequest::Question(request) => {
            ui.line(Style::Bold, &format!("⏸ {tool} asks"))?;
            if !keys {
                request.questions.iter().try_for_each(|question| show_question(question, "", ui))?;
            }
        }
    }
    behind(waiting).map_or(Ok(()), |waits| ui.line(Style::Dim, &format!("  {waits}")))
}

/// Shows lines of others so that nothing in them looks like ours.
fn behind_bar<'a>(mut lines: impl Iterator<Item = &'a str>, ui: &mut Ui) -> io::Result<()> {
    lines.try_for_each(|line| ui.line(Style::Plain, &format!("  │ {}", prose(line))))
}

/// Shows what is to be answered now, and the keys for it.
pub(crate) fn show_keys(asking: &Asking, ui: &mut Ui) -> io::Result<()> {
    if asking.is_over() {
        ui.line(Style::Warning, "It is no longer asked: nothing is sent (Esc to leave)")?;
        return ui.input(asking.typed());
    }
    match (&asking.ask().request, asking.entry()) {
        (AskRequest::Pause(pause), Entry::Choice) => match pause.kind {
            // Its key stands beside its message.
            PauseKind::Continue => Ok(()),
            PauseKind::Confirm => {
                if let Some(always) = &asking.ask().always {
                    ui.line(Style::Plain, &format!("[A] Approve always in this session: {}", line(always)))?;
                }
                ui.line(Style::Plain, "[R] Deny and say why")?;
                ui.line(Style::Bold, "[Y] Approve [N] Deny (Esc to interrupt)")
            }
        },
        (AskRequest::Pause(_), Entry::Words { .. }) => {
            ui.line(Style::Dim, "Why not, then Enter (Esc to go back)")?;
            ui.input(asking.typed())
        }
        (AskRequest::Question(_), entry) => {
            let Some((question, number, of)) = asking.question() else { return Ok(()) };
            let skip = if of > 1 { "Skip all" } else { "Skip" };
            match entry {
                Entry::Words { chosen: true } => {
                    ui.line(Style::Dim, &format!("Your words, then Enter (Ctrl+D: {skip}, Esc to go back)"))?;
                    ui.input(asking.typed())
                }
                Entry::Words { chosen: false } => {
                    show_question(question, &place(number, of), ui)?;
                    ui.line(Style::Dim, &format!("Your words, then Enter (Ctrl+D: {skip}, Esc to interrupt)"))?;
                    ui.input(asking.typed())
                }
                Entry::Choice => {
                    show_question(question, &place(number, of), ui)?;
                    ui.line(
                        Style::Bold,
                        &format!(
                            "[1-{}] Choose [W] Your own words [S] {skip} (Esc to interrupt)",
                            question.options.len().min(9)
                        ),
                    )
                }
            }
        }
    }
}

fn show_question(question: &Question, place: &str, ui: &mut Ui) -> io::Result<()> {
    let mut lines = question.question.trim().split('\n');
    let first = prose_line(lines.next().unwrap_or_default());
    ui.line(Style::Bold, &format!("{}: {first}{place}", prose_line(&question.header)))?;
    behind_bar(lines, ui)?;
    for (number, option) in (1..).zip(&question.options) {
        let description = match option.description.as_str() {
            "" => String::new(),
            description => format!(" - {}", prose_line(description)),
        };
        ui.line(Style::Plain, &format!("  {number}. {}{description}", prose_line(&option.label)))?;
    }
    Ok(())
}

/// Which question of how many.
fn place(number: usize, of: usize) -> String {
    if of > 1 { format!(" ({number} of {of})") } else { String::new() }
}
