//! The gaps of a session's log: ranges of events that can't be read.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Maximum number of gaps. Beyond it, the last gap extends to the end of all later ones.
const MAX_GAPS: usize = 64;

/// Maximum number of gaps in a message.
const MAX_SHOWN_GAPS: usize = 8;

/// A range of events that can't be read, because they are damaged or lost in the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Gap {
    /// Number of the first event.
    pub from: u64,
    /// Number of the last event.
    pub to: u64,
}

/// The gaps of a session in ascending order, at most 64.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Gaps(Vec<Gap>);

impl Gaps {
    /// Adds a gap, and merges it with all gaps that overlap or adjoin it.
    pub fn add(&mut self, mut gap: Gap) {
        self.0.retain(|other| {
            let apart =
                gap.from > other.to.saturating_add(1) || other.from > gap.to.saturating_add(1);
            if !apart {
                gap = Gap { from: gap.from.min(other.from), to: gap.to.max(other.to) };
            }
            apart
        });
        self.0.insert(self.0.partition_point(|other| other.from < gap.from), gap);
        while self.0.len() > MAX_GAPS {
            if let Some(removed) = self.0.pop()
                && let Some(last) = self.0.last_mut()
            {
                last.to = removed.to;
            }
        }
    }

    /// Adds all gaps of `others`.
    pub fn merge(&mut self, others: &Self) {
        others.0.iter().for_each(|gap| self.add(*gap));
    }

    /// Whether there is no gap, so that every event can be read.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl FromIterator<Gap> for Gaps {
    fn from_iter<T: IntoIterator<Item = Gap>>(gaps: T) -> Self {
        let mut all = Self::default();
        gaps.into_iter().for_each(|gap| all.add(gap));
        all
    }
}

impl fmt::Display for Gaps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_one = matches!(self.0[..], [Gap { from, to }] if from == to);
        f.write_str(if is_one { "event " } else { "events " })?;
        for (index, Gap { from, to }) in self.0.iter().take(MAX_SHOWN_GAPS).enumerate() {
            f.write_str(if index == 0 { "" } else { ", " })?;
            if from == to { write!(f, "{from}")? } else { write!(f, "{from} to {to}")? }
        }
        if let more @ 1.. = self.0.len().saturating_sub(MAX_SHOWN_GAPS) {
            write!(f, " and {more} more ranges")?;
        }
        f.write_str(" can't be read")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gaps(ranges: &[(u64, u64)]) -> Gaps {
        ranges.iter().map(|&(from, to)| Gap { from, to }).collect()
    }

    #[test]
    fn gaps_are_joined_and_bounded() {
        assert_eq!(gaps(&[(3, 3)]).to_string(), "event 3 can't be read");
        assert_eq!(gaps(&[(3, 5)]).to_string(), "events 3 to 5 can't be read");
        assert_eq!(gaps(&[(3, 5), (6, 6), (9, 9)]).to_string(), "events 3 to 6, 9 can't be read");
        assert_eq!(gaps(&[(3, 5), (3, 4)]), gaps(&[(3, 5)]));
        assert_eq!(gaps(&[(9, 9), (1, 1), (4, 6), (2, 3)]), gaps(&[(1, 6), (9, 9)]));
        let many: Vec<_> = (0..1_000).map(|number| (number * 3, number * 3)).collect();
        let many = gaps(&many);
        assert_eq!(many.0.len(), MAX_GAPS);
        assert_eq!(many.0.last(), Some(&Gap { from: 189, to: 2_997 }));
        assert!(many.to_string().ends_with(", 18, 21 and 56 more ranges can't be read"), "{many}");
    }
}
