//! Reads the chunks of Gemini's `streamGenerateContent`.
//!
//! A chunk has candidates, of which only the first is read. Its content has parts: texts, thoughts
//! and whole calls. After `STOP` or `MAX_TOKENS`, an answer ends only with the body, because a
//! round of a hosted tool may give a finish reason before more content follows. Any other reason
//! except the default value ends it at once.

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::SIGNATURE_PREFIX;
use crate::model::provider::remote::{
    Arguments, Count, Counts, End, Finish, Lenient, Pieces, Reader, Text, WholeCalls, parse_object,
};
use crate::model::{ModelError, ModelEvent};

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Chunk {
    candidates: Option<Vec<Candidate>>,
    usage_metadata: Lenient<Usage>,
    prompt_feedback: Lenient<Feedback>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Candidate {
    content: Option<Content>,
    finish_reason: EnumName,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Content {
    parts: Option<Vec<Option<Part>>>,
}

/// A part of the content. Images and other kinds are not read.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Part {
    text: Text,
    thought: Lenient<bool>,
    thought_signature: Text,
    function_call: Option<FunctionCall>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct FunctionCall {
    id: Text,
    name: Text,
    args: Arguments,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Feedback {
    block_reason: EnumName,
    block_reason_message: Text,
}

impl Feedback {
    /// The error, if the prompt was blocked.
    fn into_error(self) -> Option<ModelError> {
        let reason = self.block_reason.0.filter(|reason| !is_unspecified(reason))?;
        let words = self
            .block_reason_message
            .filled()
            .map(|words| format!(": {words}"))
            .unwrap_or_default();
        Some(ModelError::Failed {
            message: format!("the provider blocked the prompt ({reason}){words}"),
        })
    }
}

/// The name of an enum's value, or its number if the server does not know the name.
#[derive(Debug, Default)]
struct EnumName(Option<String>);

impl<'de> Deserialize<'de> for EnumName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = <&RawValue>::deserialize(deserializer)?.get();
        match raw.as_bytes().first() {
            Some(b'"') => serde_json::from_str(raw).map(Self).map_err(serde::de::Error::custom),
            Some(b'0'..=b'9') => Ok(Self(Some(raw.to_owned()))),
            _ => Ok(Self(None)),
        }
    }
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Usage {
    prompt_token_count: Count,
    tool_use_prompt_token_count: Count,
    cached_content_token_count: Count,
    candidates_token_count: Count,
    thoughts_token_count: Count,
}

impl Usage {
    /// Converts the usage. Gemini leaves out counts of zero.
    fn counts(&self) -> Counts {
        let sum = |one: Count, other: Count| {
            Some(one.0.unwrap_or(0).saturating_add(other.0.unwrap_or(0)))
        };
        Counts {
            input: sum(self.prompt_token_count, self.tool_use_prompt_token_count),
            cached: self.cached_content_token_count.0,
            cache_written: None,
            output: sum(self.candidates_token_count, self.thoughts_token_count),
        }
    }
}

/// Reads the chunks of one answer.
#[derive(Debug, Default)]
pub(crate) struct Chunks {
    /// The newest finish reason. An earlier one belonged to a round of a hosted tool. The default
    /// value, which means that there is none yet, never replaces another.
    finish: Option<String>,
    counts: Counts,
    calls: WholeCalls,
    last_part: LastPart,
    /// The signature of the text that is still streaming, or one that preceded every part.
    signature: Option<String>,
}

/// The kind of the last part.
#[derive(Debug, Default, PartialEq, Eq)]
enum LastPart {
    #[default]
    Nothing,
    Text,
    ThoughtOrCall,
}

impl Reader for Chunks {
    fn read(&mut self, frame: &str, pieces: &mut Pieces) -> Result<Option<End>, ModelError> {
        let Some(chunk) = parse_object::<Chunk>(frame)? else { return Ok(None) };
        if let Some(usage) = chunk.usage_metadata.0 {
            self.counts = usage.counts();
        }
        if let Some(error) = chunk.prompt_feedback.0.and_then(Feedback::into_error) {
            return Err(error);
        }
        let Some(candidate) = chunk.candidates.and_then(|candidates| candidates.into_iter().next())
        else {
            return Ok(None);
        };
        let parts = candidate.content.and_then(|content| content.parts).unwrap_or_default();
        parts.into_iter().flatten().for_each(|part| self.read_part(part, pieces));
        let EnumName(Some(reason)) = candidate.finish_reason else { return Ok(None) };
        if is_unspecified(&reason) {
            // Counts only if no chunk has another reason.
            self.finish.get_or_insert(reason);
            return Ok(None);
        }
        let may_continue = matches!(finish(&reason), Finish::Stop | Finish::Limit);
        self.finish = Some(reason);
        Ok(if may_continue { None } else { self.close(pieces) })
    }

    fn close(&mut self, pieces: &mut Pieces) -> Option<End> {
        let reason = self.finish.take()?;
        report_signature(self.signature.take(), pieces);
        Some(End {
            finish: finish(&reason),
            counts: self.counts,
            lost_call: self.calls.has_lost_call(),
        })
    }
}

impl Chunks {
    /// Reads a part. The signature of a part with a call belongs to the call.
    fn read_part(&mut self, part: Part, pieces: &mut Pieces) {
        let Part { text, thought, thought_signature, function_call } = part;
        let (is_thought, signature) = (thought.0 == Some(true), thought_signature.filled());
        let Some(FunctionCall { id, name, args }) = function_call else {
            return self.read_text(text.0, is_thought, signature, pieces);
        };
        // Some gateways send a text, which may be empty, together with a call.
        self.read_text(text.0, is_thought, None, pieces);
        let signature = self.end_part(LastPart::ThoughtOrCall, signature, pieces);
        let signature = signature.map(|signature| format!("{SIGNATURE_PREFIX}{signature}"));
        self.calls.add(id.0, name.filled(), args.0, signature, pieces);
    }

    /// Reads the text or thought of a part. A thought has its signature with it. The signature of a
    /// text is reported after the whole text. A signature that arrives alone belongs to the part
    /// before it, or else to the first part, unless that has its own.
    fn read_text(
        &mut self,
        text: Option<String>,
        is_thought: bool,
        signature: Option<String>,
        pieces: &mut Pieces,
    ) {
        match text {
            Some(text) if text.is_empty() && signature.is_none() => {}
            Some(text) if is_thought => {
                let signature = self.end_part(LastPart::ThoughtOrCall, signature, pieces);
                pieces.add_thought(&text);
                report_signature(signature, pieces);
            }
            Some(text) => {
                if signature.is_some() || self.last_part != LastPart::Text {
                    self.signature = self.end_part(LastPart::Text, signature, pieces);
                }
                pieces.add_text(&text);
            }
            None if self.last_part == LastPart::ThoughtOrCall => {
                report_signature(signature, pieces)
            }
            None if signature.is_some() => {
                let previous = std::mem::replace(&mut self.signature, signature);
                report_signature(previous, pieces);
            }
            None => {}
        }
    }

    /// Ends the part before the next one, and returns the signature of the next one.
    fn end_part(
        &mut self,
        next: LastPart,
        signature: Option<String>,
        pieces: &mut Pieces,
    ) -> Option<String> {
        let pending = self.signature.take();
        let is_first = std::mem::replace(&mut self.last_part, next) == LastPart::Nothing;
        if is_first && signature.is_none() {
            return pending;
        }
        report_signature(pending, pieces);
        signature
    }
}

fn report_signature(signature: Option<String>, pieces: &mut Pieces) {
    if let Some(signature) = signature {
        pieces.add(ModelEvent::ThoughtSignature(format!("{SIGNATURE_PREFIX}{signature}")));
    }
}

/// Whether this is an enum's default value, which has no meaning.
fn is_unspecified(name: &str) -> bool {
    name.is_empty() || name.ends_with("_UNSPECIFIED")
}

/// The meaning of a finish reason. Reasons that are not listed are faults, such as a malformed call
/// or a recitation.
fn finish(reason: &str) -> Finish {
    match reason {
        "STOP" => Finish::Stop,
        "MAX_TOKENS" => Finish::Limit,
        "SAFETY"
        | "BLOCKLIST"
        | "PROHIBITED_CONTENT"
        | "SPII"
        | "IMAGE_SAFETY"
        | "IMAGE_PROHIBITED_CONTENT"
        | "MODEL_ARMOR" => Finish::Filtered(None),
        "" => Finish::Other(String::new()),
        _ => Finish::Fault(reason.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::provider::remote::try_reader::{
        call, ends, is_malformed, play, signature, text, thought,
    };

    const STOP: &str = r#"{"candidates":[{"finishReason":"STOP"}]}"#;

    /// A chunk with these parts.
    fn parts(parts: &str) -> String {
        format!(r#"{{"candidates":[{{"content":{{"parts":[{parts}],"role":"model"}}}}]}}"#)
    }

    /// Checks that these parts bring these events, in one chunk and in a chunk each.
    #[track_caller]
    fn brings(all: &[&str], expected: &[ModelEvent]) {
        ends::<Chunks>(&[&parts(&all.join(",")), STOP], expected, &Finish::Stop);
        let each: Vec<_> = all.iter().map(|part| parts(part)).collect();
        let each: Vec<_> = each.iter().map(String::as_str).chain([STOP]).collect();
        ends::<Chunks>(&each, expected, &Finish::Stop);
    }

    fn signed(name: &str, arguments: &str, signature: &str) -> ModelEvent {
        ModelEvent::Call {
            id: None,
            name: name.into(),
            arguments: arguments.into(),
            signature: Some(signature.into()),
        }
    }

    #[test]
    fn m_e6_parts_say_text_thoughts_and_calls() {
        for (all, expected) in [
            (vec![r#"{"text":"a"}"#, r#"{"text":""}"#, r#"{"text":"b"}"#], vec![text("ab")]),
            (
                vec![r#"{"text":"hm","thought":true}"#, r#"{"text":"a","thought":false}"#],
                vec![thought("hm"), text("a")],
            ),
            (
                vec![r#"{"functionCall":{"name":"a","args":{"x":1}}}"#],
                vec![call("a", r#"{"x":1}"#)],
            ),
            (
                vec![
                    r#"{"functionCall":{"name":"a"}}"#,
                    r#"{"functionCall":{"name":"a","args":null}}"#,
                ],
                vec![call("a", "{}"), call("a", "{}")],
            ),
            (
                vec![
                    r#"{"inlineData":{"mimeType":"image/png","data":"x"}}"#,
                    r#"{"executableCode":{}}"#,
                    "null",
                    "{}",
                ],
                vec![],
            ),
            (vec![r#"{"text":5}"#, r#"{"text":"a","invented":[1]}"#], vec![text("a")]),
        ] {
            brings(&all, &expected);
        }
    }

    #[test]
    fn m_e6_a_call_that_names_no_tool_is_lost_unless_it_is_empty_beside_another() {
        let lost = |frame: &str, expected: &[ModelEvent]| {
            ends::<Chunks>(&[frame, STOP], expected, &Finish::Stop).lost_call
        };
        let good = r#"{"functionCall":{"name":"a","args":{"x":1}}}"#;
        for empty in [
            r#"{"functionCall":{}}"#,
            r#"{"functionCall":{"args":{}}}"#,
            r#"{"functionCall":{"id":"","name":""}}"#,
        ] {
            assert!(lost(&parts(empty), &[]), "alone: {empty}");
            for both in [format!("{good},{empty}"), format!("{empty},{good}")] {
                assert!(!lost(&parts(&both), &[call("a", r#"{"x":1}"#)]), "{both}");
            }
        }
        for nameless in [
            r#"{"functionCall":{"args":{"x":1}}}"#,
            r#"{"functionCall":{"id":"p"}}"#,
            r#"{"functionCall":{},"thoughtSignature":"s"}"#,
        ] {
            assert!(
                lost(&parts(&format!("{good},{nameless}")), &[call("a", r#"{"x":1}"#)]),
                "{nameless}"
            );
        }
    }

    #[test]
    fn m_e6_signatures_stay_with_their_part() {
        let (think, say, go) = (
            r#"{"text":"hm","thought":true}"#,
            r#"{"text":"a"}"#,
            r#"{"functionCall":{"name":"a"}}"#,
        );
        let (alone, empty) =
            (r#"{"thoughtSignature":"s"}"#, r#"{"text":"","thoughtSignature":"s"}"#);
        let (s, t) = (signature("gemini:s"), signature("gemini:t"));
        for (all, expected) in [
            (
                vec![r#"{"text":"hm","thought":true,"thoughtSignature":"s"}"#, think],
                vec![thought("hm"), s.clone(), thought("hm")],
            ),
            (
                vec![think, r#"{"text":"","thought":true,"thoughtSignature":"s"}"#],
                vec![thought("hm"), s.clone()],
            ),
            (vec![think, alone, say], vec![thought("hm"), s.clone(), text("a")]),
            // The signature of a text follows the whole text.
            (
                vec![r#"{"text":"a","thoughtSignature":"s"}"#, say, go],
                vec![text("aa"), s.clone(), call("a", "{}")],
            ),
            (vec![say, alone, say], vec![text("aa"), s.clone()]),
            (
                vec![think, empty, say, go],
                vec![thought("hm"), text("a"), s.clone(), call("a", "{}")],
            ),
            (
                vec![
                    r#"{"text":"a","thoughtSignature":"s"}"#,
                    r#"{"text":"b","thoughtSignature":"t"}"#,
                ],
                vec![text("a"), s.clone(), text("b"), t.clone()],
            ),
            (
                vec![r#"{"text":"a","thoughtSignature":"s"}"#, think],
                vec![text("a"), s.clone(), thought("hm")],
            ),
            // The signature of a call is part of the call.
            (
                vec![r#"{"functionCall":{"name":"a"},"thoughtSignature":"s"}"#, go],
                vec![signed("a", "{}", "gemini:s"), call("a", "{}")],
            ),
            (vec![go, alone], vec![call("a", "{}"), s.clone()]),
            // The same with a text beside the call.
            (
                vec![r#"{"text":"","functionCall":{"name":"a"},"thoughtSignature":"s"}"#],
                vec![signed("a", "{}", "gemini:s")],
            ),
            (
                vec![
                    say,
                    r#"{"text":"b","functionCall":{"name":"a"},"thoughtSignature":"s"}"#,
                    r#"{"text":"hm","thought":true,"functionCall":{"name":"a"}}"#,
                ],
                vec![text("ab"), signed("a", "{}", "gemini:s"), thought("hm"), call("a", "{}")],
            ),
            // A signature that arrives first belongs to the next part.
            (vec![alone, go], vec![signed("a", "{}", "gemini:s")]),
            (vec![alone, think], vec![thought("hm"), s.clone()]),
            (vec![alone, say], vec![text("a"), s.clone()]),
            (
                vec![alone, r#"{"functionCall":{"name":"a"},"thoughtSignature":"t"}"#],
                vec![s.clone(), signed("a", "{}", "gemini:t")],
            ),
            (vec![alone, r#"{"thoughtSignature":"t"}"#], vec![s.clone(), t.clone()]),
            (vec![alone], vec![s.clone()]),
            (
                vec![
                    r#"{"text":"a","thoughtSignature":""}"#,
                    r#"{"text":"b","thoughtSignature":null}"#,
                ],
                vec![text("ab")],
            ),
        ] {
            brings(&all, &expected);
        }
    }

    #[test]
    fn m_e6_an_answer_ends_with_the_body_or_a_fault() {
        let a = parts(r#"{"text":"a"}"#);
        assert_eq!(play::<Chunks>(&[&a]), (vec![text("a")], Ok(None)), "cut");
        ends::<Chunks>(&[&a, STOP, &a], &[text("aa")], &Finish::Stop);
        for (reason, finish) in [
            ("\"MAX_TOKENS\"", Finish::Limit),
            ("\"SAFETY\"", Finish::Filtered(None)),
            ("\"\"", Finish::Other(String::new())),
            ("\"OTHER\"", Finish::Fault("OTHER".into())),
            ("17", Finish::Fault("17".into())),
        ] {
            let last = format!(r#"{{"candidates":[{{"finishReason":{reason}}}]}}"#);
            ends::<Chunks>(&[&a, &last], &[text("a")], &finish);
        }
        // The reason of a round is not that of the answer.
        ends::<Chunks>(
            &[STOP, &a, r#"{"candidates":[{"finishReason":"MAX_TOKENS"}]}"#],
            &[text("a")],
            &Finish::Limit,
        );
        for no_reason in ["null", "\"\"", "\"FINISH_REASON_UNSPECIFIED\""] {
            let chunk = format!(r#"{{"candidates":[{{"finishReason":{no_reason}}}]}}"#);
            ends::<Chunks>(&[&chunk, &a, STOP, &chunk], &[text("a")], &Finish::Stop);
        }
    }

    #[test]
    fn m_e6_a_blocked_prompt_says_why() {
        for (feedback, words) in [
            (r#"{"blockReason":"SAFETY","safetyRatings":[]}"#, Some("SAFETY")),
            (r#"{"blockReason":9,"blockReasonMessage":"because"}"#, Some("(9): because")),
            (r#"{"blockReason":"BLOCK_REASON_UNSPECIFIED"}"#, None),
            (r#"{"blockReason":null}"#, None),
            ("null", None),
        ] {
            let frame = format!(r#"{{"promptFeedback":{feedback}}}"#);
            match (play::<Chunks>(&[&frame, STOP]).1, words) {
                (Err(ModelError::Failed { message }), Some(words)) => {
                    assert!(message.contains(words), "{message}")
                }
                (end, words) => assert!(words.is_none() && end.is_ok(), "{feedback}: {end:?}"),
            }
        }
    }

    #[test]
    fn m_e6_empty_events_are_ignored_and_broken_ones_are_errors() {
        for nothing in [
            "{}",
            "5",
            r#"{"responseId":"x"}"#,
            r#"{"candidates":null}"#,
            r#"{"candidates":[]}"#,
            r#"{"candidates":[{"content":null}]}"#,
            r#"{"candidates":[{"content":{"parts":null}}]}"#,
        ] {
            ends::<Chunks>(&[nothing, STOP], &[], &Finish::Stop);
        }
        for broken in [
            "{",
            r#"{"candidates":5}"#,
            r#"{"candidates":["x"]}"#,
            r#"{"candidates":[{"content":"x"}]}"#,
            r#"{"candidates":[{"content":{"parts":"x"}}]}"#,
            r#"{"candidates":[{"content":{"parts":[{"text":"\ud800"}]}}]}"#,
        ] {
            is_malformed::<Chunks>(&[broken], "");
        }
    }

    #[test]
    fn m_e6_usage_is_the_latest() {
        let one = r#"{"usageMetadata":{"promptTokenCount":5}}"#;
        let all = r#"{"usageMetadata":{"promptTokenCount":5,"toolUsePromptTokenCount":1,"cachedContentTokenCount":2,"candidatesTokenCount":3,"thoughtsTokenCount":4}}"#;
        let counted = |frames: &[&str]| ends::<Chunks>(frames, &[], &Finish::Stop).counts;
        let expected =
            Counts { input: Some(6), cached: Some(2), cache_written: None, output: Some(7) };
        assert_eq!(counted(&[one, STOP, all]), expected);
        assert_eq!(counted(&[one, all, STOP, r#"{"usageMetadata":null}"#]), expected);
        assert_eq!(counted(&[STOP]), Counts::default());
        // Counts of zero are left out.
        assert_eq!(
            counted(&[one, STOP]),
            Counts { input: Some(5), output: Some(0), ..Counts::default() }
        );
    }
}
