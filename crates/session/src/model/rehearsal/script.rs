//! The script language of `rehearsal`, and its parser.

use std::fmt;
use std::time::Duration;

use serde_json::Value;
use thiserror::Error;

/// The most pieces a `flood` may have.
pub const MAX_FLOOD: u64 = 100_000_000;
/// The most bytes a piece of a `flood` may have.
pub const MAX_PIECE: usize = 64 * 1024;
/// The highest rate, in words per second.
pub const MAX_RATE: u32 = 1_000_000;
/// The longest time that `wait` accepts.
pub const MAX_WAIT: Duration = Duration::from_secs(24 * 60 * 60);

/// A script: the instructions of every step.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Script {
    /// The instructions of each step, in order. No step is empty.
    pub steps: Vec<Vec<Instruction>>,
}

/// One instruction of a script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Instruction {
    /// Say a text, at once or word by word.
    Say {
        /// The rate in words per second; `None` means at once.
        rate: Option<u32>,
        /// The text to say.
        text: String,
    },
    /// Report a text as a thought, at once or word by word.
    Think {
        /// The rate in words per second; `None` means at once.
        rate: Option<u32>,
        /// The text to think.
        text: String,
    },
    /// Call a tool with arguments.
    Call {
        /// The name of the tool.
        tool: String,
        /// The arguments: a JSON object as it was written.
        arguments: String,
    },
    /// Be silent for a while.
    Wait(Duration),
    /// End the answer with an error.
    Fail(String),
    /// Say many pieces, as fast as they are read.
    Flood {
        /// The number of pieces.
        pieces: u64,
        /// The size of each piece in bytes.
        bytes: usize,
    },
    /// Be silent for ever.
    Hang,
}

/// A mistake in a script.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("line {line}: {message}")]
pub struct ScriptError {
    /// The number of the line, counted from 1.
    pub line: usize,
    /// A description of the mistake.
    pub message: String,
}

impl Script {
    /// Parses a script. Returns `None` if the text is not a script, because its first word is not
    /// an instruction.
    ///
    /// # Errors
    /// [`ScriptError`] with the first line that can't be parsed.
    pub fn parse(text: &str) -> Result<Option<Self>, ScriptError> {
        Self::parse_lines(text, false)
    }

    /// Parses a text that is marked as a script. The script may be empty.
    ///
    /// # Errors
    /// [`ScriptError`] with the first line that can't be parsed.
    pub fn parse_marked(text: &str) -> Result<Self, ScriptError> {
        Ok(Self::parse_lines(text, true)?.unwrap_or_default())
    }

    fn parse_lines(text: &str, marked: bool) -> Result<Option<Self>, ScriptError> {
        let mut script = Self::default();
        let mut step: Vec<Instruction> = Vec::new();
        let mut has_instruction = false;
        let mut rest = text;
        while !rest.is_empty() {
            let start = rest;
            let (line, after) = rest.split_once('\n').unwrap_or((rest, ""));
            rest = after;
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let before = &text[..text.len() - start.len()];
            let fail =
                |message: String| ScriptError { line: 1 + before.matches('\n').count(), message };
            let parsed = match ScriptLine::parse(line) {
                Some(parsed) => parsed,
                None if !has_instruction && !marked => return Ok(None),
                None => return Err(fail(format!("`{}` is not an instruction", first_word(line)))),
            };
            has_instruction = true;
            let instruction = match parsed {
                ScriptLine::EndOfStep => {
                    script.end_step(&mut step);
                    continue;
                }
                ScriptLine::Call(words) => {
                    let (call, after_call) = parse_call(words, start).map_err(fail)?;
                    rest = after_call;
                    call
                }
                ScriptLine::Other { keyword, rate, words } => {
                    parse_other(keyword, rate, words).map_err(fail)?
                }
            };
            // Calls end a step, unless another call follows.
            let is_call =
                |instruction: &Instruction| matches!(instruction, Instruction::Call { .. });
            if step.last().is_some_and(is_call) && !is_call(&instruction) {
                script.end_step(&mut step);
            }
            step.push(instruction);
        }
        script.end_step(&mut step);
        Ok(has_instruction.then_some(script))
    }

    fn end_step(&mut self, step: &mut Vec<Instruction>) {
        if !step.is_empty() {
            self.steps.push(std::mem::take(step));
        }
    }
}

