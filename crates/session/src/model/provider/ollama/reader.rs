//! Reads the records of Ollama's chat: one JSON value per line, the last of which is `done`.

use serde::Deserialize;

use super::think::ThinkTagParser;
use crate::model::ModelError;
use crate::model::provider::remote::{
    Arguments, Count, Counts, End, Finish, Lenient, Pieces, Reader, Text, WholeCalls, is_fault,
    parse_object,
};

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Record {
    message: Option<Message>,
    done: Lenient<bool>,
    done_reason: Text,
    prompt_eval_count: Count,
    prompt_eval_cached_count: Count,
    eval_count: Count,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Message {
    thinking: Text,
    content: Text,
    tool_calls: Option<Vec<Call>>,
}

/// A call, which is always whole.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Call {
    id: Text,
    function: Option<Function>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Function {
    name: Text,
    arguments: Arguments,
}

/// Reads the records of one answer.
#[derive(Debug, Default)]
pub(crate) struct Records {
    think_tags: ThinkTagParser,
    calls: WholeCalls,
}

impl Reader for Records {
    fn read(&mut self, frame: &str, pieces: &mut Pieces) -> Result<Option<End>, ModelError> {
        let Some(record) = parse_object::<Record>(frame)? else { return Ok(None) };
        self.read_message(record.message.unwrap_or_default(), pieces);
        if record.done.0 != Some(true) {
            return Ok(None);
        }
        self.think_tags.end(pieces);
        let counts = Counts {
            input: record.prompt_eval_count.0,
            cached: record.prompt_eval_cached_count.0,
            cache_written: None,
            output: record.eval_count.0,
        };
        let finish = record.done_reason.0.map_or(Finish::Stop, finish);
        Ok(Some(End { finish, counts, lost_call: self.calls.has_lost_call() }))
    }
}

impl Records {
    fn read_message(&mut self, message: Message, pieces: &mut Pieces) {
        if let Some(thought) = message.thinking.filled() {
            // A model that sends its thoughts separately has none in its text.
            self.think_tags.end(pieces);
            pieces.add_thought(&thought);
        }
        if let Some(content) = message.content.filled() {
            self.think_tags.add(&content, pieces);
        }
        for call in message.tool_calls.unwrap_or_default() {
            let Call { id, function } = call;
            let Function { name, arguments } = function.unwrap_or_default();
            self.think_tags.end(pieces);
            self.calls.add(id.0, name.filled(), arguments.0, None, pieces);
        }
    }
}

/// The meaning of a done reason.
fn finish(reason: String) -> Finish {
    match reason.as_str() {
        "stop" => Finish::Stop,
        "length" => Finish::Limit,
        other if is_fault(other) => Finish::Fault(reason),
        _ => Finish::Other(reason),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ModelEvent;
    use crate::model::provider::remote::try_reader::{
        call, ends, is_malformed, play, text, thought,
    };

    const DONE: &str = r#"{"done":true,"done_reason":"stop"}"#;

    fn record(message: &str) -> String {
        format!(r#"{{"message":{message},"done":false}}"#)
    }

    fn says(content: &str) -> String {
        record(&serde_json::json!({ "content": content }).to_string())
    }

    #[track_caller]
    fn brings(records: &[String], expected: &[ModelEvent]) {
        let frames: Vec<_> = records.iter().map(String::as_str).chain([DONE]).collect();
        ends::<Records>(&frames, expected, &Finish::Stop);
    }

    /// White space is scanned once, however small the pieces are.
    #[test]
    fn long_white_space_around_tags_is_read_in_linear_time() {
        let (mut parser, mut pieces) = (ThinkTagParser::default(), Pieces::default());
        let blank = " ".repeat(4 * 1024 * 1024);
        let mut add = |content: &str| {
            parser.add(content, &mut pieces);
            pieces.pop()
        };
        for (next, event) in [
            ("<think>", None),
            ("a", Some(thought("a"))),
            ("</think>", None),
            ("b", Some(text("b"))),
        ] {
            assert_eq!(add(&blank), None);
            (0..200_000).for_each(|_| assert_eq!(add(" "), None));
            assert_eq!(add(next), event);
        }
    }

    #[test]
    fn m_e6_thoughts_between_tags_are_split_off_wherever_the_text_is_cut() {
        for (content, expected) in [
            ("<think>hm</think>a", vec![thought("hm"), text("a")]),
            (" \n<think>\n h m \n</think>\n\na b", vec![thought("h m"), text("a b")]),
            ("<think></think>a", vec![text("a")]),
            ("<think>never closed ", vec![thought("never closed")]),
            ("<think>a </thin b</think>", vec![thought("a </thin b")]),
            ("a <think>b</think>", vec![text("a <think>b</think>")]),
            ("<thinking>a", vec![text("<thinking>a")]),
            (" <thi", vec![text(" <thi")]),
            ("<think>hm</think>a<think>b</think>", vec![thought("hm"), text("a<think>b</think>")]),
        ] {
            brings(&[says(content)], &expected);
            let each: Vec<_> = content.chars().map(|char| says(&char.to_string())).collect();
            brings(&each, &expected);
        }
        // Only text that may begin a tag is held back.
        let (mut records, mut pieces) = (Records::default(), Pieces::default());
        records.read(&says("<think>hm </th"), &mut pieces).unwrap();
        assert_eq!(pieces.pop(), Some(thought("hm")));
    }

    #[test]
    fn m_e6_tags_in_text_stay_if_thoughts_have_their_own_field() {
        let native = record(r#"{"thinking":"hm","content":""}"#);
        brings(
            &[native.clone(), says("<think>a</think>")],
            &[thought("hm"), text("<think>a</think>")],
        );
        brings(&[says("<th"), native], &[text("<th"), thought("hm")]);
    }

    #[test]
    fn m_e6_calls_come_whole() {
        for (function, arguments) in [
            (r#"{"name":"a","arguments":{"x":1}}"#, r#"{"x":1}"#),
            (r#"{"name":"a","arguments":"{\"x\":1}"}"#, r#"{"x":1}"#),
            (r#"{"name":"a","arguments":null}"#, "{}"),
            (r#"{"name":"a"}"#, "{}"),
            (r#"{"name":"a","arguments":[]}"#, "[]"),
        ] {
            let calls = record(&format!(
                r#"{{"tool_calls":[{{"function":{function}}},{{"function":{function}}}]}}"#
            ));
            brings(&[says("<t"), calls], &[text("<t"), call("a", arguments), call("a", arguments)]);
        }
    }

    #[test]
    fn m_e6_a_call_that_names_no_tool_is_lost_unless_it_is_empty_beside_another() {
        let calls = |calls: &str| record(&format!(r#"{{"tool_calls":[{calls}]}}"#));
        let lost = |frame: &str, expected: &[ModelEvent]| {
            ends::<Records>(&[frame, DONE], expected, &Finish::Stop).lost_call
        };
        let good = r#"{"function":{"name":"a","arguments":{"x":1}}}"#;
        for empty in [
            r#"{"function":{"name":"","arguments":{}}}"#,
            r#"{"id":"","function":{"arguments":null}}"#,
            r#"{"function":null}"#,
            "{}",
        ] {
            assert!(lost(&calls(empty), &[]), "alone: {empty}");
            for both in [format!("{good},{empty}"), format!("{empty},{good}")] {
                assert!(!lost(&calls(&both), &[call("a", r#"{"x":1}"#)]), "{both}");
            }
        }
        for nameless in [r#"{"function":{"arguments":{"x":1}}}"#, r#"{"id":"p"}"#] {
            assert!(
                lost(&calls(&format!("{good},{nameless}")), &[call("a", r#"{"x":1}"#)]),
                "{nameless}"
            );
        }
    }

    #[test]
    fn m_e6_the_end_is_the_record_that_is_done() {
        let a = says("a");
        assert_eq!(play::<Records>(&[&a]), (vec![text("a")], Ok(None)), "cut");
        ends::<Records>(&[&a, r#"{"done":true}"#, "not read"], &[text("a")], &Finish::Stop);
        for (reason, finish) in [
            ("length", Finish::Limit),
            ("load", Finish::Other("load".into())),
            ("error", Finish::Fault("error".into())),
        ] {
            ends::<Records>(
                &[&a, &format!(r#"{{"done":true,"done_reason":"{reason}"}}"#)],
                &[text("a")],
                &finish,
            );
        }
        let counted =
            r#"{"done":true,"prompt_eval_count":5,"prompt_eval_cached_count":2,"eval_count":3}"#;
        let counts =
            Counts { input: Some(5), cached: Some(2), cache_written: None, output: Some(3) };
        assert_eq!(ends::<Records>(&[counted], &[], &Finish::Stop).counts, counts);
    }

    #[test]
    fn m_e6_empty_events_are_ignored_and_broken_ones_are_errors() {
        for nothing in [
            "{}",
            "5",
            r#"{"status":"loading"}"#,
            r#"{"message":null}"#,
            r#"{"message":{"content":5}}"#,
        ] {
            brings(&[nothing.to_owned()], &[]);
        }
        for broken in [
            "{",
            "Internal Server Error",
            r#"{"message":{"content":"\ud800"}}"#,
            r#"{"message":5}"#,
        ] {
            is_malformed::<Records>(&[broken], "");
        }
    }
}
