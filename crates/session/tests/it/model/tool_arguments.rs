//! Arguments that no model should write, for every built-in tool: each call has one result and no
//! tool panics, no file outside the workspace is touched, and the strictest server accepts the next
//! request.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use holdpoint_common::{AsksMode, Fact, Outcome, PolicyMode, PolicyRules, ToolFact, ToolStatus};
use holdpoint_session::OpenSession;
use holdpoint_tests::json::{Described, slip};
use holdpoint_tests::model_server::{Reply, Wire};
use holdpoint_tests::world::{TestEngine, TestSession};
use holdpoint_tools::testing::rounds;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::test_runner::{Config, FileFailurePersistence, TestCaseError, TestRunner};
use serde_json::Value;

/// Words for arguments: paths, patterns, harmless commands, and words with a meaning for some tool.
const WORDS: [&str; 20] = [
    "a.txt",
    "folder/b.txt",
    "folder",
    ".",
    "../outside",
    "../outside/file",
    "link",
    "link/file",
    "*.txt",
    "**/*",
    "[a",
    "(",
    "^one$",
    "one",
    "echo hi",
    "true",
    "add",
    "finish",
    "list",
    "1",
];

/// A tool and the arguments of its call.
type Call = (String, String);

/// Makes a workspace with files to read, and files beside it that no call may touch.
fn lay_out(root: &Path) {
    let (work, outside) = (root.join("work"), root.join("outside"));
    fs::create_dir_all(work.join("folder")).unwrap();
    fs::create_dir_all(&outside).unwrap();
    fs::write(work.join("a.txt"), "one\ntwo\none\n").unwrap();
    fs::write(work.join("folder/b.txt"), "\u{1f600}\r\nthree\0\n").unwrap();
    fs::write(outside.join("file"), "one\n").unwrap();
    std::os::unix::fs::symlink(&outside, work.join("link")).unwrap();
}

/// The files of a folder with their contents.
fn contents(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    files.map(|path| (path.display().to_string(), fs::read(path).unwrap_or_default())).collect()
}

async fn open(world: &TestEngine) -> TestSession {
    let work = world.folder.path().join("work");
    let rules =
        PolicyRules { allow: vec!["shell(echo *)".parse().unwrap()], ..PolicyRules::default() };
    let session =
        OpenSession::in_folder(work).model("anthropic/scripted").policy(PolicyMode::Edits);
    world.open_with(|_| session.asks(AsksMode::Deny).rules(rules)).await
}

/// The tools in a request, each with its schema.
async fn tools(world: &TestEngine, talk: &mut TestSession) -> Vec<(String, Value)> {
    talk.session.prompt("hello").await.unwrap();
    talk.events.turn_finished().await;
    let listed = world.server.request(0).body["tools"].as_array().unwrap().clone();
    listed
        .into_iter()
        .map(|tool| (tool["name"].as_str().unwrap().to_owned(), tool["input_schema"].clone()))
        .collect()
}

fn call(tools: &[(String, Value)]) -> impl Strategy<Value = Call> + use<> {
    let slips = prop_oneof![1 => Just(Vec::new()), 1 => prop::collection::vec(slip(), 1..4)];
    let between = prop::option::weighted(
        0.1,
        (any::<Index>(), select(vec!["\\ud800", "1e999", "{", "\"", ",", "\n"])),
    );
    (select(tools.to_vec()), slips, between).prop_flat_map(|((tool, schema), slips, between)| {
        Described { root: &schema, words: &WORDS }.values(&schema).prop_map(move |mut value| {
            slips.iter().for_each(|slip| slip.spoil(&mut value));
            let mut text = value.to_string();
            if let Some((at, what)) = between {
                let ends: Vec<_> = text.char_indices().map(|(at, _)| at).collect();
                text.insert_str(ends[at.index(ends.len())], what);
            }
            (tool.clone(), text)
        })
    })
}

/// Makes the model send these calls in one answer. Returns the statuses of their results.
async fn play(
    world: &TestEngine,
    talk: &mut TestSession,
    calls: &[Call],
) -> Result<Vec<ToolStatus>, TestCaseError> {
    let (before, refusals) = (talk.events.facts().count(), world.server.violations().len());
    let reply = calls
        .iter()
        .zip(0..)
        .fold(Reply::stream(), |reply, ((tool, text), n)| reply.call(n, tool, text));
    world.server.reply(reply.finish("tool_calls"));
    talk.session.prompt("go").await.unwrap();
    let end = talk.events.turn_finished().await;
    prop_assert_eq!(end.outcome, Outcome::Done, "{:?}", end.error);
    let results = talk.events.facts().skip(before).filter_map(|fact| match fact {
        Fact::Tool(ToolFact::Finished(result)) => Some(result.clone()),
        _ => None,
    });
    let mut results: Vec<_> = results.collect();
    results.sort_by_key(|result| result.call);
    prop_assert_eq!(results.len(), calls.len(), "each has one result: {:#?}", results);
    for result in &results {
        let text = result.to_text();
        prop_assert!(result.status != ToolStatus::Panicked, "{}", text);
        prop_assert!(!text.is_empty(), "every result has text: {:?}", result);
    }
    prop_assert_eq!(&world.server.violations()[refusals..], [] as [String; 0]);
    Ok(results.iter().map(|result| result.status).collect())
}

#[test]
fn t_l7_calls_with_any_arguments_are_answered() {
    let engine = tokio::runtime::Runtime::new().unwrap();
    let cases = rounds(150, 20_000);
    let world = TestEngine::start(Wire::Anthropic);
    world.server.answer(|_| Reply::text(["I see."]));
    lay_out(world.folder.path());
    let outside = world.folder.path().join("outside");
    let untouched = contents(&outside);
    let mut talk = engine.block_on(open(&world));
    let tools = engine.block_on(tools(&world, &mut talk));
    assert!(tools.len() >= 10, "{tools:?}");
    let (talk, played) = (RefCell::new(talk), Cell::new(0_usize));
    let fine = RefCell::new(BTreeMap::<String, usize>::new());
    // Failing cases are kept and run first.
    let kept = FileFailurePersistence::Direct("tests/it/model/tool_arguments.proptest-regressions");
    let config = Config { cases, failure_persistence: Some(Box::new(kept)), ..Config::default() };
    let result = TestRunner::new(config).run(&prop::collection::vec(call(&tools), 1..5), |calls| {
        // A new conversation after some cases, so that none becomes too long.
        if played.get() % 50 == 49 {
            let old = talk.replace(engine.block_on(open(&world)));
            engine.block_on(old.session.close()).unwrap();
        }
        played.set(played.get() + 1);
        let statuses = engine.block_on(play(&world, &mut talk.borrow_mut(), &calls))?;
        prop_assert_eq!(contents(&outside), untouched.clone(), "a file outside was changed");
        for ((tool, _), status) in calls.into_iter().zip(statuses) {
            *fine.borrow_mut().entry(tool).or_default() += usize::from(status == ToolStatus::Ok);
        }
        Ok(())
    });
    result.unwrap_or_else(|fault| panic!("{fault}"));
    println!("calls that succeeded: {:?}", fine.borrow());
    // Not every call may be refused before its tool sees it.
    for tool in ["glob", "grep", "list_dir", "write_file"] {
        assert!(fine.borrow()[tool] > 0, "{tool} has never succeeded");
    }
}
