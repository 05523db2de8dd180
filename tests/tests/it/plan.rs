//! Checks of the test plan: every row has a test, and every test named for a row has a row.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use regex::Regex;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// The rows of the plan by id, each with the benchmark figure that verifies it, if no test does.
fn planned() -> BTreeMap<String, Option<String>> {
    let plan = fs::read_to_string(root().join("docs/testplan.md")).unwrap();
    let row = Regex::new(r"(?m)^\| ([A-Z][0-9]+) \| .* \| (?:figure: `([^`]+)`|.*) \|$").unwrap();
    let rows: Vec<_> = row
        .captures_iter(&plan)
        .map(|row| (row[1].to_owned(), row.get(2).map(|figure| figure.as_str().to_owned())))
        .collect();
    let planned: BTreeMap<_, _> = rows.iter().cloned().collect();
    assert_eq!(planned.len(), rows.len(), "two rows have the same id");
    planned
}

/// Collects the Rust, JavaScript and TypeScript sources below a folder, without build output.
fn sources(folder: &Path, found: &mut Vec<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            if !["node_modules", "target", "dist"].iter().any(|built| path.ends_with(built)) {
                sources(&path, found);
            }
        } else if path
            .extension()
            .is_some_and(|kind| ["rs", "mjs", "ts", "tsx"].iter().any(|ours| kind == *ours))
        {
            found.push(fs::read_to_string(&path).unwrap());
        }
    }
}

/// The rows that tests are named for, as in `fn t_l13_m_d5_tokens` or `test('t_l13_tokens'`.
fn tested() -> BTreeSet<String> {
    let test = Regex::new(r#"(?:fn |test\(["'`])((?:[tm]_[a-z][0-9]+_)+)"#).unwrap();
    let row = Regex::new(r"t_([a-z][0-9]+)_").unwrap();
    let mut found = Vec::new();
    sources(&root().join("crates"), &mut found);
    sources(&root().join("tests"), &mut found);
    let names =
        found.iter().flat_map(|text| test.captures_iter(text)).map(|name| name[1].to_owned());
    names
        .flat_map(|name| {
            row.captures_iter(&name).map(|row| row[1].to_uppercase()).collect::<Vec<_>>()
        })
        .collect()
}

#[test]
fn every_row_is_tested_and_every_test_of_a_row_is_planned() {
    let (planned, tested) = (planned(), tested());
    assert!(planned.len() > 80, "the plan has too few rows: {planned:?}");
    let held =
        |(row, figure): &(&String, &Option<String>)| figure.is_some() || tested.contains(*row);
    let untested: Vec<_> = planned.iter().filter(|row| !held(row)).map(|(row, _)| row).collect();
    let unplanned: Vec<_> = tested.iter().filter(|row| !planned.contains_key(*row)).collect();
    assert!(untested.is_empty(), "no test is named for {untested:?}");
    assert!(
        unplanned.is_empty(),
        "tests are named for {unplanned:?}, which docs/testplan.md does not have"
    );
}

#[test]
fn every_planned_figure_is_measured() {
    let mut benches = Vec::new();
    sources(&root().join("crates/cli/benches"), &mut benches);
    for (row, figure) in planned() {
        let Some(figure) = figure else { continue };
        let measured = format!(r#"table\.figure(?:_beside)?\([^"]*"{}"#, regex::escape(&figure));
        let measured = Regex::new(&measured).unwrap();
        assert!(
            benches.iter().any(|bench| measured.is_match(bench)),
            "{row}: no benchmark measures `{figure}`"
        );
    }
}
