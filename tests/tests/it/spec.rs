//! Checks of the specification: its table of tests is current, and every built row has a test.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use regex::Regex;

/// The lines around the generated table.
const BEGIN: &str = "<!-- tests:begin -->\n";
const END: &str = "<!-- tests:end -->\n";

/// The first words of a row that is not built yet.
const PLANNED: &str = "*Planned.*";

/// A row of the specification, such as `A5`.
struct Row {
    id: String,
    is_planned: bool,
}

/// A test that is named for a row. Sorted by its source, which is a crate and a file.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Test {
    source: String,
    name: String,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

fn page() -> PathBuf {
    root().join("docs/spec.md")
}

/// Reads the rows of the specification in their order: one heading each, such as `### A5. Ids`.
fn rows() -> Vec<Row> {
    let spec = fs::read_to_string(page()).unwrap();
    let heading = Regex::new(r"^([A-Z][0-9]+)\. ").unwrap();
    let mut rows: Vec<Row> = Vec::new();
    for section in spec.split("\n### ").skip(1) {
        let Some(heading) = heading.captures(section) else { continue };
        let id = heading[1].to_owned();
        assert!(rows.iter().all(|row| row.id != id), "two rows of docs/spec.md have the id {id}");
        let (_, body) = section.split_once('\n').unwrap();
        rows.push(Row { id, is_planned: body.trim_start().starts_with(PLANNED) });
    }
    assert!(rows.len() > 80, "docs/spec.md has only {} rows", rows.len());
    rows
}

/// Collects the Rust and Node.js sources below a folder, without build output.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            if !["node_modules", "target", "dist"].iter().any(|built| path.ends_with(built)) {
                sources(&path, found);
            }
        } else if path.extension().is_some_and(|kind| kind == "rs" || kind == "mjs") {
            found.push(path);
        }
    }
}

/// The crate and the file of a source: `session/asks` for `crates/session/tests/it/asks.rs`. A file
/// that moves inside its crate keeps it.
fn source_of(path: &Path) -> String {
    let inside = path.strip_prefix(root()).unwrap();
    let mut folders = inside.iter().filter(|folder| *folder != "crates");
    let owner = folders.next().unwrap().to_string_lossy();
    format!("{owner}/{}", inside.file_stem().unwrap().to_string_lossy())
}

/// Whether a part of a name is an id, such as `a5`.
fn is_id(part: &str) -> bool {
    let number = part.strip_prefix(|letter: char| letter.is_ascii_lowercase()).unwrap_or_default();
    !number.is_empty() && number.bytes().all(|digit| digit.is_ascii_digit())
}

/// The rows that a test is named for: B10 and C2 if its name has `m_b10_m_c2` in it.
fn rows_of(name: &str) -> BTreeSet<String> {
    let parts: Vec<_> = name.split('_').collect();
    let ids = parts.windows(2).filter(|pair| pair[0] == "m" && is_id(pair[1]));
    ids.map(|pair| pair[1].to_uppercase()).collect()
}

/// The tests of each row, sorted. Of a Node.js test, the name is the text up to its closing quote.
fn tests() -> BTreeMap<String, Vec<Test>> {
    let rust = Regex::new(r"(?m)^ *(?:pub )?(?:async )?fn (\w+)").unwrap();
    let quoted = r#"(?:'([^'\n]+)'|"([^"\n]+)"|`([^`\n]+)`)"#;
    let node = Regex::new(&format!(r"(?m)^ *test(?:\.\w+)?\(\s*{quoted}")).unwrap();
    let mut paths = Vec::new();
    sources(&root().join("crates"), &mut paths);
    sources(&root().join("tests"), &mut paths);
    let mut found: BTreeMap<String, Vec<Test>> = BTreeMap::new();
    for path in paths {
        let text = fs::read_to_string(&path).unwrap();
        let pattern = if path.extension().is_some_and(|kind| kind == "rs") { &rust } else { &node };
        for captures in pattern.captures_iter(&text) {
            let name = captures.iter().skip(1).flatten().next().unwrap().as_str();
            for row in rows_of(name) {
                let test = Test { source: source_of(&path), name: name.to_owned() };
                found.entry(row).or_default().push(test);
            }
        }
    }
    for tests in found.values_mut() {
        tests.sort();
    }
    found
}

