//! The configuration file: its location, the errors in it, and the keys that are never shown.

use std::collections::BTreeSet;

use super::pages::{manual, page, pages};
use crate::world::World;

#[test]
fn m_e2_the_configuration_file_is_in_the_xdg_config_folder() {
    let world = World::new();
    let path = world.path("config/holdpoint/config.toml");
    assert_eq!(world.run(&["config", "path"]).code(0).out, format!("{}\n", path.display()));
    let mut command = world.command(&["config", "path"]);
    command.env_remove("XDG_CONFIG_HOME");
    let path = world.path("home/.config/holdpoint/config.toml");
    assert_eq!(crate::world::Ran::of(command).code(0).out, format!("{}\n", path.display()));
    let ran = world.run(&["--state-dir", "here", "config", "path"]).code(0);
    assert_eq!(ran.out, format!("{}\n", world.work("here/config/config.toml").display()));
}

#[test]
fn an_unknown_key_names_the_file_and_the_nearest() {
    let world = World::new();
    let path = world.config("[limits]\ngrace_msec = 1\n");
    for args in [&["config", "show"][..], &["run", "say hi"]] {
        let ran = world.run(args).code(2);
        let expected = format!(
            "error: {}: unknown key `limits.grace_msec`: did you mean `limits.grace_ms`?\n",
            path.display()
        );
        assert!(ran.err.starts_with(&expected), "{ran:#?}");
        assert!(ran.err.contains("\nhint: ") && ran.out.is_empty(), "{ran:#?}");
    }
}

#[test]
fn a_wrong_value_names_its_line() {
    let world = World::new();
    world.config("policy = 'ask'\nmax_steps = 'many'\n");
    let ran = world.run(&["config", "show"]).code(2);
    assert!(ran.err.contains("line 2") && ran.err.contains("max_steps"), "{ran:#?}");
}

#[test]
fn config_show_prints_valid_configuration_without_keys() {
    let world = World::new();
    world.config("model = 'openai/x'\nasks = 'deny'\n[providers.openai]\napi_key = 'sk-secret'\n");
    let ran = world.run(&["config", "show"]).code(0);
    assert!(!ran.out.contains("secret") && ran.out.contains("***"), "{ran:#?}");
    let config = holdpoint_common::Config::parse(&ran.out).unwrap();
    assert_eq!(config.model.as_deref(), Some("openai/x"));
    assert_eq!(config.asks, Some(holdpoint_common::AsksMode::Deny));
}

/// `config show` also checks the values that the screen, the daemon and sessions use only when they
/// start.
#[test]
fn config_show_refuses_values_that_sessions_would_refuse_later() {
    for (wrong, why) in [
        ("[tui.keys]\nheld = 'f8'", "tui.keys.held: unknown action"),
        ("[tui.keys]\nhold = 'shift+p'", "tui.keys.hold: `shift+p` is not a valid key"),
        ("log = 'holdpoint=loud'", "`log = \"holdpoint=loud\"`"),
        ("[web]\nallow = ['*.example.com']", "invalid rule `*.example.com`"),
        ("[rules]\nallow = ['shell(git * status)']", "invalid rule `shell(git * status)`"),
    ] {
        let world = World::new();
        world.config(wrong);
        let ran = world.run(&["config", "show"]).code(2);
        assert!(
            ran.err.contains(why) && ran.err.contains("\nhint: ") && ran.out.is_empty(),
            "{wrong}: {ran:#?}"
        );
    }
}

#[test]
fn every_configuration_that_is_shown_can_be_used() {
    let examples = std::fs::read_dir(manual().join("examples/config")).unwrap();
    let examples =
        examples.map(|entry| format!("examples/config/{}", entry.unwrap().file_name().display()));
    let examples: Vec<_> = examples.filter(|name| name.ends_with(".toml")).collect();
    let about = page("examples/config/README.md");
    let mut shown = Vec::new();
    for name in examples {
        assert!(
            about.contains(&format!("({})", name.trim_start_matches("examples/config/"))),
            "{name} is not told of"
        );
        shown.push((page(&name), name));
    }
    for name in pages() {
        let text = page(&name);
        let blocks =
            text.split("```toml\n").skip(1).map(|block| block.split("```").next().unwrap());
        shown.extend(blocks.map(|block| (block.to_owned(), name.clone())));
    }
    let world = World::new();
    for (text, name) in &shown {
        world.config(text);
        let ran = world.run(&["config", "show"]);
        assert!(ran.code == Some(0), "{name}: {}\n{text}", ran.err);
    }
    let names: BTreeSet<_> = shown.iter().map(|(_, name)| name).collect();
    assert!(names.len() >= 10, "{names:?}");
}

#[test]
fn the_schema_documents_every_key() {
    let world = World::new();
    let schema: serde_json::Value =
        serde_json::from_str(&world.run(&["config", "schema"]).code(0).out).unwrap();
    let tables = [
        &schema["properties"],
        &schema["$defs"]["Limits"]["properties"],
        &schema["$defs"]["ProviderSettings"]["properties"],
    ];
    for (key, about) in tables.iter().flat_map(|table| table.as_object().unwrap()) {
        assert!(
            about["description"].as_str().is_some_and(|text| text.len() > 10),
            "{key}: {about}"
        );
    }
}

#[test]
fn nothing_in_the_workspace_is_configuration() {
    let world = World::new();
    for name in
        ["config.toml", "holdpoint.toml", ".holdpoint/config.toml", ".config/holdpoint/config.toml"]
    {
        std::fs::create_dir_all(world.work(name).parent().unwrap()).unwrap();
        std::fs::write(world.work(name), "policy = 'all'\nasks = 'approve'\n").unwrap();
    }
    world.play(&[], "shell: touch made").code(3);
    assert!(!world.work("made").exists());
}

#[test]
fn the_configuration_applies_unless_an_option_overrides_it() {
    let world = World::new();
    world.config("asks = 'approve'\n");
    let ran = world.play(&[], "shell: touch made").code(0);
    assert!(
        world.work("made").exists()
            && ran.err.contains("asks: approve (`asks` in the configuration)"),
        "{ran:#?}"
    );
    world.play(&["--asks", "deny"], "shell: touch more").code(3);
    assert!(!world.work("more").exists());
}

#[test]
fn completions_are_for_the_named_shell() {
    let world = World::new();
    for shell in ["bash", "zsh", "fish"] {
        let ran = world.run(&["completions", shell]).code(0);
        assert!(ran.out.contains("holdpoint") && ran.out.contains("COMPLETE"), "{shell}");
    }
    world.run(&["completions", "cobol"]).code(2);
}
