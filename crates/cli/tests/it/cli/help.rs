//! The `--help` of every command, compared word for word with the manual.

use std::collections::{BTreeMap, BTreeSet};

use crate::world::World;

/// `TRYCMD=overwrite cargo test -p holdpoint --test it cli::help` rewrites the manual.
#[test]
fn every_help_text_matches_the_manual() {
    trycmd::TestCases::new().env("COLUMNS", "100").case("../../docs/cli.md");
}

/// The commands listed in a help text.
fn commands(help: &str) -> Vec<String> {
    let listed = help.split("\nCommands:\n").nth(1).unwrap_or_default().lines();
    let listed =
        listed.take_while(|line| !line.is_empty()).filter_map(|line| line.strip_prefix("  "));
    listed
        .filter(|line| !line.starts_with(' '))
        .filter_map(|line| line.split(' ').next().map(str::to_owned))
        .collect()
}

/// Every command with its help text.
fn every_command(world: &World) -> BTreeMap<String, String> {
    let (mut there, mut left) = (BTreeMap::new(), vec!["holdpoint".to_owned()]);
    while let Some(command) = left.pop() {
        let words: Vec<_> = command.split(' ').skip(1).chain(["--help"]).collect();
        let help = world.run(&words).code(0).out;
        left.extend(commands(&help).into_iter().map(|name| format!("{command} {name}")));
        there.insert(command, help);
    }
    there
}

#[test]
fn the_manual_has_every_command_and_no_other() {
    let manual = include_str!("../../../../../docs/cli.md");
    let documented: BTreeSet<_> =
        manual.lines().filter_map(|line| line.strip_prefix("## ")).map(str::to_owned).collect();
    let there: BTreeSet<_> = every_command(&World::new()).into_keys().collect();
    for command in &there {
        assert!(manual.contains(&format!("$ {command} --help\n")), "{command}");
    }
    assert_eq!(documented, there);
}

/// The options listed in a help text, such as `-o` and `--output`.
fn options(help: &str) -> Vec<String> {
    let lines = help.lines().filter(|line| line.starts_with("  -") || line.starts_with("      --"));
    let words = lines.flat_map(|line| {
        line.trim_start().split("  ").next().unwrap_or_default().split([' ', ',', '=', '['])
    });
    words.filter(|word| word.starts_with('-')).map(str::to_owned).collect()
}

#[test]
fn every_command_has_a_manual_page_with_every_option() {
    let world = World::new();
    world.run(&["man", "pages/man1"]).code(0);
    let written = std::fs::read_dir(world.work("pages/man1")).unwrap();
    let mut written: BTreeSet<_> =
        written.map(|page| page.unwrap().file_name().into_string().unwrap()).collect();
    let mut documented = 0;
    for (command, help) in every_command(&world) {
        let name = format!("{}.1", command.replace(' ', "-"));
        assert!(written.remove(&name), "{name} is not written");
        let page = std::fs::read_to_string(world.work("pages/man1").join(&name))
            .unwrap()
            .replace("\\-", "-");
        assert!(page.contains(&format!(".TH {} 1", command.replace(' ', "-"))), "{name}: {page}");
        // Skip the synopsis.
        let page = page.split(".SH OPTIONS").nth(1).unwrap_or_default();
        for option in options(&help) {
            assert!(
                page.contains(&format!("\\fB{option}\\fR")),
                "{name} does not document {option}: {page}"
            );
            documented += 1;
        }
    }
    assert!(documented > 100, "only {documented} options");
    // Pages of `help` do not count: not every level lists `help` as a command.
    written.retain(|name| !name.split(['-', '.']).any(|word| word == "help"));
    assert_eq!(written, BTreeSet::new(), "pages without a command");
    assert!(
        world.run(&["man"]).code(0).out.contains("holdpoint\\-interrupt(1)"),
        "the first page names the others"
    );
    // A file in the folder's place is an error.
    world.run(&["man", "pages/man1/holdpoint-run.1"]).code(1);
    // A link that another user may have planted is replaced, and its target is left alone.
    let (page, other) = (world.work("pages/man1/holdpoint-run.1"), world.work("other"));
    std::fs::write(&other, "precious").unwrap();
    std::fs::remove_file(&page).unwrap();
    std::os::unix::fs::symlink(&other, &page).unwrap();
    world.run(&["man", "pages/man1"]).code(0);
    assert_eq!(std::fs::read_to_string(&other).unwrap(), "precious");
    assert!(page.symlink_metadata().unwrap().is_file());
}
