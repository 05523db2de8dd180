//! The end of a turn: how it ended, what a cut found, what it took.

use holdpoint_common::{Fact, Outcome, Receipt};
use holdpoint_tools::shown::{prose, prose_line};

use super::{Key, Kind, Transcript};
use crate::tui::style::Tone;

/// How a receipt begins where no tool ran.
const NOTHING: &str = "0 tools stopped, 0 processes ended";

impl Transcript {
    pub(super) fn ended(&mut self, seq: u64, fact: &Fact) {
        let Fact::TurnFinished { outcome, error, cause, receipt, usage } = fact else { return };
        self.close_items();
        if *outcome == Outcome::Interrupted {
            let mut text = "Agent interrupted".to_owned();
            let cause = cause.as_ref().map(ToString::to_string);
            for about in cause.into_iter().chain(receipt.as_ref().and_then(found)) {
                text.push_str(&format!("\n{}", prose_line(&about)));
            }
            match self.cut.take().and_then(|at| self.entries.get_mut(at)) {
                Some(entry) => {
                    entry.version += 1;
                    entry.kind = Kind::Note { tone: Tone::Strong, text };
                }
                None => self.note(seq, Tone::Strong, text),
            }
        } else if let Some(error) = error {
            self.note(seq, Tone::Fault, format!("{outcome}: {}", prose(error)));
        }
        let seconds = self.clock.take().map(|clock| clock.seconds());
        let steps = if self.steps == 1 { "step" } else { "steps" };
        let about = if usage.estimated { "about " } else { "" };
        let mut text = format!("{outcome}: {} {steps}, {about}{} tokens", self.steps, usage.total());
        if let Some(seconds) = seconds {
            text.push_str(&format!(", {seconds:.1} s"));
        }
        if let Some(cost) = usage.cost {
            text.push_str(&format!(", cost {:.4}", cost as f64 / 1e6));
        }
        self.push(Key::End(seq), Kind::Note { tone: Tone::Dim, text });
    }
}

/// What a cut found. That there was nothing of something is not said here.
fn found(receipt: &Receipt) -> Option<String> {
    let said = receipt.to_string();
    let found = said.strip_prefix(NOTHING).map_or(&*said, |more| more.trim_start_matches(", "));
    (!found.is_empty()).then(|| found.to_owned())
}
