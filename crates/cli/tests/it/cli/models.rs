//! `holdpoint models`: the configured models, the default, and `--check`.

use holdpoint_tests::model_server::{ModelServer, Reply, Wire};

use crate::world::{Ran, World, timeout};

const KEY: &str = "sk-very-secret";

#[test]
fn m_e6_configured_models_are_listed_without_keys() {
    let world = World::new();
    world.config("[providers.gemini]\napi_key = 'sk-very-secret'\nbase_url = 'https://me:sk-very-secret@host/x'\n");
    let mut command = world.command(&["models"]);
    command.env("ANTHROPIC_API_KEY", KEY).env("OLLAMA_HOST", "0.0.0.0");
    let ran = Ran::of(command).code(0);
    assert!(!format!("{ran:?}").contains(KEY), "{ran:#?}");
    let expected = "\
openai/gpt-5                 key missing: set OPENAI_API_KEY, https://api.openai.com/v1
anthropic/claude-sonnet-5-5  key: ANTHROPIC_API_KEY, https://api.anthropic.com
gemini/gemini-3.8-flash      key: [providers.gemini] api_key, https://***@host/x ([providers.gemini] base_url)
ollama/qwen3                 needs no key, http://127.0.0.1:11434 (OLLAMA_HOST)
rehearsal                    built in, needs no key

New sessions use anthropic/claude-sonnet-5-5 (a key for anthropic is set).
";
    assert_eq!(ran.out, expected);
    let mut command = world.command(&["models"]);
    command.env("OPENAI_BASE_URL", "http://localhost:8080/v1");
    let own =
        "no key, may not need one (OPENAI_API_KEY), http://localhost:8080/v1 (OPENAI_BASE_URL)";
    assert!(Ran::of(command).code(0).out.contains(own));
    let ran = World::new().run(&["models"]).code(0);
    assert!(ran.out.ends_with(
        "New sessions use rehearsal (no model is configured and no provider's key is set).\n"
    ));
}

#[test]
fn m_e6_check_sends_one_request_to_the_model() {
    let server = ModelServer::start();
    let world = World::new();
    let check = |model: &str| {
        let mut command = world.command(&["models", "--check", model]);
        for (wire, key, url) in [
            (Wire::OpenAi, "OPENAI_API_KEY", "OPENAI_BASE_URL"),
            (Wire::Anthropic, "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"),
            (Wire::Gemini, "GEMINI_API_KEY", "GEMINI_BASE_URL"),
            (Wire::Ollama, "UNUSED", "OLLAMA_HOST"),
        ] {
            command.env(key, KEY).env(url, server.url(wire));
        }
        Ran::of(command)
    };
    for model in ["openai/x", "anthropic/x", "gemini/x", "ollama/x"] {
        server.reply(Reply::text(["ok"]));
        let ran = check(model).code(0);
        assert!(ran.out.starts_with(&format!("{model} answers (")), "{ran:#?}");

        server.reply(Reply::status(
            401,
            &[],
            r#"{"error":{"message":"wrong key sk-very-secret"}}"#,
        ));
        let ran = check(model).code(1);
        assert!(ran.err.contains("HTTP 401"), "{ran:#?}");
        // No key was sent to Ollama.
        assert!(ran.err.contains("wrong key ***") || model == "ollama/x", "{ran:#?}");
    }
    server.assert_no_violations();
    assert_eq!(server.requests().len(), 8, "each was asked once");

    let ran = world.run(&["models", "--check", "openai/x"]).code(2);
    assert!(ran.err.contains("OPENAI_API_KEY"), "{ran:#?}");
    let ran = world.run(&["models", "--check"]).code(0);
    assert!(ran.out.starts_with("rehearsal answers ("), "{ran:#?}");
}

/// A session has the key of the client that opened it. Reopened without one, it needs another
/// opening with the key.
#[test]
fn m_e6_a_session_opened_again_without_its_key_says_how_it_gets_it() {
    let server = ModelServer::start();
    let world = World::new();
    let keyed = |args: &[&str]| {
        let mut command = world.command(args);
        command.env("OPENAI_API_KEY", KEY).env("OPENAI_BASE_URL", server.base_url());
        Ran::of(command).code(0)
    };
    let idle = || world.run(&["wait", "one", "--for", "idle", "--timeout", &timeout()]).code(0);
    keyed(&["new", "--name", "one", "--model", "openai/x"]);
    world.run(&["close", "one"]).code(0);
    world.run(&["prompt", "one", "Go."]).code(0);
    idle();
    let logs = world.run(&["logs", "one"]).code(0).out;
    assert!(
        logs.contains("set OPENAI_API_KEY")
            && logs.contains("then close this session and prompt it again"),
        "{logs}"
    );
    server.reply(Reply::text(["Well."]));
    world.run(&["close", "one"]).code(0);
    keyed(&["prompt", "one", "Go."]);
    idle();
    assert!(world.run(&["logs", "one"]).code(0).out.contains("Well."));
}

#[test]
fn m_e6_an_unusable_default_model_is_reported() {
    let world = World::new();
    world.config("model = 'openia/x'\n");
    let ran = world.run(&["models"]).code(0);
    assert!(
        ran.out.contains("This model can't be used yet: there is no model provider `openia`"),
        "{ran:#?}"
    );

    let world = World::new();
    let mut command = world.command(&["models"]);
    command.env("OPENAI_BASE_URL", format!("http://h/v1?key={KEY}"));
    let ran = Ran::of(command).code(0);
    assert!(
        ran.out.contains("http://h/v1 (OPENAI_BASE_URL)") && !ran.out.contains(KEY),
        "{ran:#?}"
    );
}