/// A line that begins with an instruction.
enum ScriptLine<'a> {
    EndOfStep,
    Call(&'a str),
    Other { keyword: &'a str, rate: Option<&'a str>, words: &'a str },
}

impl<'a> ScriptLine<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        if line == "---" {
            return Some(Self::EndOfStep);
        }
        if let Some(command) = line.strip_prefix("shell:") {
            return Some(Self::Other { keyword: "shell:", rate: None, words: command.trim() });
        }
        if let Some(question) = line.strip_prefix("ask:") {
            return Some(Self::Other { keyword: "ask:", rate: None, words: question.trim() });
        }
        let first = first_word(line);
        let words = line[first.len()..].trim();
        match first.split_once('@') {
            Some((keyword @ ("say" | "think"), rate)) => {
                Some(Self::Other { keyword, rate: Some(rate), words })
            }
            Some(_) => None,
            None => match first {
                "call" => Some(Self::Call(words)),
                "say" | "think" | "wait" | "fail" | "flood" | "hang" => {
                    Some(Self::Other { keyword: first, rate: None, words })
                }
                _ => None,
            },
        }
    }
}

fn first_word(line: &str) -> &str {
    line.split_whitespace().next().unwrap_or_default()
}

/// Parses a `call`. `words` is the rest of the line; `text` is everything from the beginning of the
/// line, because the arguments may span several lines. Returns the call and the lines after it.
fn parse_call<'a>(words: &str, text: &'a str) -> Result<(Instruction, &'a str), String> {
    let tool = first_word(words);
    if tool.is_empty() {
        return Err("`call` needs a tool (call TOOL {\"argument\": …})".into());
    }
    // The position after `call` and the tool's name in `text`.
    let at = text.find("call").map_or(0, |at| at + "call".len());
    let at = at + text[at..].find(tool).map_or(0, |at| at + tool.len());
    let (line, after) = text[at..].split_once('\n').unwrap_or((&text[at..], ""));
    if line.trim().is_empty() {
        return Ok((
            Instruction::Call { tool: tool.to_owned(), arguments: "{}".to_owned() },
            after,
        ));
    }
    let arguments = text[at..].trim_start();
    let mut values = serde_json::Deserializer::from_str(arguments).into_iter::<Value>();
    let written = match values.next() {
        Some(Ok(Value::Object(_))) => &arguments[..values.byte_offset()],
        Some(Ok(_)) => return Err(format!("the arguments of `{tool}` are not a JSON object")),
        Some(Err(error)) => return Err(format!("the arguments of `{tool}` are not JSON: {error}")),
        None => return Err(format!("`{tool}` has no arguments")),
    };
    let (stray, after) =
        arguments[written.len()..].split_once('\n').unwrap_or((&arguments[written.len()..], ""));
    if !stray.trim().is_empty() {
        return Err(format!("unexpected `{}` after the arguments of `{tool}`", stray.trim()));
    }
    Ok((Instruction::Call { tool: tool.to_owned(), arguments: written.to_owned() }, after))
}

fn parse_other(keyword: &str, rate: Option<&str>, words: &str) -> Result<Instruction, String> {
    let rate = rate.map(|rate| {
        let number = rate.parse().ok().filter(|rate| (1..=MAX_RATE).contains(rate));
        number.ok_or_else(|| format!("`{rate}` is not a rate (1 to {MAX_RATE} words per second)"))
    });
    let rate = rate.transpose()?;
    match keyword {
        "shell:" if words.is_empty() => Err("`shell:` needs a command (shell: COMMAND)".into()),
        "shell:" => {
            let arguments = serde_json::json!({ "command": words }).to_string();
            Ok(Instruction::Call { tool: "shell".into(), arguments })
        }
        "ask:" if words.is_empty() => Err("`ask:` needs a question (ask: QUESTION)".into()),
        "ask:" => {
            let arguments = serde_json::json!({ "question": unescape(words) }).to_string();
            Ok(Instruction::Call { tool: "ask_user".into(), arguments })
        }
        "say" => Ok(Instruction::Say { rate, text: unescape(words) }),
        "think" => Ok(Instruction::Think { rate, text: unescape(words) }),
        "fail" | "wait" | "flood" if words.is_empty() => Err(match keyword {
            "fail" => "`fail` needs the text of an error".to_owned(),
            "wait" => "`wait` needs a time (500ms, 2s; at most a day)".to_owned(),
            _ => format!(
                "`flood` needs a number of pieces (flood PIECES [BYTES]; at most {MAX_FLOOD})"
            ),
        }),
        "fail" => Ok(Instruction::Fail(unescape(words))),
        "wait" => parse_wait(words),
        "flood" => parse_flood(words),
        _ if words.is_empty() => Ok(Instruction::Hang),
        _ => Err("`hang` accepts no arguments".into()),
    }
}

