//! The form that turns key presses into the answer to an ask, for custom user interfaces.

use std::time::{Duration, Instant};

use holdpoint_common::{Answer, Ask};
use holdpoint_session::form::{self, Entry, Key, Reply};
use napi::Env;
use napi::bindgen_prelude::Unknown;
use napi_derive::napi;
use serde_json::json;

use crate::convert::{read_argument, run_sync, to_json};
use crate::failure::Failure;
use crate::globals::parse_json;

/// A form for an open ask: it takes key presses and produces the user's answer. The screen of
/// `holdpoint` and `holdpoint/ink` use the same form.
///
/// Keys that answer count only 300 ms after the ask appeared, and 300 ms after the last key that
/// does not answer. A second `A` or `D` counts only 700 ms after the first, so that a held key does
/// not approve or deny *always*. `tab`, `backtab`, the arrows, `esc` and `ctrl+c` act at any time.
/// Pass every input of the terminal to `press` or `paste`, even if it has no meaning in your
/// program. The form does not send the answer; your program does.
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
    /// Creates a form for an ask that appears at the time `at`.
    #[napi(constructor, catch_unwind, ts_args_type = "ask: Ask, at: number")]
    pub fn new(env: &Env, ask: Unknown<'_>, at: f64) -> napi::Result<Self> {
        run_sync(env, || {
            let clock = Clock(Instant::now());
            let form =
                form::AskForm::new(read_argument::<Ask>(env, "ask", ask)?, clock.instant(at)?);
            Ok(Self { form, clock })
        })
    }

    /// Passes a key press to the form. Key names are `enter`, `esc`, `tab`, `backtab` (Shift+Tab),
    /// `left`, `right`, `home`, `end`, `backspace`, `delete`, a single character such as `y`, and
    /// `ctrl+x` for any letter. Any other name is another input of the terminal.
    #[napi(catch_unwind, ts_return_type = "Pressed")]
    pub fn press<'env>(
        &mut self,
        env: &'env Env,
        key: String,
        at: f64,
    ) -> napi::Result<Unknown<'env>> {
        let pressed = run_sync(env, || {
            pressed_json(&self.form.press(read_key(&key), self.clock.instant(at)?))
        })?;
        parse_json(env, &pressed)
    }

    /// Passes pasted text, or a character of several code points, to the form. It becomes part of
    /// the typed text, and never answers.
    #[napi(catch_unwind, ts_return_type = "Pressed")]
    pub fn paste<'env>(
        &mut self,
        env: &'env Env,
        text: String,
        at: f64,
    ) -> napi::Result<Unknown<'env>> {
        let pressed =
            run_sync(env, || pressed_json(&self.form.paste(&text, self.clock.instant(at)?)))?;
        parse_json(env, &pressed)
    }

    /// Reports that the ask, or another question of it, has appeared on the screen: the 300 ms
    /// start again. Call this after a `moved` has been drawn. `turned` does not need it, because
    /// `press` restarts the time. A time before that of an earlier key has no effect.
    #[napi(catch_unwind)]
    pub fn appear(&mut self, env: &Env, at: f64) -> napi::Result<()> {
        run_sync(env, || {
            self.form.show(self.clock.instant(at)?);
            Ok(())
        })
    }

    /// Reports that the answer was refused and the ask is still open, so that another answer can be
    /// given. Earlier replies are kept.
    #[napi(catch_unwind)]
    pub fn reopen(&mut self, env: &Env, at: f64) -> napi::Result<()> {
        run_sync(env, || {
            self.form.reopen(self.clock.instant(at)?);
            Ok(())
        })
    }

    /// Number of the current question, counted from 1; 0 for a pause.
    #[napi(getter, catch_unwind, ts_return_type = "number")]
    pub fn question_number(&self) -> u32 {
        self.form.question().map_or(0, |(_, number, _)| to_u32(number))
    }

    /// Number of questions; 0 for a pause.
    #[napi(getter, catch_unwind, ts_return_type = "number")]
    pub fn question_count(&self) -> u32 {
        self.form.question().map_or(0, |(.., questions)| to_u32(questions))
    }

    /// Meaning of the keys: `choice` if each key is a choice, `words` if the keys type the reply to
    /// a question without options, and `ownWords` if the user chose to type, so that Esc returns to
    /// the choice.
    #[napi(getter, catch_unwind, ts_return_type = "'choice' | 'words' | 'ownWords'")]
    pub fn entry(&self) -> &'static str {
        match self.form.entry() {
            Entry::Choice => "choice",
            Entry::Text { chosen: false } => "words",
            Entry::Text { chosen: true } => "ownWords",
        }
    }

    /// Text typed so far: the reply to the current question, or the reason of a denial.
    #[napi(getter, catch_unwind)]
    pub fn text(&self) -> String {
        self.form.line().text().to_owned()
    }

    /// Position of the cursor in `text`, in UTF-16 code units.
    #[napi(getter, catch_unwind, ts_return_type = "number")]
    pub fn cursor(&self) -> u32 {
        let line = self.form.line();
        to_u32(line.text()[..line.cursor()].encode_utf16().count())
    }

    /// Earlier reply to the current question, if the user has returned to it. A skipped question
    /// has the answer `null`.
    #[napi(getter, catch_unwind, ts_return_type = "{ answer: string | null } | null")]
    pub fn reply<'env>(&self, env: &'env Env) -> napi::Result<Unknown<'env>> {
        let reply = self.form.reply().map(|reply| match reply {
            Reply::Answer(answer) => json!({ "answer": answer }),
            Reply::Skip => json!({ "answer": null }),
        });
        parse_json(env, &run_sync(env, || to_json(&reply))?)
    }

    /// Answer that a second press gives *always*: `approve` if `A` was pressed once, `deny` if `D`
    /// was.
    #[napi(getter, catch_unwind, ts_return_type = "'approve' | 'deny' | null")]
    pub fn armed(&self) -> Option<&'static str> {
        self.form.armed().map(Answer::kind_name)
    }

    /// Whether the form has text or replies that were not sent.
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

