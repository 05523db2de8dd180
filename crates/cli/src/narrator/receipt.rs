//! Words about the receipt of a cut.

use holdpoint_common::Receipt;

use crate::summaries::counted;

/// Formats the receipt of a cut. If no tool and no process was ended, their zero counts are left
/// out. Returns `None` if no count remains.
pub(super) fn receipt_text(receipt: &Receipt) -> Option<String> {
    let Receipt { tools, processes, asks, prompts, uncounted } = receipt;
    if *uncounted || !tools.is_empty() || processes.total() > 0 {
        return Some(receipt.to_string());
    }
    let part = |count: usize, noun: &str, became: &str| {
        (count > 0).then(|| format!("{} {became}", counted(count, noun)))
    };
    let not_ended = (!processes.not_ended.is_empty()).then(|| {
        let pids: Vec<_> = processes.not_ended.iter().map(u32::to_string).collect();
        format!("could not end pid {}", pids.join(", "))
    });
    let parts = [
        part(asks.len(), "ask", "released"),
        part(prompts.len(), "prompt", "handed back"),
        not_ended,
    ];
    let parts: Vec<_> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

#[cfg(test)]
mod tests {
    use holdpoint_common::{CallId, EndedProcesses, PromptId, StopHow, StoppedTool};

    use super::*;

    #[test]
    fn zero_counts_are_omitted_and_the_rest_matches_the_receipt() {
        assert_eq!(receipt_text(&Receipt::default()), None);
        for most in 1..3 {
            for (asks, prompts, not_ended) in
                [(most, 0, 0), (0, most, 0), (0, 0, most), (most, most, most)]
            {
                let receipt = Receipt {
                    tools: vec![],
                    processes: EndedProcesses {
                        not_ended: vec![7; not_ended],
                        ..EndedProcesses::default()
                    },
                    asks: vec!["alpha.1".parse().unwrap(); asks],
                    prompts: vec![PromptId(1); prompts],
                    uncounted: false,
                };
                let rest = receipt_text(&receipt).unwrap();
                assert_eq!(
                    receipt.to_string(),
                    format!("0 tools stopped, 0 processes ended, {rest}")
                );
            }
        }
        let crashed = Receipt { uncounted: true, ..Receipt::default() };
        assert_eq!(
            receipt_text(&crashed).unwrap(),
            "no tool was running, processes were not counted"
        );
        let stopped =
            StoppedTool { call: CallId(1), name: "shell".to_owned(), how: StopHow::Returned };
        let receipt = Receipt { tools: vec![stopped], ..Receipt::default() };
        assert_eq!(receipt_text(&receipt), Some(receipt.to_string()));
    }
}