fn parse_wait(words: &str) -> Result<Instruction, String> {
    let digits = words.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let number: Option<u64> = digits.parse().ok();
    let wait = match (number, &words[digits.len()..]) {
        (Some(number), "ms") => Some(Duration::from_millis(number)),
        (Some(number), "s") => Some(Duration::from_secs(number)),
        _ => None,
    };
    wait.filter(|wait| *wait <= MAX_WAIT)
        .map(Instruction::Wait)
        .ok_or_else(|| format!("`{words}` is not a time to wait (500ms, 2s; at most a day)"))
}

/// Parses the arguments of a `flood`. Without a size, its pieces have 4 bytes.
fn parse_flood(words: &str) -> Result<Instruction, String> {
    let mut numbers = words.split_whitespace();
    let pieces =
        numbers.next().and_then(|number| number.parse().ok()).filter(|number| *number <= MAX_FLOOD);
    let bytes = numbers
        .next()
        .map_or(Some(4), |number| number.parse().ok())
        .filter(|n| (1..=MAX_PIECE).contains(n));
    match (pieces, bytes, numbers.next()) {
        (Some(pieces), Some(bytes), None) => Ok(Instruction::Flood { pieces, bytes }),
        _ => Err(format!(
            "`{words}` is not a flood (flood PIECES [BYTES]; at most {MAX_FLOOD} pieces of {MAX_PIECE} bytes)"
        )),
    }
}

/// Replaces `\n`, `\t` and `\\`; any other backslash is kept.
fn unescape(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let escaped = match (c, chars.peek()) {
            ('\\', Some('n')) => Some('\n'),
            ('\\', Some('t')) => Some('\t'),
            ('\\', Some('\\')) => Some('\\'),
            _ => None,
        };
        if escaped.is_some() {
            chars.next();
        }
        plain.push(escaped.unwrap_or(c));
    }
    plain
}

fn escape(text: &str) -> String {
    text.replace('\\', "\\\\").replace('\n', "\\n").replace('\t', "\\t")
}

impl fmt::Display for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, step) in self.steps.iter().enumerate() {
            if n > 0 {
                f.write_str("---\n")?;
            }
            for instruction in step {
                writeln!(f, "{instruction}")?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for Instruction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut paced = |word: &str, rate: &Option<u32>, text: &str| match rate {
            Some(rate) => write!(f, "{word}@{rate} {}", escape(text)),
            None => write!(f, "{word} {}", escape(text)),
        };
        match self {
            Self::Say { rate, text } => paced("say", rate, text),
            Self::Think { rate, text } => paced("think", rate, text),
            Self::Call { tool, arguments } => write!(f, "call {tool} {arguments}"),
            Self::Wait(wait) => write!(f, "wait {}ms", wait.as_millis()),
            Self::Fail(text) => write!(f, "fail {}", escape(text)),
            Self::Flood { pieces, bytes } => write!(f, "flood {pieces} {bytes}"),
            Self::Hang => f.write_str("hang"),
        }
    }
}

#[cfg(test)]
mod tests {
    use holdpoint_tools::testing::rounds;
    use proptest::prelude::*;

    use super::*;

    fn script(text: &str) -> Script {
        Script::parse(text).unwrap().unwrap()
    }

    fn call(tool: &str, arguments: &str) -> Instruction {
        Instruction::Call { tool: tool.into(), arguments: arguments.into() }
    }

