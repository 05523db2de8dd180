//! Cuts a conversation to its bounds, by one pure function.
//!
//! The system prompt, the tools, the newest prompt and the last unit stay; of the rest, as many of
//! the newest whole units as fit. A unit is a prompt, an answer, or an answer with calls and all
//! their results. If the oldest unit that fits is in the middle of a turn, the prompt of that turn
//! stays before it, because a conversation begins with its user. A prompt that was never answered
//! and does not fit, such as one that was refused for its size, is left out alone, and older units
//! may still fit.

use std::collections::BTreeSet;
use std::ops::Range;

use holdpoint_common::{HeadAndTail, ToolResult};
use thiserror::Error;

use super::{Bounds, estimate};
use crate::model::{Message, ModelRequest};

/// The tokens of a message beside its texts: roles, names, quotes.
const FRAME_TOKENS: u64 = 8;

/// How many bytes of the largest results are always left, even if there is no room for them.
const MIN_RESULT_BYTES: usize = 256;

/// How much was left out of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LeftOut {
    /// The number of messages that were left out.
    pub messages: u64,
    /// The number of tool results that were cut.
    pub results: u64,
    /// The tokens of the remaining request, as they were counted.
    pub tokens: u64,
    /// The lines of the remaining request.
    pub lines: u64,
    /// Whether the lines alone were too many. By its tokens, more would have fitted.
    pub by_lines: bool,
    /// Whether the oldest message was reached, so that even older ones might fit.
    pub has_room: bool,
}

/// The error for a request whose indispensable part is too large.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error(
    "the request is too large: its required part (system prompt, tools, newest prompt, last results) is about {tokens} \
     tokens and {lines} line{}, and at most {} tokens and {} lines are allowed (limits.max_history_tokens, \
     limits.max_history_lines, and the model's window)",
    if *.lines == 1 { "" } else { "s" }, .bounds.tokens, .bounds.lines
)]
pub struct TooLarge {
    /// The tokens of the indispensable part.
    pub tokens: u64,
    /// The lines of the indispensable part.
    pub lines: u64,
    /// The bounds that it exceeds.
    pub bounds: Bounds,
}

/// Cuts a request to its bounds. Returns `None` if the request is within them. `count` counts the
/// tokens of a text; it is not called while the size alone shows that they are few enough.
///
/// # Errors
/// [`TooLarge`] if the indispensable part exceeds the bounds. The request is then unchanged, or has
/// its results cut.
pub fn fit(
    request: &mut ModelRequest,
    bounds: &Bounds,
    count: &mut dyn FnMut(&str) -> u64,
) -> Result<Option<LeftOut>, TooLarge> {
    let bytes = request.bytes();
    if bounds.allow(bytes, &request.messages) {
        return Ok(None);
    }
    let by_size = estimate(bytes) <= bounds.tokens;
    let mut measure = Measure { by_size, count };
    let fixed = Size { tokens: measure.fixed(request), lines: 0 };
    let units = units(&request.messages);
    let newest = units.iter().rposition(|unit| request.messages[unit.start].is_prompt());
    let (Some(newest), Some(last)) = (newest, units.len().checked_sub(1)) else {
        // Without a prompt there is no request to a model.
        return Err(TooLarge { tokens: fixed.tokens, lines: 0, bounds: *bounds });
    };
    let mut taken = fixed + measure.unit(&request.messages[units[newest].clone()]);
    let mut by_lines = true;
    let results = if last == newest {
        0
    } else {
        let room = bounds.minus(taken);
        by_lines = measure.unit(&request.messages[units[last].clone()]).tokens <= room.tokens;
        let (size, cut) = measure.cut_to_fit(&mut request.messages[units[last].clone()], room);
        taken = taken + size;
        cut
    };
    if !taken.is_within(bounds) {
        return Err(TooLarge { tokens: taken.tokens, lines: taken.lines, bounds: *bounds });
    }
    let begins_with_prompt = |unit: usize| request.messages[units[unit].start].is_prompt();
    // The newest units that fit, without a gap except for the newest prompt, which is counted
    // already, and for prompts that were never answered.
    let mut from = last;
    let mut skipped = BTreeSet::new();
    let mut has_room = true;
    for next in (0..last).rev() {
        if next != newest {
            let more = taken + measure.unit(&request.messages[units[next].clone()]);
            by_lines &= more.tokens <= bounds.tokens;
            if more.is_within(bounds) {
                taken = more;
            } else if begins_with_prompt(next) && begins_with_prompt(next + 1) {
                skipped.insert(next);
                continue;
            } else {
                has_room = false;
                break;
            }
        }
        from = next;
    }
    // The kept part must begin with a prompt. If it begins inside a turn, the prompt of that turn
    // is kept as well, and more of the oldest units are left out until there is room for it.
    let mut turn_prompt = (0..from).rev().find(|unit| begins_with_prompt(*unit));
    let prompt_size = turn_prompt.map(|unit| measure.unit(&request.messages[units[unit].clone()]));
    while from < newest && !begins_with_prompt(from) {
        let more = prompt_size.map(|prompt_size| taken + prompt_size);
        by_lines &= more.is_none_or(|more| more.tokens <= bounds.tokens);
        match more.filter(|more| more.is_within(bounds)) {
            Some(more) => {
                taken = more;
                break;
            }
            None => {
                taken = taken.minus(measure.unit(&request.messages[units[from].clone()]));
                from += 1;
            }
        }
    }
    turn_prompt.take_if(|_| from >= newest || begins_with_prompt(from));
    let is_kept = |unit: usize| {
        (unit >= from && !skipped.contains(&unit)) || unit == newest || Some(unit) == turn_prompt
    };
    let before = request.messages.len();
    let mut keep =
        units.iter().enumerate().flat_map(|(n, unit)| unit.clone().map(move |_| is_kept(n)));
    request.messages.retain(|_| keep.next().unwrap_or(true));
    let messages = (before - request.messages.len()) as u64;
    let Size { tokens, lines } = taken;
    let left_out = LeftOut { messages, results, tokens, lines, by_lines, has_room };
    Ok((messages + results > 0).then_some(left_out))
}