/// The names of tests of one source, as code.
fn names(tests: &[Test]) -> String {
    let names: Vec<_> = tests.iter().map(|test| test.name.replace('|', r"\|")).collect();
    format!("{}: `{}`", tests[0].source, names.join("`, `"))
}

/// The table from row to tests, a row a line.
fn table() -> String {
    let tests = tests();
    let mut table = "| row | state | tests | names |\n| --- | --- | --- | --- |\n".to_owned();
    for Row { id, is_planned } in rows() {
        let state = if is_planned { "planned" } else { "built" };
        let tests = tests.get(&id).map(Vec::as_slice).unwrap_or_default();
        let sources = tests.chunk_by(|left, right| left.source == right.source);
        let names: Vec<_> = sources.map(names).collect();
        let line = format!("| {id} | {state} | {} | {} |", tests.len(), names.join("; "));
        table.push_str(&line.replace("|  |", "| |"));
        table.push('\n');
    }
    table
}

#[test]
fn the_table_of_tests_is_current() {
    let table = format!("\n{}\n", table());
    let spec = fs::read_to_string(page()).unwrap();
    let (before, rest) = spec.split_once(BEGIN).expect(BEGIN);
    let (written, after) = rest.split_once(END).expect(END);
    if std::env::var_os("HOLDPOINT_SNAPSHOTS").is_some_and(|how| how == "overwrite") {
        // Replaced atomically, because other tests read the page at the same time.
        let draft = page().with_extension("md.new");
        fs::write(&draft, [before, BEGIN, table.as_str(), END, after].concat()).unwrap();
        return fs::rename(draft, page()).unwrap();
    }
    let written_lines: BTreeSet<_> = written.lines().collect();
    let stale: Vec<_> = table.lines().filter(|line| !written_lines.contains(line)).collect();
    assert!(
        written == table,
        "docs/spec.md is out of date; HOLDPOINT_SNAPSHOTS=overwrite rewrites it. It lacks:\n{}",
        stale.join("\n")
    );
}

#[test]
fn every_built_row_has_a_test() {
    let tests = tests();
    let built = rows().into_iter().filter(|row| !row.is_planned).map(|row| row.id);
    let untested: Vec<_> = built.filter(|id| !tests.contains_key(id)).collect();
    assert!(untested.is_empty(), "no test is named for the built rows {untested:?}");
}

#[test]
fn every_test_of_a_row_names_a_row_that_exists() {
    let rows: BTreeSet<_> = rows().into_iter().map(|row| row.id).collect();
    let tests = tests();
    let unknown = tests.iter().filter(|(id, _)| !rows.contains(*id)).flat_map(|(_, tests)| tests);
    let unknown: Vec<_> = unknown.map(|test| format!("{}: {}", test.source, test.name)).collect();
    assert!(unknown.is_empty(), "docs/spec.md has no rows for:\n{}", unknown.join("\n"));
}

#[test]
fn a_name_carries_every_row_in_it() {
    let ids = |name| rows_of(name).into_iter().collect::<Vec<_>>().join(" ");
    assert_eq!(ids("m_a5_second_answer_reports_who_answered_first"), "A5");
    assert_eq!(ids("t_l13_m_d5_tokens_hold_the_run"), "D5");
    assert_eq!(ids("t_p12_m_b10_m_c2_a_signal_ends_everything"), "B10 C2");
    assert_eq!(ids("m_a10_${key}_answers: ${answer}"), "A10");
    assert_eq!(ids("stream_a5_of_m_events"), "");
}
