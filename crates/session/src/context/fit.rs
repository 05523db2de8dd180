//! Leaving out what does not fit: one pure function.
//!
//! The system prompt, the tools, the newest prompt and the last unit stay; of the rest, as many of the newest whole
//! units as fit. A unit is a prompt, an answer, or an answer with calls and all their results. Where the oldest that fits
//! is in the middle of a turn, the prompt of that turn stays before it: a conversation begins with its user. A prompt that
//! was never answered and does not fit, as one that was refused for its size, leaves out nothing but itself.

use std::collections::BTreeSet;
use std::ops::Range;

use holdpoint_common::{Kept, ToolResult};
use thiserror::Error;

use super::{Bounds, estimate};
use crate::model::{Message, ModelRequest};

/// Tokens that a message takes beside its texts: roles, names, quotes.
const FRAME: u64 = 8;

/// Bytes that are left of the largest results at least, when there is no room for more.
const LEAST_RESULT: usize = 256;

/// What was left out of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LeftOut {
    /// Messages that were left out.
    pub messages: u64,
    /// Results of tools that were cut.
    pub results: u64,
    /// Tokens of what was left in, as they were counted.
    pub tokens: u64,
    /// Its lines.
    pub lines: u64,
    /// By its tokens alone, more would have fitted: it was too long in lines.
    pub by_lines: bool,
}

/// What must stay is too large on its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error(
    "the request is too large: what can't be left out of it (system prompt, tools, the newest prompt, the last \
     results) is about {tokens} tokens and {lines} lines, and at most {} tokens and {} lines are allowed \
     (limits.max_history_tokens, limits.max_history_lines, and the window of the model)",
    .bounds.tokens, .bounds.lines
)]
pub struct TooLarge {
    /// Tokens of what must stay.
    pub tokens: u64,
    /// Its lines.
    pub lines: u64,
    /// What is allowed.
    pub bounds: Bounds,
}

/// Leaves out of a request what is beyond its bounds; nothing where it is within them. `count` counts the tokens of a
/// text; it is not asked while the size alone says that they are few enough.
///
/// # Errors
/// [`TooLarge`] if what must stay is beyond them; the request is as it was, or has its results cut.
pub fn fit(
    request: &mut ModelRequest,
    bounds: &Bounds,
    count: &mut dyn FnMut(&str) -> u64,
) -> Result<Option<LeftOut>, TooLarge> {
    if bounds.hold(request) {
        return Ok(None);
    }
    let few = estimate(request.bytes()) <= bounds.tokens;
    let mut measure = Measure { few, count };
    let fixed = Size { tokens: measure.fixed(request), lines: 0 };
    let units = units(&request.messages);
    let newest = units.iter().rposition(|unit| request.messages[unit.start].is_prompt());
    let (Some(newest), Some(last)) = (newest, units.len().checked_sub(1)) else {
        // Without a prompt there is nothing that a model could be asked.
        return Err(TooLarge { tokens: fixed.tokens, lines: 0, bounds: *bounds });
    };
    let mut taken = fixed + measure.unit(&request.messages[units[newest].clone()]);
    let mut by_lines = true;
    let results = if last == newest {
        0
    } else {
        let room = bounds.less(taken);
        by_lines = measure.unit(&request.messages[units[last].clone()]).tokens <= room.tokens;
        let (size, cut) = measure.cut_to_fit(&mut request.messages[units[last].clone()], room);
        taken = taken + size;
        cut
    };
    if !taken.is_within(bounds) {
        return Err(TooLarge { tokens: taken.tokens, lines: taken.lines, bounds: *bounds });
    }
    let begins = |unit: usize| request.messages[units[unit].start].is_prompt();
    // The newest units that fit, without a gap but for the newest prompt, which is in already, and for prompts that were
    // never answered.
    let (mut from, mut skipped) = (last, BTreeSet::new());
    for next in (0..last).rev() {
        if next != newest {
            let more = taken + measure.unit(&request.messages[units[next].clone()]);
            by_lines &= more.tokens <= bounds.tokens;
            if more.is_within(bounds) {
                taken = more;
            } else if begins(next) && begins(next + 1) {
                skipped.insert(next);
                continue;
            } else {
                break;
            }
        }
        from = next;
    }
    // What is kept begins with a prompt: that of its turn, for which some more may have to go.
    let mut first = (0..from).rev().find(|unit| begins(*unit));
    let prompt = first.map(|first| measure.unit(&request.messages[units[first].clone()]));
    while from < newest && !begins(from) {
        let more = prompt.map(|prompt| taken + prompt);
        by_lines &= more.is_none_or(|more| more.tokens <= bounds.tokens);
        match more.filter(|more| more.is_within(bounds)) {
            Some(more) => {
                taken = more;
                break;
            }
            None => {
                taken = taken.less(measure.unit(&request.messages[units[from].clone()]));
                from += 1;
            }
        }
    }
    first.take_if(|_| from >= newest || begins(from));
    let stays = |unit: usize| (unit >= from && !skipped.contains(&unit)) || unit == newest || Some(unit) == first;
    let before = request.messages.len();
    let mut kept = units.iter().enumerate().flat_map(|(n, unit)| unit.clone().map(move |_| stays(n)));
    request.messages.retain(|_| kept.next().unwrap_or(true));
    let messages = (before - request.messages.len()) as u64;
    let Size { tokens, lines } = taken;
    Ok((messages + results > 0).then_some(LeftOut { messages, results, tokens, lines, by_lines }))
}

