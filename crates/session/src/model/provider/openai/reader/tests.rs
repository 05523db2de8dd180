//! Tests that read every form of the chunks of a chat completion.

use super::*;
use crate::model::ModelEvent;
use crate::model::provider::remote::try_reader::{
    call, ends, is_malformed, play, signature, text, thought,
};

const STOP: &str = r#"{"choices":[{"delta":{},"finish_reason":"stop"}]}"#;

/// A chunk with this delta.
fn delta(delta: &str) -> String {
    format!(r#"{{"choices":[{{"index":0,"delta":{delta}}}]}}"#)
}

#[test]
fn m_e6_a_delta_says_text_and_thoughts_in_every_form() {
    for (json, events) in [
        (r#"{"content":"a"}"#, vec![text("a")]),
        (r#"{"role":"assistant","content":null}"#, vec![]),
        (r#"{"content":"","refusal":"no"}"#, vec![text("no")]),
        (r#"{"content":"a","refusal":null}"#, vec![text("a")]),
        (
            r#"{"reasoning":"r","content":"","refusal":"no"}"#,
            vec![thought("r"), signature("openai:reasoning"), text("no")],
        ),
        (
            r#"{"reasoning":"r","content":[],"refusal":"no"}"#,
            vec![thought("r"), signature("openai:reasoning"), text("no")],
        ),
        (
            r#"{"reasoning_content":"","reasoning":"r","content":"a"}"#,
            vec![thought("r"), signature("openai:reasoning"), text("a")],
        ),
        (
            r#"{"reasoning_content":"r","reasoning":"r"}"#,
            vec![thought("r"), signature("openai:reasoning_content")],
        ),
        (r#"{"reasoning_text":"r"}"#, vec![thought("r"), signature("openai:reasoning_text")]),
        (
            r#"{"content":[{"type":"text","text":"a"},{"text":"b"},{"type":"refusal","refusal":"c"}]}"#,
            vec![text("abc")],
        ),
        (r#"{"content":{"type":"text","text":"a"}}"#, vec![text("a")]),
        (
            r#"{"content":[{"type":"thinking","thinking":[{"type":"text","text":"r"}]},{"type":"text","text":"a"}]}"#,
            vec![thought("r"), text("a")],
        ),
        (r#"{"content":[{"type":"thinking","thinking":"r"}]}"#, vec![thought("r")]),
        (r#"{"content":[{"type":"image_url","image_url":{"url":"data:x"}}]}"#, vec![]),
        (r#"{"tool_calls":null,"content":"a","invented":{"x":[1]}}"#, vec![text("a")]),
        ("null", vec![]),
    ] {
        ends::<Chunks>(&[&delta(json), STOP], &events, &Finish::Stop);
    }
}

#[test]
fn m_e6_details_of_thoughts_are_joined_and_kept() {
    let details = |details: &str| delta(&format!(r#"{{"reasoning_details":{details}}}"#));
    let kept = |kept: &str| signature(&format!("openai-details:{kept}"));
    let readable = details(r#"[{"type":"reasoning.text","index":0,"text":"a","signature":null}]"#);
    let more = details(r#"[{"type":"reasoning.text","index":0,"text":"b"}]"#);
    let signed = details(r#"[{"type":"reasoning.text","index":0,"signature":"s"}]"#);
    let joined = r#"[{"type":"reasoning.text","index":0,"text":"ab","signature":"s"}]"#;
    ends::<Chunks>(
        &[&readable, &more, &signed, STOP],
        &[thought("ab"), kept(joined)],
        &Finish::Stop,
    );
    // Encrypted details are whole, and so are readable ones at other positions.
    for whole in [
        r#"[{"type":"reasoning.encrypted","data":"x"},{"type":"reasoning.encrypted","data":"y"}]"#,
        r#"[{"type":"reasoning.summary","index":0,"summary":""},{"type":"reasoning.summary","index":1,"summary":""}]"#,
    ] {
        ends::<Chunks>(&[&details(whole), STOP], &[kept(whole)], &Finish::Stop);
    }
    // The same thoughts in two forms are shown once.
    let both = delta(
        r#"{"reasoning":"r","reasoning_details":[{"type":"reasoning.text","text":"r"}],"content":"t"}"#,
    );
    let all = [
        thought("r"),
        signature("openai:reasoning"),
        text("t"),
        kept(r#"[{"type":"reasoning.text","text":"r"}]"#),
    ];
    ends::<Chunks>(&[&both, STOP], &all, &Finish::Stop);
    ends::<Chunks>(&[&details(r#"["text"]"#), &details("5"), STOP], &[], &Finish::Stop);
}

#[test]
fn m_e6_fragments_find_their_call() {
    let all = [call("a", r#"{"x":1}"#), call("b", r#"{"y":2}"#)];
    for fragments in [
        // By index, interleaved.
        vec![
            r#"[{"index":0,"id":"p","function":{"name":"a","arguments":""}},{"index":1,"id":"q","function":{"name":"b","arguments":""}}]"#,
            r#"[{"index":0,"function":{"arguments":"{\"x\""}},{"index":1,"function":{"arguments":"{\"y\":"}}]"#,
            r#"[{"index":1,"function":{"arguments":"2}"}},{"index":0,"function":{"arguments":":1}"}}]"#,
        ],
        // Ids repeated, empty or null, and repeated names.
        vec![
            r#"[{"index":0,"id":"p","function":{"name":"a","arguments":"{\"x\""}}]"#,
            r#"[{"index":0,"id":"","function":{"name":"a","arguments":":1"}},{"index":0,"id":null,"function":{"name":null,"arguments":"}"}}]"#,
            r#"[{"index":1,"id":7,"function":{"name":"b","arguments":"{\"y\":2"}},{"index":1,"id":7,"function":{"arguments":"}"}}]"#,
        ],
        // A new id with every fragment of a call.
        vec![
            r#"[{"index":0,"id":"1","function":{"name":"a","arguments":""}},{"index":0,"id":"2","function":{"arguments":"{\"x\":1"}}]"#,
            r#"[{"index":0,"id":"3","function":{"arguments":"}"}},{"index":1,"id":"4","function":{"name":"b","arguments":"{\"y\":2}"}}]"#,
        ],
        // One index for all calls.
        vec![
            r#"[{"index":0,"id":"p","function":{"name":"a","arguments":"{\"x\":1}"}}]"#,
            r#"[{"index":0,"id":"q","function":{"name":"b","arguments":"{\"y\":2}"}}]"#,
        ],
        // One index for all calls, with no ids or empty ones.
        vec![
            r#"[{"index":0,"function":{"name":"a","arguments":"{\"x\":1}"}},{"index":0,"function":{"name":"b","arguments":"{\"y\":2}"}}]"#,
        ],
        vec![
            r#"[{"index":0,"id":"","function":{"name":"a","arguments":{"x":1}}}]"#,
            r#"[{"index":0,"id":"","function":{"name":"b","arguments":"{\"y\""}}]"#,
            r#"[{"index":0,"id":"","function":{"name":"","arguments":":2}"}}]"#,
        ],
        // Empty fragments: after a call, at an index of their own, with a repeated name or another
        // id.
        vec![
            r#"[{"index":1},{"index":0,"id":"p","function":{"name":"a","arguments":"{\"x\":1}"}}]"#,
            r#"[{"index":0,"id":"","function":{"name":"a","arguments":""}},{"index":0,"id":"z","function":{"arguments":""}}]"#,
            r#"[{"index":1,"id":"q","function":{"name":"b","arguments":"{\"y\":2}"}}]"#,
            r#"[{"index":2,"id":"","function":{"name":"","arguments":""}},{"index":3,"function":{"arguments":"{}"}},{"index":4,"function":null},{}]"#,
        ],
        vec![
            r#"[{},{"function":{"name":"a","arguments":"{\"x\":1}"}},{"function":{"name":"","arguments":""}}]"#,
            r#"[{"function":{"name":"b","arguments":"{\"y\":2}"}},{"id":"","function":{}}]"#,
        ],
        // Ids alone.
        vec![
            r#"[{"id":"p","function":{"name":"a","arguments":""}},{"id":"q","function":{"name":"b"}}]"#,
            r#"[{"id":"q","function":{"arguments":"{\"y\":2}"}},{"id":"p","function":{"arguments":"{\"x\":1}"}}]"#,
        ],
        // No ids and no indexes: one call after the other, whole or in pieces, the first one's name
        // apart from its arguments.
        vec![
            r#"[{"function":{"name":"a","arguments":""}}]"#,
            r#"[{"function":{"arguments":"{\"x\""}},{"function":{"arguments":":1}"}}]"#,
            r#"[{"function":{"name":"b","arguments":{"y":2}}}]"#,
        ],
        // Arguments before the name, a placeholder before the arguments.
        vec![
            r#"[{"index":0,"id":"p","function":{"arguments":"{\"x\":"}},{"index":0,"function":{"name":"a","arguments":"1}"}}]"#,
            r#"[{"index":1,"id":"q","function":{"name":"b","arguments":"null"}},{"index":1,"function":{"arguments":"{\"y\":2}"}}]"#,
        ],
        vec![
            r#"[{"index":0,"id":"p","function":{"name":"a","arguments":"{}"}},{"index":0,"id":"","function":{"name":"","arguments":"{\"x\""}}]"#,
            r#"[{"index":0,"function":{"arguments":":1}"}}]"#,
            r#"[{"index":1,"id":"q","function":{"name":"b","arguments":{}}},{"index":1,"id":"r","function":{"arguments":"{\"y\":2}"}}]"#,
        ],
        vec![
            r#"[{"function":{"name":"a","arguments":"{}"}},{"function":{"arguments":"{\"x\":1}"}}]"#,
            r#"[{"id":"q","function":{"name":"b","arguments":"{}"}},{"id":"q","function":{"arguments":"{\"y\":2}"}}]"#,
        ],
    ] {
        let frames: Vec<_> =
            fragments.iter().map(|calls| delta(&format!(r#"{{"tool_calls":{calls}}}"#))).collect();
        let mut frames: Vec<_> = frames.iter().map(String::as_str).collect();
        frames.push(r#"{"choices":[{"delta":{},"finish_reason":"tool_calls"}]}"#);
        let end = ends::<Chunks>(&frames, &all, &Finish::Calls);
        assert!(!end.lost_call);
        // Some servers give no finish reason.
        frames.pop();
        frames.push(DONE);
        ends::<Chunks>(&frames, &all, &Finish::Calls);
    }
}

#[test]
fn m_e6_a_name_may_come_in_pieces_or_again_with_each_fragment() {
    let calls = |calls: &str| delta(&format!(r#"{{"tool_calls":{calls}}}"#));
    let pieces = [
        calls(r#"[{"index":0,"id":"p","function":{"name":"rea","arguments":""}}]"#),
        calls(r#"[{"index":0,"id":"p","function":{"name":"d_file"}}]"#),
        calls(r#"[{"index":0,"function":{"name":"read_file","arguments":"{\"x\""}}]"#),
        calls(r#"[{"index":0,"function":{"name":"read_file","arguments":":1}"}}]"#),
    ];
    let frames = pieces.iter().map(String::as_str).chain([STOP]).collect::<Vec<_>>();
    ends::<Chunks>(&frames, &[call("read_file", r#"{"x":1}"#)], &Finish::Stop);
}

#[test]
fn m_e6_calls_without_arguments_are_empty_objects_and_each_is_one() {
    let calls = r#"{"tool_calls":[{"function":{"name":"a","arguments":""}},{"function":{"name":"b"}},{"function":{"name":"c","arguments":null}},{"function":{"name":"d","arguments":"null"}}]}"#;
    let expected = ["a", "b", "c", "d"].map(|name| call(name, "{}"));
    ends::<Chunks>(&[&delta(calls), STOP], &expected, &Finish::Stop);
}

#[test]
fn m_e6_a_call_that_names_no_tool_is_lost() {
    for message in [
        r#"{"tool_calls":[{"index":0,"id":"p","function":{"arguments":"{}"}}]}"#,
        r#"{"tool_calls":[{"index":0,"id":"p","function":{"name":""}}]}"#,
        r#"{"tool_calls":[{"index":0,"function":{"name":"a"}},{"index":1,"function":{"arguments":"{\"x\":1}"}}]}"#,
        r#"{"function_call":{"name":"a","arguments":"{}"}}"#,
    ] {
        let end = play::<Chunks>(&[&delta(message), STOP]).1;
        assert!(end.unwrap().unwrap().lost_call, "{message}");
    }
}

#[test]
fn m_e6_a_message_may_come_whole() {
    let whole = r#"{"object":"chat.completion","choices":[{"index":0,"finish_reason":"tool_calls","message":
        {"content":"t","reasoning":"r","tool_calls":[{"id":"p","function":{"name":"a","arguments":"{}"}},
        {"id":"p","function":{"name":"b","arguments":"{}"}}]}}],"usage":{"prompt_tokens":1,"completion_tokens":2}}"#;
    let expected =
        [thought("r"), signature("openai:reasoning"), text("t"), call("a", "{}"), call("b", "{}")];
    let end = ends::<Chunks>(&[whole, "not read"], &expected, &Finish::Calls);
    assert_eq!(end.counts, Counts { input: Some(1), output: Some(2), ..Counts::default() });
    let bare = r#"{"choices":[{"message":{"content":"t"}}]}"#;
    ends::<Chunks>(&[bare], &[text("t")], &Finish::Stop);
    // A chunk may repeat the message, and still is a chunk.
    let both = r#"{"object":"chat.completion.chunk","choices":[{"delta":{"content":"t"},"message":{"content":"t"}}]}"#;
    ends::<Chunks>(&[both, STOP], &[text("t")], &Finish::Stop);
    is_malformed::<Chunks>(&[r#"{"object":"chat.completion","choices":[]}"#], "no message");
}

#[test]
fn m_e6_only_the_first_answer_is_read() {
    let other =
        r#"{"choices":[{"index":1,"delta":{"content":"b"}},{"index":0,"delta":{"content":"a"}}]}"#;
    let alone = r#"{"choices":[{"index":1,"delta":{"content":"b"},"finish_reason":"length"}]}"#;
    ends::<Chunks>(&[other, alone, STOP], &[text("a")], &Finish::Stop);
}

#[test]
fn m_e6_empty_events_are_ignored_and_broken_ones_are_errors() {
    for nothing in [
        "5",
        "null",
        "\"ping\"",
        "[]",
        "{}",
        r#"{"object":"keepalive","delta":"x"}"#,
        r#"{"choices":null}"#,
    ] {
        ends::<Chunks>(&[&delta(r#"{"content":"a"}"#), nothing, STOP], &[text("a")], &Finish::Stop);
    }
    for broken in [
        "{",
        "ping",
        r#"{"choices":5}"#,
        r#"{"choices":[{"delta":{"content":5}}]}"#,
        r#"{"choices":[{"delta":{"content":"\ud800"}}]}"#,
    ] {
        is_malformed::<Chunks>(&[broken], "");
    }
}

#[test]
fn m_e6_the_end_is_a_reason_or_done() {
    let a = delta(r#"{"content":"a"}"#);
    assert_eq!(play::<Chunks>(&[&a]), (vec![text("a")], Ok(None)), "cut");
    assert_eq!(play::<Chunks>(&[DONE]), (vec![], Ok(None)), "done before it began");
    for (reason, finish) in [
        ("stop", Finish::Stop),
        ("eos", Finish::Stop),
        ("max_tokens", Finish::Limit),
        ("content_filter", Finish::Filtered(None)),
        ("Error", Finish::Fault("Error".into())),
        ("because", Finish::Other("because".into())),
    ] {
        let last = format!(r#"{{"choices":[{{"delta":{{}},"finish_reason":"{reason}"}}]}}"#);
        ends::<Chunks>(&[&a, &last], &[text("a")], &finish);
        // Later content still counts.
        let late = delta(r#"{"content":"b"}"#);
        ends::<Chunks>(&[&a, &last, &late, DONE, "not read"], &[text("ab")], &finish);
    }
}

#[test]
fn m_e6_usage_is_read_wherever_it_is() {
    let counts =
        |input, cached, cache_written, output| Counts { input, cached, cache_written, output };
    for (usage, counted) in [
        (r#"{"prompt_tokens":9,"completion_tokens":2}"#, counts(Some(9), None, None, Some(2))),
        (r#"{"prompt_tokens":9,"total_tokens":11}"#, counts(Some(9), None, None, Some(2))),
        (
            r#"{"prompt_tokens":"9","completion_tokens":2.0,"num_cached_tokens":3}"#,
            counts(Some(9), Some(3), None, Some(2)),
        ),
        (
            r#"{"prompt_tokens":9,"completion_tokens":2,"prompt_cache_hit_tokens":3}"#,
            counts(Some(9), Some(3), None, Some(2)),
        ),
        (
            r#"{"prompt_tokens":9,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":3,"cache_write_tokens":4}}"#,
            counts(Some(9), Some(3), Some(4), Some(2)),
        ),
        (
            r#"{"prompt_tokens":9,"completion_tokens":2,"prompt_tokens_details":[]}"#,
            counts(Some(9), None, None, Some(2)),
        ),
        ("[]", Counts::default()),
        ("7", Counts::default()),
    ] {
        let beside =
            format!(r#"{{"choices":[{{"delta":{{}},"finish_reason":"stop"}}],"usage":{usage}}}"#);
        let after = format!(r#"{{"choices":[],"usage":{usage}}}"#);
        let inside = format!(r#"{{"choices":[{{"delta":{{}},"usage":{usage}}}]}}"#);
        for frames in [&[beside.as_str(), DONE][..], &[STOP, &after, DONE], &[STOP, &inside]] {
            assert_eq!(ends::<Chunks>(frames, &[], &Finish::Stop).counts, counted, "{frames:?}");
        }
        // A chunk without usage does not reset it.
        let null = r#"{"choices":[],"usage":null}"#;
        assert_eq!(ends::<Chunks>(&[&beside, null, DONE], &[], &Finish::Stop).counts, counted);
    }
}

#[test]
fn m_e6_arguments_are_reported_once_their_call_has_a_name() {
    let (mut chunks, mut pieces) = (Chunks::default(), Pieces::default());
    let mut reported = |function: &str| {
        let frame = delta(&format!(r#"{{"tool_calls":[{{"index":0,"function":{function}}}]}}"#));
        chunks.read(&frame, &mut pieces).unwrap();
        pieces.pop()
    };
    assert_eq!(reported(r#"{"arguments":"{"}"#), None);
    assert_eq!(reported(r#"{"name":"a"}"#), Some(ModelEvent::Writing { bytes: 1 }));
    assert_eq!(reported(r#"{"arguments":"}}"}"#), Some(ModelEvent::Writing { bytes: 2 }));
}

#[test]
fn m_e6_calls_that_are_never_named_are_bounded_beside_text() {
    let (mut chunks, mut pieces) = (Chunks::default(), Pieces::default());
    let arguments = "x".repeat(64 * 1024);
    let frame = delta(&format!(
        r#"{{"content":"a","tool_calls":[{{"index":0,"function":{{"arguments":"{arguments}"}}}}]}}"#
    ));
    let refused = (0..100).find_map(|_| chunks.read(&frame, &mut pieces).err());
    assert!(refused.is_some_and(|error| error.to_string().contains("without content")));
}

/// Only the bytes count that the detail keeps.
#[test]
fn a_long_thought_may_arrive_in_many_small_details() {
    let frame = |text: &str| {
        delta(&format!(
            r#"{{"reasoning":"a","reasoning_details":[{{"type":"reasoning.text","index":0,
            "format":"anthropic-claude-v1","id":"one","signature":null,"text":"{text}"}}]}}"#
        ))
    };
    let (mut chunks, mut pieces) = (Chunks::default(), Pieces::default());
    for _ in 0..100_000 {
        chunks.read(&frame("a"), &mut pieces).unwrap();
    }
    // The text still has a bound.
    let long = frame(&"x".repeat(64 * 1024));
    let refused = (0..100).find_map(|_| chunks.read(&long, &mut pieces).err());
    assert!(refused.is_some_and(|error| error.to_string().contains("without content")));
}