/// The units of a conversation, in order.
fn units(messages: &[Message]) -> Vec<Range<usize>> {
    let mut units: Vec<Range<usize>> = Vec::new();
    for (n, message) in messages.iter().enumerate() {
        match (message, units.last_mut()) {
            (Message::Tool(_), Some(unit)) => unit.end = n + 1,
            // The message after a broken answer belongs to the answer.
            (Message::User(_), Some(unit)) if !message.is_prompt() => unit.end = n + 1,
            _ => units.push(n..n + 1),
        }
    }
    units
}

/// A size in tokens and lines.
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
    fn minus(self, other: Self) -> Self {
        Self { tokens: self.tokens - other.tokens, lines: self.lines - other.lines }
    }

    fn is_within(self, bounds: &Bounds) -> bool {
        self.tokens <= bounds.tokens && self.lines <= bounds.lines
    }
}

impl Bounds {
    /// The bounds without the size that is taken.
    fn minus(&self, taken: Size) -> Self {
        Self {
            lines: self.lines.saturating_sub(taken.lines),
            tokens: self.tokens.saturating_sub(taken.tokens),
        }
    }
}

/// Measures the sizes of messages.
struct Measure<'a> {
    /// Whether the tokens of each text are estimated by its size. This is enough if the size of all
    /// texts shows that their tokens are few enough.
    by_size: bool,
    count: &'a mut dyn FnMut(&str) -> u64,
}

impl Measure<'_> {
    fn fixed(&mut self, request: &ModelRequest) -> u64 {
        if self.by_size {
            return estimate(request.fixed_bytes());
        }
        let tools = request.tools.iter();
        let tools: u64 = tools
            .map(|tool| {
                (self.count)(&tool.description)
                    + (self.count)(&tool.schema.to_string())
                    + FRAME_TOKENS
            })
            .sum();
        (self.count)(&request.system) + tools
    }

    fn message(&mut self, message: &Message) -> Size {
        let mut tokens = FRAME_TOKENS;
        if self.by_size {
            // Each estimate is rounded up, so that their sum is no less than the whole, apart from
            // the frame.
            tokens = estimate(message.bytes());
        } else {
            tokens += message.image_tokens();
            message.texts(|text| tokens += (self.count)(text));
        }
        Size { tokens, lines: message.lines() }
    }

    fn unit(&mut self, messages: &[Message]) -> Size {
        let nothing = Size { tokens: 0, lines: 0 };
        messages.iter().fold(nothing, |size, message| size + self.message(message))
    }

    /// Cuts the largest results of a unit until it fits, and marks in each how much is missing. A
    /// result that is cut has no images.
    /// Returns the new size, and how many results were cut.
    fn cut_to_fit(&mut self, unit: &mut [Message], room: Bounds) -> (Size, u64) {
        let mut max_bytes = unit.iter().map(|message| message.bytes() as usize).max().unwrap_or(0);
        let whole: Vec<Message> = unit.to_vec();
        loop {
            let size = self.unit(unit);
            let is_cut = |(now, whole): &(&Message, &Message)| now != whole;
            let cut = unit.iter().zip(&whole).filter(is_cut).count() as u64;
            if size.is_within(&room) || max_bytes <= MIN_RESULT_BYTES {
                return (size, cut);
            }
            max_bytes = (max_bytes / 2).max(MIN_RESULT_BYTES);
            for (message, whole) in unit.iter_mut().zip(&whole) {
                if whole.bytes() as usize <= max_bytes {
                    continue;
                }
                match whole {
                    Message::Tool(result) => {
                        let shortened = ToolResult {
                            output: HeadAndTail::default(),
                            result: shortened(&result.to_text(), max_bytes),
                            images: vec![],
                            ..ToolResult::clone(result)
                        };
                        *message = Message::Tool(shortened.into());
                    }
                    Message::User(results) if !whole.is_prompt() => {
                        *message = Message::User(shortened(results, max_bytes))
                    }
                    Message::User(_) | Message::Assistant(_) => {}
                }
            }
        }
    }
}

/// The text of a result without its images, cut to about `max_bytes`, half from its beginning and half from its end.
fn shortened(text: &str, max_bytes: usize) -> String {
    if text.len() <= max_bytes {
        // The images of the result are too much.
        return format!("{text}\n[its images are left out: the conversation has no room for them]");
    }
    let head = text.floor_char_boundary(max_bytes / 2);
    let tail = text.ceil_char_boundary(text.len() - max_bytes / 2).max(head);
    let mark =
        format!("[... {} bytes left out: the conversation has no room for them ...]", tail - head);
    format!("{}\n{mark}\n{}", &text[..head], &text[tail..])
}
