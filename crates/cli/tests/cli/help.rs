//! What the program says about itself: every `--help`, word for word, as the manual has it.

use std::collections::BTreeSet;

use crate::world::World;

/// `TRYCMD=overwrite cargo test -p holdpoint --test cli help` writes them anew.
#[test]
fn every_help_is_as_the_manual_has_it() {
    trycmd::TestCases::new().env("COLUMNS", "100").case("../../docs/cli.md");
}

/// The commands that a help lists.
fn commands(help: &str) -> Vec<String> {
    let listed = help.split("\nCommands:\n").nth(1).unwrap_or_default().lines();
    let listed = listed.take_while(|line| !line.is_empty()).filter_map(|line| line.strip_prefix("  "));
    listed.filter(|line| !line.starts_with(' ')).filter_map(|line| line.split(' ').next().map(str::to_owned)).collect()
}

#[test]
fn the_manual_has_every_command_and_no_other() {
    let manual = include_str!("../../../../docs/cli.md");
    let told: BTreeSet<_> = manual.lines().filter_map(|line| line.strip_prefix("## ")).map(str::to_owned).collect();
    let world = World::new();
    let (mut there, mut left) = (BTreeSet::new(), vec!["holdpoint".to_owned()]);
    while let Some(command) = left.pop() {
        let words: Vec<_> = command.split(' ').skip(1).chain(["--help"]).collect();
        let help = world.run(&words).code(0).out;
        assert!(manual.contains(&format!("$ {command} --help\n")), "{command}");
        left.extend(commands(&help).into_iter().map(|name| format!("{command} {name}")));
        there.insert(command);
    }
    assert_eq!(told, there);
}
