//! Checks of the project's pages: links have a target, and JSON blocks can be parsed.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use regex::Regex;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().canonicalize().unwrap()
}

/// The files with the extension `kind` below a folder, without build output.
fn files(folder: &Path, kind: &str, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir()
            && !name.starts_with('.')
            && !["node_modules", "target", "dist"].contains(&name.as_str())
        {
            files(&path, kind, found);
        } else if path.extension().is_some_and(|is| is == kind) {
            found.push(path);
        }
    }
}

/// Every Markdown page with its text.
fn pages() -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    files(&root(), "md", &mut found);
    assert!(found.len() > 30, "{found:?}");
    found.into_iter().map(|path| (path.clone(), fs::read_to_string(path).unwrap())).collect()
}

/// The code blocks in the language `kind`.
fn blocks<'a>(text: &'a str, kind: &str) -> Vec<&'a str> {
    let kind = format!("{kind}\n");
    text.split("\n```")
        .skip(1)
        .step_by(2)
        .filter_map(|block| block.strip_prefix(kind.as_str()))
        .collect()
}

/// The text without code blocks and inline code.
fn prose(text: &str) -> String {
    let without_blocks: String = text.split("\n```").step_by(2).collect();
    Regex::new("`[^`\n]*`").unwrap().replace_all(&without_blocks, "`").into_owned()
}

/// The anchors of a page's headings.
fn anchors(text: &str) -> BTreeSet<String> {
    let headings = text.lines().filter_map(|line| {
        line.trim_start_matches('#').strip_prefix(' ').filter(|_| line.starts_with('#'))
    });
    let anchor = |heading: &str| {
        let kept = heading
            .to_lowercase()
            .chars()
            .filter(|c| c.is_alphanumeric() || [' ', '-', '_'].contains(c))
            .collect::<String>();
        kept.trim().replace(' ', "-")
    };
    headings.map(anchor).collect()
}

#[test]
fn every_link_has_a_target() {
    let link = Regex::new(r"\]\(([^)\s]+)\)").unwrap();
    let mut count = 0;
    for (page, text) in pages() {
        for link in link.captures_iter(&prose(&text)) {
            let link = &link[1];
            if link.contains("://") || link.starts_with("mailto:") {
                continue;
            }
            count += 1;
            let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target =
                if path.is_empty() { page.clone() } else { page.parent().unwrap().join(path) };
            assert!(target.exists(), "{}: {link} leads nowhere", page.display());
            let inside = target.canonicalize().unwrap();
            assert!(
                inside.starts_with(root()),
                "{}: {link} leads out of the project",
                page.display()
            );
            if !anchor.is_empty() {
                let there = anchors(&fs::read_to_string(target).unwrap());
                assert!(
                    there.contains(anchor),
                    "{}: {link} has no such heading: {there:?}",
                    page.display()
                );
            }
        }
    }
    assert!(count > 100, "only {count} links");
}

#[test]
fn every_manual_page_is_linked_from_the_index() {
    let index = fs::read_to_string(root().join("docs/README.md")).unwrap();
    let mut pages = Vec::new();
    files(&root().join("docs"), "md", &mut pages);
    for page in pages
        .iter()
        .filter(|page| page.parent() == Some(&root().join("docs")) && !page.ends_with("README.md"))
    {
        let name = page.file_name().unwrap().to_str().unwrap();
        assert!(index.contains(&format!("({name})")), "docs/README.md does not name {name}");
    }
}

#[test]
fn every_json_block_is_valid() {
    let mut count = 0;
    for (page, text) in pages() {
        for block in blocks(&text, "json") {
            let read: Result<serde_json::Value, _> = serde_json::from_str(block);
            assert!(read.is_ok(), "{}: {}\n{block}", page.display(), read.unwrap_err());
            count += 1;
        }
    }
    assert!(count > 0);
}

/// The documented variables that tools receive are exactly those in the code.
#[test]
fn the_manual_lists_exactly_the_variables_of_tools() {
    let read = |path: &str| fs::read_to_string(root().join(path)).unwrap();
    let source = read("crates/tools/src/environment.rs");
    let words = |name: &str| {
        let (_, list) = source.split_once(&format!("const {name}: [&str;")).unwrap();
        let (list, _) = list.split_once("];").unwrap();
        list.split('"').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>()
    };
    let page = read("docs/sessions.md");
    let (_, page) = page.split_once("## The environment of tools").unwrap();
    let list: Vec<_> = page
        .lines()
        .skip_while(|line| !line.starts_with('-'))
        .take_while(|line| !line.is_empty())
        .collect();
    let documented: BTreeSet<_> =
        list.join(" ").split('`').skip(1).step_by(2).map(str::to_owned).collect();
    let prefixes = words("PREFIXES").into_iter().map(|prefix| format!("{prefix}*"));
    assert_eq!(documented, words("NAMES").into_iter().chain(prefixes).collect());
    assert!(words("SECRETS").iter().all(|part| page.contains(&format!("`{part}`"))));
}
