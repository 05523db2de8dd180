//! Tests that read every form of Anthropic's events.

use super::*;
use crate::model::provider::remote::try_reader::{
    call, ends, is_malformed, play, signature, text, thought,
};

fn open(index: u64, block: &str) -> String {
    format!(r#"{{"type":"content_block_start","index":{index},"content_block":{block}}}"#)
}

fn write(index: u64, delta: &str) -> String {
    format!(r#"{{"type":"content_block_delta","index":{index},"delta":{delta}}}"#)
}

fn stop(index: u64) -> String {
    format!(r#"{{"type":"content_block_stop","index":{index}}}"#)
}

fn end(reason: &str) -> String {
    format!(
        r#"{{"type":"message_delta","delta":{{"stop_reason":"{reason}"}},"usage":{{"output_tokens":7}}}}"#
    )
}

/// Plays these events and an end, and expects `expected`.
#[track_caller]
fn brings(events: &[String], expected: &[ModelEvent]) -> End {
    let last = end("end_turn");
    let frames: Vec<_> = events.iter().chain([&last]).map(String::as_str).collect();
    ends::<Events>(&frames, expected, &Finish::Stop)
}

const TOOL: &str = r#"{"type":"tool_use","id":"x","name":"a","input":{}}"#;

#[test]
fn m_e6_blocks_say_text_thoughts_and_signatures() {
    let thinking = r#"{"type":"thinking","thinking":"","signature":""}"#;
    let signed =
        |more: &str| write(0, &format!(r#"{{"type":"signature_delta","signature":"{more}"}}"#));
    let thinks = || write(0, r#"{"type":"thinking_delta","thinking":"hm"}"#);
    let says = |index| write(index, r#"{"type":"text_delta","text":"b"}"#);
    let empty = || open(1, r#"{"type":"text","text":""}"#);
    for (events, expected) in [
        (vec![open(0, r#"{"type":"text","text":"a"}"#), says(0), stop(0)], vec![text("ab")]),
        (vec![says(0)], vec![text("b")]),
        (vec![says(0), stop(0), says(0)], vec![text("bb")]),
        (
            vec![open(0, thinking), thinks(), signed("s1"), signed("g"), stop(0)],
            vec![thought("hm"), signature("anthropic:s1g")],
        ),
        (
            vec![open(0, thinking), thinks(), stop(0), empty(), says(1)],
            vec![thought("hm"), text("b")],
        ),
        // Neither opened nor stopped.
        (vec![thinks(), signed("s")], vec![thought("hm"), signature("anthropic:s")]),
        (
            vec![open(0, r#"{"type":"thinking","thinking":"hm","signature":"s"}"#), stop(0)],
            vec![thought("hm"), signature("anthropic:s")],
        ),
        (
            vec![open(0, r#"{"type":"redacted_thinking","data":"d"}"#)],
            vec![signature("anthropic-redacted:d")],
        ),
        (vec![open(0, r#"{"type":"redacted_thinking"}"#), stop(0)], vec![]),
    ] {
        brings(&events, &expected);
    }
}

#[test]
fn m_e6_streamed_arguments_override_initial_ones() {
    let input =
        |json: &str| write(0, &format!(r#"{{"type":"input_json_delta","partial_json":{json}}}"#));
    let whole = r#"{"type":"tool_use","id":"x","name":"a","input":{"x":1}}"#;
    for (events, arguments) in [
        (vec![open(0, TOOL), input(r#""{\"x\"""#), input(r#"":1}""#), stop(0)], r#"{"x":1}"#),
        (vec![open(0, TOOL), input(r#""{\"x\"""#)], r#"{"x""#),
        (vec![open(0, whole), stop(0)], r#"{"x":1}"#),
        (vec![open(0, whole), input(r#""""#), stop(0)], r#"{"x":1}"#),
        (vec![open(0, whole), input(r#""{}""#), stop(0)], r#"{"x":1}"#),
        (vec![open(0, whole), input(r#""{\"x\":2}""#), stop(0)], r#"{"x":2}"#),
        (
            vec![open(0, TOOL), input(r#""{}""#), input(r#""{\"x\"""#), input(r#"":1}""#)],
            r#"{"x":1}"#,
        ),
        (vec![open(0, TOOL)], "{}"),
        (vec![open(0, r#"{"type":"tool_use","name":"a","input":null}"#)], "{}"),
        (vec![open(0, r#"{"type":"tool_use","name":"a","input":"{\"x\":1}"}"#)], r#"{"x":1}"#),
    ] {
        assert!(!brings(&events, &[call("a", arguments)]).lost_call);
    }
    for nameless in
        [r#"{"type":"tool_use","id":"x","name":""}"#, r#"{"type":"tool_use","input":{"x":1}}"#]
    {
        assert!(brings(&[open(0, nameless), stop(0)], &[]).lost_call);
    }
    for empty in [r#"{"type":"tool_use"}"#, r#"{"type":"tool_use","id":"","name":"","input":{}}"#] {
        let beside = [open(0, whole), stop(0), open(1, empty), stop(1)];
        assert!(!brings(&beside, &[call("a", r#"{"x":1}"#)]).lost_call, "{empty}");
    }
}

#[test]
fn m_e6_provider_side_tools_are_ignored() {
    let hosted = r#"{"type":"server_tool_use","id":"x","name":"web_search","input":{}}"#;
    let events = [
        open(0, hosted),
        write(0, r#"{"type":"input_json_delta","partial_json":"{}"}"#),
        stop(0),
        open(1, r#"{"type":"web_search_tool_result","content":[]}"#),
        stop(1),
        open(2, r#"{"type":"text","text":"a","citations":[]}"#),
        write(2, r#"{"type":"citations_delta","citation":{"type":"char_location"}}"#),
        write(2, r#"{"type":"invented_delta","x":1}"#),
    ];
    assert!(!brings(&events, &[text("a")]).lost_call);
}

#[test]
fn m_e6_unknown_events_are_ignored_and_broken_ones_are_errors() {
    for nothing in [
        r#"{"type":"ping"}"#,
        r#"{"type":"invented","delta":"x","index":"y","usage":[]}"#,
        r#"{"type":5}"#,
        "{}",
        "null",
        r#"{"type":"message_start","message":null}"#,
        r#"{"type":"message_start"}"#,
        r#"{"type":"message_delta","delta":{"stop_reason":null},"usage":{"output_tokens":1}}"#,
        r#"{"type":"message_delta"}"#,
        r#"{"type":"message_stop"}"#,
    ] {
        brings(&[nothing.to_owned()], &[]);
    }
    let unannounced = write(0, r#"{"type":"text_delta","text":"a"}"#);
    let text_block = open(0, r#"{"type":"text"}"#);
    for (broken, words) in [
        (vec!["{"], ""),
        (vec![r#"{"type":"content_block_delta","index":0}"#], "content_block_delta"),
        (vec![r#"{"type":"content_block_delta","index":0,"delta":{"text":"a"}}"#], "type"),
        (vec![r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta"}}"#], "text"),
        (
            vec![r#"{"type":"content_block_delta","delta":{"type":"text_delta","text":"a"}}"#],
            "index",
        ),
        (vec![r#"{"type":"content_block_start","index":0,"content_block":{}}"#], "type"),
        (vec![r#"{"type":"content_block_stop"}"#], "index"),
        (vec![&stop(3)], "block 3 is not open"),
        (vec![&write(3, r#"{"type":"signature_delta","signature":"s"}"#)], "block 3 is not open"),
        (vec![&text_block, &text_block], "twice"),
        (
            vec![&text_block, &write(0, r#"{"type":"input_json_delta","partial_json":"{}"}"#)],
            "block 0",
        ),
        (vec![&text_block, &open(1, r#"{"type":"fallback"}"#)], "another model"),
        (vec![&unannounced, &stop(0), &open(1, r#"{"type":"fallback"}"#)], "another model"),
    ] {
        is_malformed::<Events>(&broken, words);
    }
    brings(
        &[open(0, r#"{"type":"fallback"}"#), stop(0), open(0, r#"{"type":"text","text":"a"}"#)],
        &[text("a")],
    );
}

#[test]
fn m_e6_the_end_is_a_reason() {
    let a = write(0, r#"{"type":"text_delta","text":"a"}"#);
    assert_eq!(play::<Events>(&[&a]), (vec![text("a")], Ok(None)), "cut");
    for (reason, finish) in [
        ("pause_turn", Finish::Stop),
        ("tool_use", Finish::Calls),
        ("model_context_window_exceeded", Finish::Limit),
        ("refusal", Finish::Filtered(Some("the model refused the request".into()))),
        ("", Finish::Other(String::new())),
        ("error", Finish::Fault("error".into())),
    ] {
        ends::<Events>(&[&a, &end(reason), "not read"], &[text("a")], &finish);
    }
    let explained = r#"{"type":"message_delta","delta":{"stop_reason":"refusal","stop_details":{"explanation":"why"}}}"#;
    ends::<Events>(&[&a, explained], &[text("a")], &Finish::Filtered(Some("why".into())));
}

#[test]
fn m_e6_usage_of_the_end_overrides_usage_of_the_start() {
    let start = r#"{"type":"message_start","message":{"usage":{"input_tokens":8,"cache_read_input_tokens":3,"cache_creation_input_tokens":2,"output_tokens":1}}}"#;
    let counts =
        |input, cached, cache_written, output| Counts { input, cached, cache_written, output };
    for (usage, counted) in [
        (r#"{"output_tokens":7}"#, counts(Some(13), Some(3), Some(2), Some(7))),
        (r#"{"input_tokens":0,"output_tokens":7}"#, counts(Some(13), Some(3), Some(2), Some(7))),
        (
            r#"{"input_tokens":9,"cache_read_input_tokens":0,"output_tokens":"7"}"#,
            counts(Some(11), Some(0), Some(2), Some(7)),
        ),
        ("null", counts(Some(13), Some(3), Some(2), None)),
        (
            r#"{"input_tokens":18446744073709551615}"#,
            counts(Some(u64::MAX), Some(3), Some(2), None),
        ),
    ] {
        let end = format!(
            r#"{{"type":"message_delta","delta":{{"stop_reason":"end_turn"}},"usage":{usage}}}"#
        );
        assert_eq!(ends::<Events>(&[start, &end], &[], &Finish::Stop).counts, counted, "{usage}");
    }
}

#[test]
fn m_e6_a_message_may_come_whole() {
    let whole = r#"{"type":"message","content":[{"type":"thinking","thinking":"hm","signature":"s"},
        {"type":"text","text":"a"},{"type":"tool_use","id":"x","name":"a","input":{"x":1}}],
        "stop_reason":"tool_use","usage":{"input_tokens":1,"output_tokens":2}}"#;
    let expected = [thought("hm"), signature("anthropic:s"), text("a"), call("a", r#"{"x":1}"#)];
    let end = ends::<Events>(&[whole], &expected, &Finish::Calls);
    assert_eq!((end.counts.input, end.counts.output), (Some(1), Some(2)));
}

#[test]
fn m_e6_blocks_that_never_stop_are_bounded_beside_text() {
    let (mut events, mut pieces) = (Events::default(), Pieces::default());
    let data = "x".repeat(64 * 1024);
    let refused = (0..100).find_map(|index| {
        let block = format!(r#"{{"type":"redacted_thinking","data":"{data}"}}"#);
        let opened = events.read(&open(2 * index, &block), &mut pieces);
        opened
            .and_then(|_| {
                events.read(&write(1, r#"{"type":"text_delta","text":"a"}"#), &mut pieces)
            })
            .err()
    });
    assert!(refused.is_some_and(|error| error.to_string().contains("without content")));
    // Each block that does stop has the whole bound to itself.
    let mut events = Events::default();
    for _ in 0..100 {
        events
            .read(
                &open(0, &format!(r#"{{"type":"redacted_thinking","data":"{data}"}}"#)),
                &mut pieces,
            )
            .unwrap();
        events.read(&stop(0), &mut pieces).unwrap();
    }
}
