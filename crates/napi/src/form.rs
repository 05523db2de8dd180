//! The form that keys fill in to answer an ask, for user interfaces of one's own.

use std::time::{Duration, Instant};

use holdpoint_common::Ask;
use holdpoint_session::form::{self, Entry, Key, Reply};
use napi::Env;
use napi::bindgen_prelude::Unknown;
use napi_derive::napi;
use serde_json::json;

use crate::crossing::{now, parse, read, write};
use crate::failure::Failure;

/// An open ask, and the user's answer so far: keys go in, an answer comes out. The screen of
/// `holdpoint` and `holdpoint/ink` use the same one.
///
/// Keys that answer count only 300 ms after the ask appeared, and after the last key that does not
/// answer; a second `A` counts only 700 ms after the first, so that a held key does not approve
/// always. `tab`, `backtab` and the arrows act at any time, and so do `esc` and `ctrl+c`. Pass every
/// input of the terminal to `press` or `paste`, also those that mean nothing to your program. Send
/// the answer yourself.
///
/// All times are milliseconds of one clock that never goes back, such as `performance.now()`.
/// Methods throw `invalidArgument`.
#[napi]
pub struct AskForm {
    form: form::AskForm,
    clock: Clock,
}

#[napi]
impl AskForm {
    /// A form for an ask of a snapshot that is shown from now on.
    #[napi(constructor, catch_unwind, ts_args_type = "ask: Ask, at: number")]
    pub fn new(env: &Env, ask: Unknown<'_>, at: f64) -> napi::Result<Self> {
        now(env, || {
            let clock = Clock(Instant::now());
            let form = form::AskForm::new(read::<Ask>(env, "ask", ask)?, clock.instant(at)?);
            Ok(Self { form, clock })
        })
    }

    /// Passes a key in. Keys are `enter`, `esc`, `tab`, `backtab` (Shift+Tab), `left`, `right`,
    /// `home`, `end`, `backspace`, `delete`, a single character such as `y`, and `ctrl+x` for any
    /// letter. All else means another input of the terminal.
    #[napi(catch_unwind, ts_return_type = "Pressed")]
    pub fn press<'env>(&mut self, env: &'env Env, key: String, at: f64) -> napi::Result<Unknown<'env>> {
        let pressed = now(env, || written(&self.form.press(read_key(&key), self.clock.instant(at)?)))?;
        parse(env, &pressed)
    }

    /// Passes pasted text in, or a character of several code points: it is part of the words, and
    /// never answers.
    #[napi(catch_unwind, ts_return_type = "Pressed")]
    pub fn paste<'env>(&mut self, env: &'env Env, text: String, at: f64) -> napi::Result<Unknown<'env>> {
        let pressed = now(env, || written(&self.form.paste(&text, self.clock.instant(at)?)))?;
        parse(env, &pressed)
    }

    /// The ask, or another question of it, is on the screen from now on: the 300 ms begin. Call this
    /// also when a `moved` has been drawn. `turned` does not need it: `press` has restarted the time.
    /// The time of an earlier key changes nothing.
    #[napi(catch_unwind)]
    pub fn appear(&mut self, env: &Env, at: f64) -> napi::Result<()> {
        now(env, || {
            self.form.appear(self.clock.instant(at)?);
            Ok(())
        })
    }

    /// The answer was refused and the ask is still open: another answer can be given. Earlier
    /// replies are kept.
    #[napi(catch_unwind)]
    pub fn reopen(&mut self, env: &Env, at: f64) -> napi::Result<()> {
        now(env, || {
            self.form.reopen(self.clock.instant(at)?);
            Ok(())
        })
    }

    /// The number of the question that is shown, from 1; 0 for a pause.
    #[napi(getter, catch_unwind, ts_return_type = "number")]
    pub fn question_number(&self) -> u32 {
        self.form.question().map_or(0, |(_, number, _)| count(number))
    }

    /// How many questions there are; 0 for a pause.
    #[napi(getter, catch_unwind, ts_return_type = "number")]
    pub fn question_count(&self) -> u32 {
        self.form.question().map_or(0, |(.., questions)| count(questions))
    }

    /// How keys are understood now: each is a choice; they are the words of a question without
    /// options; or they are words that the user has chosen to type (`ownWords`), from which Esc
    /// goes back to the choice.
    #[napi(getter, catch_unwind, ts_return_type = "'choice' | 'words' | 'ownWords'")]
    pub fn entry(&self) -> &'static str {
        match self.form.entry() {
            Entry::Choice => "choice",
            Entry::Words { chosen: false } => "words",
            Entry::Words { chosen: true } => "ownWords",
        }
    }

    /// The words typed so far: for the question that is shown, or as the reason of a denial.
    #[napi(getter, catch_unwind)]
    pub fn text(&self) -> String {
        self.form.words().text().to_owned()
    }

    /// The place of the cursor in `text`, as an index of JavaScript.
    #[napi(getter, catch_unwind, ts_return_type = "number")]
    pub fn cursor(&self) -> u32 {
        let words = self.form.words();
        count(words.text()[..words.cursor()].encode_utf16().count())
    }

    /// The reply to the question that is shown, if the user has come back to it: `answer` is `null`
    /// if it is skipped.
    #[napi(getter, catch_unwind, ts_return_type = "{ answer: string | null } | null")]
    pub fn reply<'env>(&self, env: &'env Env) -> napi::Result<Unknown<'env>> {
        let reply = self.form.reply().map(|reply| match reply {
            Reply::Answer(answer) => json!({ "answer": answer }),
            Reply::Skip => json!({ "answer": null }),
        });
        parse(env, &now(env, || write(&reply))?)
    }

    /// Whether `A` was pressed, so that a second press approves always.
    #[napi(getter, catch_unwind)]
    pub fn is_armed(&self) -> bool {
        self.form.is_armed()
    }

    /// Whether there are words or replies that the user has not sent.
    #[napi(getter, catch_unwind)]
    pub fn is_begun(&self) -> bool {
        self.form.is_begun()
    }

    /// Whether this user has answered, or interrupted the turn.
    #[napi(getter, catch_unwind)]
    pub fn is_done(&self) -> bool {
        self.form.is_done()
    }
}

