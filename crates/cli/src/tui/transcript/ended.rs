//! The entries at the end of a turn: its outcome, its receipt and its usage.

use holdpoint_common::{Fact, Outcome, Receipt};
use holdpoint_tools::shown::{prose, prose_line};

use super::{Key, Kind, Transcript};
use crate::tui::style::Tone;

impl Transcript {
    pub(super) fn ended(&mut self, seq: u64, fact: &Fact) {
        let Fact::TurnFinished { outcome, error, cause, receipt, usage } = fact else { return };
        self.close_items();
        if *outcome == Outcome::Interrupted {
            let mut text = "Agent interrupted".to_owned();
            let cause = cause.as_ref().map(ToString::to_string);
            for about in cause.into_iter().chain(receipt.as_ref().and_then(receipt_text)) {
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

/// Formats the receipt of a cut. If no tool and no process was ended, their zero counts are left
/// out.
fn receipt_text(receipt: &Receipt) -> Option<String> {
    let Receipt { tools, processes, asks, prompts, uncounted } = receipt;
    if *uncounted || !tools.is_empty() || processes.total() > 0 {
        return Some(receipt.to_string());
    }
    let counted = |count: usize, what: &str, became: &str| {
        let many = if count == 1 { "" } else { "s" };
        (count > 0).then(|| format!("{count} {what}{many} {became}"))
    };
    let left = (!processes.left.is_empty()).then(|| {
        let pids: Vec<_> = processes.left.iter().map(u32::to_string).collect();
        format!("could not end pid {}", pids.join(", "))
    });
    let found = [counted(asks.len(), "ask", "released"), counted(prompts.len(), "prompt", "handed back"), left];
    let found: Vec<_> = found.into_iter().flatten().collect();
    (!found.is_empty()).then(|| found.join(", "))
}

#[cfg(test)]
mod tests {
    use holdpoint_common::{CallId, EndedProcesses, PromptId, StopHow, StoppedTool};

    use super::*;

    #[test]
    fn zero_counts_are_omitted_and_the_rest_matches_the_receipt() {
        assert_eq!(receipt_text(&Receipt::default()), None);
        for most in 1..3 {
            for (asks, prompts, left) in [(most, 0, 0), (0, most, 0), (0, 0, most), (most, most, most)] {
                let receipt = Receipt {
                    tools: vec![],
                    processes: EndedProcesses { left: vec![7; left], ..EndedProcesses::default() },
                    asks: vec!["alpha.1".parse().unwrap(); asks],
                    prompts: vec![PromptId(1); prompts],
                    uncounted: false,
                };
                let rest = receipt_text(&receipt).unwrap();
                assert_eq!(receipt.to_string(), format!("0 tools stopped, 0 processes ended, {rest}"));
            }
        }
        let crashed = Receipt { uncounted: true, ..Receipt::default() };
        assert_eq!(receipt_text(&crashed).unwrap(), "no tool was running, processes were not counted");
        let stopped = StoppedTool { call: CallId(1), name: "shell".to_owned(), how: StopHow::Returned };
        let receipt = Receipt { tools: vec![stopped], ..Receipt::default() };
        assert_eq!(receipt_text(&receipt), Some(receipt.to_string()));
    }
}
