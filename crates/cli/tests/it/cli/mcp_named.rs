//! Resources and prompts of MCP servers in a session.

use std::fs::{self, File};

use holdpoint_tests::model_server::{ModelServer, Reply};

use crate::world::{Ran, World};

const SERVER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../tools/tests/mcp/bad.py");

fn world() -> World {
    let world = World::new();
    world.config(&format!(
        "[mcp.s]\ncommand = \"python3\"\nargs = [\"{SERVER}\", \"named\"]\ntimeout_s = 1\n"
    ));
    world
}

fn run(world: &World, server: &ModelServer, args: &[&str]) -> Ran {
    let mut command = world.command(args);
    command.env("OPENAI_API_KEY", "sk-x").env("OPENAI_BASE_URL", server.base_url());
    Ran::of(command)
}

#[test]
fn m_h2_the_model_gets_the_resources_and_prompts_that_a_prompt_names() {
    let (world, server) = (world(), ModelServer::start());
    for _ in 0..3 {
        server.reply(Reply::text(["Well."]));
    }
    let prompt = "/s:review x.rs See @s:page://1 and @s:page://none.";
    let new = ["new", "--name", "one", "--model", "openai/test", prompt];
    run(&world, &server, &new).code(0);
    world.run(&["wait", "one"]);
    // The words after the name of a prompt are its arguments.
    let log = world.run(&["logs", "one"]).code(0).out;
    assert!(log.contains("there are too many; its arguments are file, style"), "{log}");
    world.run(&["prompt", "one", "See @s:page://1 and @s:page://none."]).code(0);
    world.run(&["wait", "one"]).code(0);
    world.run(&["prompt", "one", "/s:review x.rs"]).code(0);
    world.run(&["wait", "one"]).code(0);
    let page = "See @s:page://1 and @s:page://none.\n\nResource `page://1` of the MCP server `s`:\n\n\
                Page one.";
    let review = "/s:review x.rs\n\nPrompt `review` of the MCP server `s`:\n\nReview {\"file\": \
                  \"x.rs\"}.\n\n[assistant] Yes.";
    let texts = server.request(0).texts("user");
    // Together with the prompt that could not be used, which is not read again.
    assert!(texts.last().unwrap().ends_with(page), "{texts:?}");
    let texts = server.request(1).texts("user");
    assert_eq!(texts.last().unwrap(), review);
    assert!(texts[texts.len() - 2].ends_with(page), "{texts:?}");
    let log = world.run(&["logs", "one"]).code(0).out;
    for part in
        ["added @s:page://1 (1 KiB)", "page://none` can't be read", "added /s:review (1 KiB)"]
    {
        assert!(log.contains(part), "{part}: {log}");
    }
    // The content is saved: the server need not be there any more.
    world.run(&["daemon", "stop"]).code(0);
    world.config("");
    run(&world, &server, &["prompt", "one", "And now?"]).code(0);
    world.run(&["wait", "one"]).code(0);
    let texts = server.request(2).texts("user");
    assert!(texts.contains(&review.to_owned()), "{texts:?}");
    server.assert_no_violations();
}

#[test]
fn m_h2_t_h3_text_from_a_pipe_names_no_content() {
    let (world, server) = (world(), ModelServer::start());
    server.reply(Reply::text(["Well."]));
    let text = "/s:review x.rs\nSee @s:page://1.";
    fs::write(world.work("prompt"), text).unwrap();
    let mut command = world.command(&["new", "--name", "one", "--model", "openai/test", "-"]);
    command.env("OPENAI_API_KEY", "sk-x").env("OPENAI_BASE_URL", server.base_url());
    command.stdin(File::open(world.work("prompt")).unwrap());
    Ran::of(command).code(0);
    world.run(&["wait", "one"]).code(0);
    assert_eq!(server.request(0).texts("user").last().unwrap(), text);
    // The same as an argument.
    server.reply(Reply::text(["Well."]));
    run(&world, &server, &["prompt", "one", "See @s:page://1."]).code(0);
    world.run(&["wait", "one"]).code(0);
    let log = world.run(&["logs", "one"]).code(0).out;
    assert_eq!(log.matches("added ").count(), 1, "{log}");
}
