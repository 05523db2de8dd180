//! Keys that stay on their machine.

use holdpoint_tests::model_server::{ModelServer, Reply};
use serde_json::Value;

use super::{database, reachable};
use crate::world::{Ran, World};

const IN_CONFIG: &str = "sk-proj-T3BlbkFJ0123456789config";
const IN_ENV: &str = "sk-proj-T3BlbkFJ0123456789environment";

/// A line of the private key of a machine.
fn private_key(world: &World) -> String {
    let record = std::fs::read(world.path("data/holdpoint/fleet.json")).unwrap();
    let record: Value = serde_json::from_slice(&record).unwrap();
    let key = record["key"].as_str().unwrap();
    key.lines().find(|line| !line.starts_with('-')).unwrap().to_owned()
}

#[test]
fn m_i16_a_dump_of_the_database_contains_no_key() {
    let (server, url) = database();
    let (one, two) = (reachable(&url, "m1"), reachable(&url, "m2"));
    let model = ModelServer::start();
    let sent = |index: usize, key: &str| {
        let headers = model.request(index).headers;
        assert!(headers.iter().any(|(_, value)| value.contains(key)), "{headers:?}");
    };
    let base_url = model.base_url();
    one.config(&format!(
        "[limits]\nmodel_retry_ms = 1\n[providers.openai]\nbase_url = '{base_url}'\napi_key = '{IN_CONFIG}'\n"
    ));
    // The provider repeats the key in an error.
    let error = format!("the key {IN_CONFIG} is not valid");
    model.reply(Reply::text(["First", "."])).reply(Reply::status(401, &[], &error));
    one.run(&["run", "--model", "openai/x", "--name", "config", "go"]).code(0);
    sent(0, IN_CONFIG);
    one.run(&["prompt", "config", "again"]).code(0);
    one.run(&["wait", "config"]);
    sent(1, IN_CONFIG);

    model.reply(Reply::text(["Second", "."]));
    let mut run = two.command(&["run", "--model", "openai/x", "--name", "env", "go"]);
    run.env("OPENAI_API_KEY", IN_ENV).env("OPENAI_BASE_URL", base_url);
    Ran::of(run).code(0);
    sent(2, IN_ENV);

    let dump = server.dump("fleet");
    for text in ["First.", "is not valid", "Second.", "BEGIN CERTIFICATE"] {
        assert!(dump.contains(text), "{text}: {dump}");
    }
    for key in [IN_CONFIG, IN_ENV, &private_key(&one), &private_key(&two)] {
        assert_eq!(dump.lines().find(|line| line.contains(key)), None, "{key}");
    }
}