/// A filter for the keys after an ask has closed. It swallows keys that were meant for the ask,
/// until none was pressed for 300 ms. Times are as in `AskForm`.
#[napi]
pub struct AfterAsk {
    after: form::AfterAsk,
    clock: Clock,
}

#[napi]
impl AfterAsk {
    /// Creates a filter that swallows no keys yet.
    #[napi(constructor, catch_unwind)]
    #[allow(clippy::new_without_default, reason = "a constructor of JavaScript")]
    pub fn new() -> Self {
        Self { after: form::AfterAsk::default(), clock: Clock(Instant::now()) }
    }

    /// Reports that an ask has closed: by an answer, an interrupt or another client.
    #[napi(catch_unwind)]
    pub fn begin(&mut self, env: &Env, at: f64) -> napi::Result<()> {
        run_sync(env, || {
            self.after.begin(self.clock.instant(at)?);
            Ok(())
        })
    }

    /// Whether to ignore this key. Keys are named as in `AskForm.press`; `esc` and `ctrl+c` are
    /// never swallowed.
    #[napi(catch_unwind)]
    pub fn swallows(&mut self, env: &Env, key: String, at: f64) -> napi::Result<bool> {
        run_sync(env, || Ok(self.after.swallows(read_key(&key), self.clock.instant(at)?)))
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

/// Returns the only character of a text.
fn single(text: &str) -> Option<char> {
    let mut characters = text.chars();
    characters.next().filter(|_| characters.next().is_none())
}

/// The instant that counts as time 0 of the JavaScript clock. Any instant will do, because only
/// differences of times matter.
struct Clock(Instant);

impl Clock {
    fn instant(&self, milliseconds: f64) -> Result<Instant, Failure> {
        let elapsed = Duration::try_from_secs_f64(milliseconds / 1_000.0).ok();
        let instant = elapsed.and_then(|elapsed| self.0.checked_add(elapsed));
        instant.ok_or_else(|| {
            Failure::argument(format!("`at` must be a time in milliseconds, got {milliseconds}"))
        })
    }
}

fn pressed_json(pressed: &form::Pressed) -> Result<String, Failure> {
    let kind = match pressed {
        form::Pressed::Nothing => "nothing",
        form::Pressed::Typed => "typed",
        form::Pressed::ModeChanged => "turned",
        form::Pressed::Moved => "moved",
        form::Pressed::Interrupt => "interrupt",
        form::Pressed::Answer(answer) => {
            return to_json(&json!({ "type": "answer", "answer": answer }));
        }
    };
    to_json(&json!({ "type": kind }))
}

/// Converts a count for JavaScript. Texts and lists of questions are far shorter than the maximum.
fn to_u32(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}