/// Swallows the keys that were meant for an ask that has closed, until none was pressed for 300 ms.
/// Times are those of `AskForm`.
#[napi]
pub struct AfterAsk {
    after: form::AfterAsk,
    clock: Clock,
}

#[napi]
impl AfterAsk {
    /// No ask has closed yet.
    #[napi(constructor, catch_unwind)]
    #[allow(clippy::new_without_default, reason = "a constructor of JavaScript")]
    pub fn new() -> Self {
        Self { after: form::AfterAsk::default(), clock: Clock(Instant::now()) }
    }

    /// An ask has closed: by an answer, an interrupt, or another client.
    #[napi(catch_unwind)]
    pub fn begin(&mut self, env: &Env, at: f64) -> napi::Result<()> {
        now(env, || {
            self.after.begin(self.clock.instant(at)?);
            Ok(())
        })
    }

    /// Whether this key is to be ignored. Keys are named as in `AskForm.press`; `esc` and `ctrl+c`
    /// are never swallowed.
    #[napi(catch_unwind)]
    pub fn swallows(&mut self, env: &Env, key: String, at: f64) -> napi::Result<bool> {
        now(env, || Ok(self.after.swallows(read_key(&key), self.clock.instant(at)?)))
    }
}

fn read_key(name: &str) -> Key {
    match name {
        "enter" => Key::Enter,
        "esc" => Key::Esc,
        "tab" => Key::Tab,
        "backtab" => Key::BackTab,
        "left" => Key::Left,
        "right" => Key::Right,
        "home" => Key::Home,
        "end" => Key::End,
        "backspace" => Key::Backspace,
        "delete" => Key::Delete,
        _ => match (single(name), name.strip_prefix("ctrl+").and_then(single)) {
            (Some(character), _) if !character.is_control() => Key::Char(character),
            (None, Some(letter)) => Key::Ctrl(letter),
            _ => Key::Other,
        },
    }
}

/// The character of a text that has only one.
fn single(text: &str) -> Option<char> {
    let mut characters = text.chars();
    characters.next().filter(|_| characters.next().is_none())
}

/// The moment at which the clock of JavaScript would have been 0. Only differences of times count.
struct Clock(Instant);

impl Clock {
    fn instant(&self, milliseconds: f64) -> Result<Instant, Failure> {
        let since = Duration::try_from_secs_f64(milliseconds / 1_000.0).ok();
        let instant = since.and_then(|since| self.0.checked_add(since));
        instant.ok_or_else(|| Failure::argument(format!("`at` must be a time in milliseconds, got {milliseconds}")))
    }
}

fn written(pressed: &form::Pressed) -> Result<String, Failure> {
    let kind = match pressed {
        form::Pressed::Nothing => "nothing",
        form::Pressed::Typed => "typed",
        form::Pressed::Turned => "turned",
        form::Pressed::Moved => "moved",
        form::Pressed::Interrupt => "interrupt",
        form::Pressed::Answer(answer) => return write(&json!({ "type": "answer", "answer": answer })),
    };
    write(&json!({ "type": kind }))
}

/// A count as JavaScript gets it. Words and questions are far fewer than fit.
fn count(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}