/// The units of a conversation, in order.
fn units(messages: &[Message]) -> Vec<Range<usize>> {
    let mut units: Vec<Range<usize>> = Vec::new();
    for (n, message) in messages.iter().enumerate() {
        match (message, units.last_mut()) {
            (Message::Tool(_), Some(unit)) => unit.end = n + 1,
            // That an answer broke belongs to the answer.
            (Message::User(_), Some(unit)) if !message.is_prompt() => unit.end = n + 1,
            _ => units.push(n..n + 1),
        }
    }
    units
}

/// How large something is.
#[derive(Clone, Copy)]
struct Size {
    tokens: u64,
    lines: u64,
}

impl std::ops::Add for Size {
    type Output = Self;

    fn add(self, more: Self) -> Self {
        Self { tokens: self.tokens + more.tokens, lines: self.lines + more.lines }
    }
}

impl Size {
    fn less(self, other: Self) -> Self {
        Self { tokens: self.tokens - other.tokens, lines: self.lines - other.lines }
    }

    fn is_within(self, bounds: &Bounds) -> bool {
        self.tokens <= bounds.tokens && self.lines <= bounds.lines
    }
}

impl Bounds {
    /// What is left of them.
    fn less(&self, taken: Size) -> Self {
        Self { lines: self.lines.saturating_sub(taken.lines), tokens: self.tokens.saturating_sub(taken.tokens) }
    }
}

/// How sizes are measured.
struct Measure<'a> {
    /// The tokens are few enough by the size of all texts, which is then taken for each.
    few: bool,
    count: &'a mut dyn FnMut(&str) -> u64,
}

impl Measure<'_> {
    fn fixed(&mut self, request: &ModelRequest) -> u64 {
        if self.few {
            return estimate(request.fixed_bytes());
        }
        let tools = request.tools.iter();
        let tools: u64 =
            tools.map(|tool| (self.count)(&tool.description) + (self.count)(&tool.schema.to_string()) + FRAME).sum();
        (self.count)(&request.system) + tools
    }

    fn message(&mut self, message: &Message) -> Size {
        let mut tokens = FRAME;
        if self.few {
            // Each rounded up, so that together they are no less than the whole, but for the frame.
            tokens = estimate(message.bytes());
        } else {
            message.texts(|text| tokens += (self.count)(text));
        }
        Size { tokens, lines: message.lines() }
    }

    fn unit(&mut self, messages: &[Message]) -> Size {
        let nothing = Size { tokens: 0, lines: 0 };
        messages.iter().fold(nothing, |size, message| size + self.message(message))
    }

    /// Cuts the largest results of a unit until it fits, each with a mark of how much is missing. Its size then, and
    /// how many were cut.
    fn cut_to_fit(&mut self, unit: &mut [Message], room: Bounds) -> (Size, u64) {
        let mut most = unit.iter().map(|message| message.bytes() as usize).max().unwrap_or(0);
        let whole: Vec<Message> = unit.to_vec();
        loop {
            let size = self.unit(unit);
            let is_cut = |(now, whole): &(&Message, &Message)| now != whole;
            let cut = unit.iter().zip(&whole).filter(is_cut).count() as u64;
            if size.is_within(&room) || most <= LEAST_RESULT {
                return (size, cut);
            }
            most = (most / 2).max(LEAST_RESULT);
            for (message, whole) in unit.iter_mut().zip(&whole) {
                if whole.bytes() as usize <= most {
                    continue;
                }
                match whole {
                    Message::Tool(result) => {
                        let (output, short) = (Kept::default(), shortened(&result.to_text(), most));
                        *message = Message::Tool(ToolResult { output, result: short, ..result.clone() });
                    }
                    Message::User(results) if !whole.is_prompt() => *message = Message::User(shortened(results, most)),
                    Message::User(_) | Message::Assistant(_) => {}
                }
            }
        }
    }
}

/// A text of which about `most` bytes are left, half from its beginning and half from its end.
fn shortened(text: &str, most: usize) -> String {
    let head = text.floor_char_boundary(most / 2);
    let tail = text.ceil_char_boundary(text.len() - most / 2).max(head);
    let mark = format!("[... {} bytes left out: the conversation has no room for them ...]", tail - head);
    format!("{}\n{mark}\n{}", &text[..head], &text[tail..])
}
