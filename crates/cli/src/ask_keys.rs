//! Texts for the keys of an ask, shared by the screen and the plain terminal.

use holdpoint_common::{Answer, AskRequest, PauseKind};
use holdpoint_session::form::{AskForm, Entry, Reply};

/// The key hints of a Confirm, in the order of their lines.
pub(crate) struct ConfirmKeys {
    /// The hint in front of the rule that A or D would remember; `None` if there is no such rule.
    pub(crate) always: Option<&'static str>,
    pub(crate) reason: &'static str,
    pub(crate) answer: &'static str,
}

/// The key hints of a Confirm that is answered by a single key.
pub(crate) fn confirm(form: &AskForm) -> ConfirmKeys {
    let always = match form.armed() {
        Some(Answer::Deny { .. }) => "Press D again to deny always in this session:",
        Some(_) => "Press A again to approve always in this session:",
        None => "[A] Approve [D] Deny always in this session:",
    };
    ConfirmKeys {
        always: form.ask().always.is_some().then_some(always),
        reason: "[R] Deny and say why",
        answer: "[Y] Approve [N] Deny (Esc to interrupt)",
    }
}

/// The key hint of an ask, in one line.
pub(crate) fn hint(form: &AskForm) -> String {
    match (&form.ask().request, form.entry()) {
        (AskRequest::Pause(pause), Entry::Choice) => match pause.kind {
            PauseKind::Continue => "[Enter] Continue (Esc to interrupt)".to_owned(),
            PauseKind::Confirm => confirm(form).answer.to_owned(),
        },
        (AskRequest::Pause(_), Entry::Text { .. }) => {
            "Reason, then Enter (Esc to go back)".to_owned()
        }
        (AskRequest::Question(_), Entry::Choice) => {
            let options = form.question().map_or(0, |(question, ..)| question.options.len().min(9));
            format!(
                "[1-{options}] Choose [W] Your own words [S] Skip ({}Esc to interrupt)",
                other_questions(form)
            )
        }
        (AskRequest::Question(_), Entry::Text { chosen }) => {
            let esc = match chosen {
                true => "Esc to go back",
                false if form.line().text().is_empty() => "Esc to interrupt",
                false => "Esc to clear",
            };
            format!("Your words, then Enter (Ctrl+D: Skip, {}{esc})", other_questions(form))
        }
    }
}

/// The keys that show the other questions of the same ask.
fn other_questions(form: &AskForm) -> &'static str {
    match form.question() {
        Some((.., 1)) | None => "",
        Some((_, number, count)) if number == count => "Shift+Tab: back, ",
        Some((_, 1, _)) => "Tab: next, ",
        Some(_) => "Tab: next, Shift+Tab: back, ",
    }
}

/// The position of the shown question among several, and whether it was skipped before. Empty for a
/// single question.
pub(crate) fn position(form: &AskForm) -> String {
    match (form.question(), form.reply()) {
        (Some((.., 1)) | None, _) => String::new(),
        (Some((_, number, count)), Some(Reply::Skip)) => format!(" ({number} of {count}, skipped)"),
        (Some((_, number, count)), _) => format!(" ({number} of {count})"),
    }
}

/// The mark behind the option that was chosen before.
pub(crate) fn chosen(form: &AskForm, label: &str) -> &'static str {
    if matches!(form.reply(), Some(Reply::Answer(answer)) if answer == label) { " ✓" } else { "" }
}

/// The number of asks that wait behind the shown one, in words; `None` for zero.
pub(crate) fn behind(waiting: usize) -> Option<String> {
    match waiting {
        0 => None,
        more => Some(format!("{more} more waiting")),
    }
}