    #[test]
    fn calls_that_follow_each_other_are_one_step() {
        let script = script(
            "say a\ncall x\n# and\n\ncall y {\"k\":\n  \"}\"}\nshell: echo \"hi\"\nask: A?\\nB?\nsay b\n---\nhang",
        );
        assert_eq!(
            script.steps,
            [
                vec![
                    Instruction::Say { rate: None, text: "a".into() },
                    call("x", "{}"),
                    call("y", "{\"k\":\n  \"}\"}"),
                    call("shell", r#"{"command":"echo \"hi\""}"#),
                    call("ask_user", r#"{"question":"A?\nB?"}"#),
                ],
                vec![Instruction::Say { rate: None, text: "b".into() }],
                vec![Instruction::Hang],
            ]
        );
    }

    #[test]
    fn other_text_is_not_a_script() {
        for text in [
            "",
            "\n# only a remark",
            "Fix the tests.",
            "Say hello",
            "wait, what?",
            "callx",
            "say@",
            "---x",
        ] {
            match Script::parse(text) {
                Ok(None) => {}
                Err(error) if text == "say@" => assert!(error.message.contains("rate")),
                other => panic!("{text:?}: {other:?}"),
            }
        }
    }

    #[test]
    fn a_marked_script_has_only_instructions() {
        assert_eq!(Script::parse_marked("\n# only a remark"), Ok(Script::default()));
        let error = Script::parse_marked("Fix the tests.").unwrap_err().to_string();
        assert_eq!(error, "line 1: `Fix` is not an instruction");
    }

    #[test]
    fn an_error_names_its_line() {
        let error = |text: &str| Script::parse(text).unwrap_err().to_string();
        assert_eq!(error("say a\n\nsya b"), "line 3: `sya` is not an instruction");
        assert!(
            error("say a\ncall x {\"a\":\n}")
                .starts_with("line 2: the arguments of `x` are not JSON: ")
        );
        assert_eq!(error("call x {\n} y"), "line 1: unexpected `y` after the arguments of `x`");
        assert_eq!(error("call x [1]"), "line 1: the arguments of `x` are not a JSON object");
        assert!(error("wait 2h").contains("`2h` is not a time to wait"));
        assert!(error("flood 1 2 3").contains("not a flood"));
        assert!(error("say@0 x").contains("not a rate"));
        assert!(error("call").contains("needs a tool"));
        assert!(error("hang on").contains("accepts no arguments"));
        assert!(error("ask:").contains("needs a question"));
        assert!(error("fail").contains("needs the text"));
        assert!(error("wait").contains("needs a time"));
        assert!(error("flood").contains("needs a number"));
    }

    fn instruction() -> impl Strategy<Value = Instruction> {
        let rate = || proptest::option::of(1..=MAX_RATE);
        let text = || {
            "[^\r]*"
                .prop_map(|text| text.trim().to_owned())
                .prop_filter("no strange ends", |text| unescape(escape(text).trim()) == *text)
        };
        let arguments = proptest::collection::btree_map(".*", ".*", 0..3);
        prop_oneof![
            (rate(), text()).prop_map(|(rate, text)| Instruction::Say { rate, text }),
            (rate(), text()).prop_map(|(rate, text)| Instruction::Think { rate, text }),
            ("[a-z_]{1,9}", arguments).prop_map(|(tool, arguments)| Instruction::Call {
                tool,
                arguments: serde_json::to_string_pretty(&arguments).unwrap()
            }),
            (0..=MAX_WAIT.as_secs()).prop_map(|s| Instruction::Wait(Duration::from_secs(s))),
            text()
                .prop_filter("a failure has a text", |text| !text.is_empty())
                .prop_map(Instruction::Fail),
            (0..=MAX_FLOOD, 1..=MAX_PIECE)
                .prop_map(|(pieces, bytes)| Instruction::Flood { pieces, bytes }),
            Just(Instruction::Hang),
        ]
    }

    fn cases() -> u32 {
        rounds(300, 100_000)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(cases()))]

        #[test]
        fn any_text_is_none_or_an_error_with_its_line_or_a_script_that_reads_as_it_is_written(
            first in "(say|say@2|think|call x|wait 2s|flood 1|hang|shell: a|ask: b|---|#|)",
            text in "((\nsay|\nthink|\ncall|\nwait|\nflood|\nhang|shell:|ask:|\n---\n|#|@|\\{|\\}|\"|\\\\|é|\u{a0}|[ \t\n\r]|[a-z0-9:]){0,4}){0,20}"
        ) {
            let text = first + &text;
            match Script::parse(&text) {
                Ok(None) => {}
                Ok(Some(script)) if script.steps.is_empty() => {}
                Ok(Some(script)) => {
                    prop_assert!(script.steps.iter().all(|step| !step.is_empty()));
                    prop_assert_eq!(Script::parse(&script.to_string()), Ok(Some(script)));
                }
                Err(error) => {
                    prop_assert!((1..=text.split('\n').count()).contains(&error.line), "{:?}", error);
                    prop_assert!(!error.message.is_empty());
                }
            }
        }

        #[test]
        fn a_script_reads_as_it_is_written(steps in proptest::collection::vec(
            proptest::collection::vec(instruction(), 1..4), 1..4)) {
            let call = |instruction: &Instruction| matches!(instruction, Instruction::Call { .. });
            let steps: Vec<_> = steps.into_iter().map(|mut step| {
                // Within a step, calls are last.
                step.sort_by_key(call);
                step
            }).collect();
            let script = Script { steps };
            prop_assert_eq!(Script::parse(&script.to_string()), Ok(Some(script)));
        }
    }
}
