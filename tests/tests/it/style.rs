//! Checks of the rules in docs/style.md that a program can count.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use regex::Regex;

/// Groups of words that make prose hard to skim, and how many of each are allowed per 1,000 words.
const LIMITS: [(&[&str], f64); 6] = [
    (&["what", "whatever"], 2.0),
    (&["nobody", "nothing", "none"], 4.0),
    (&["who", "whoever", "whom", "whose"], 0.6),
    (&["tell", "tells", "told", "telling"], 0.5),
    (&["stand", "stands", "stood"], 0.5),
    (&["come", "comes", "came", "coming"], 1.0),
];

/// Pages that quote these words.
const EXCEPTIONS: [&str; 1] = ["docs/style.md"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// Collects the sources and pages below a folder, without build output.
fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            if !name.starts_with('.') && !["node_modules", "target", "dist"].contains(&&*name) {
                files(&path, found);
            }
        } else if ["rs", "ts", "tsx", "js", "mjs", "md"]
            .iter()
            .any(|kind| path.extension().is_some_and(|it| it == *kind))
        {
            found.push(path);
        }
    }
}

/// The prose of a page without its code blocks, or the comments of a source.
fn prose(path: &Path) -> String {
    let text = fs::read_to_string(path).unwrap();
    if path.extension().is_some_and(|extension| extension == "md") {
        // The text outside the fences is every second part.
        return text.split("\n```").step_by(2).collect::<Vec<_>>().join("\n");
    }
    let is_comment =
        |line: &&str| ["//", "/*", "* ", "*/"].iter().any(|start| line.starts_with(start));
    text.lines().map(str::trim_start).filter(is_comment).collect::<Vec<_>>().join("\n")
}

#[test]
fn comments_and_pages_keep_to_plain_words() {
    let root = root();
    let mut paths = Vec::new();
    files(&root, &mut paths);
    let (code, word) = (Regex::new("`[^`\n]*`").unwrap(), Regex::new("[A-Za-z']+").unwrap());
    let mut total = 0_usize;
    let mut counts = [0_usize; LIMITS.len()];
    let mut by_file: [BTreeMap<String, usize>; LIMITS.len()] = Default::default();
    for path in paths {
        let name = path.strip_prefix(&root).unwrap().display().to_string();
        if EXCEPTIONS.contains(&&*name) {
            continue;
        }
        let text = prose(&path);
        for word in word.find_iter(&code.replace_all(&text, " ")) {
            total += 1;
            let word = word.as_str().to_ascii_lowercase();
            if let Some(group) = LIMITS.iter().position(|(words, _)| words.contains(&&*word)) {
                counts[group] += 1;
                *by_file[group].entry(name.clone()).or_default() += 1;
            }
        }
    }
    assert!(total > 100_000, "only {total} words were found");
    for ((words, limit), (count, by_file)) in LIMITS.iter().zip(counts.iter().zip(by_file)) {
        #[expect(clippy::cast_precision_loss, reason = "far fewer than 2^52 words")]
        let per_1000 = *count as f64 * 1000.0 / total as f64;
        let mut worst: Vec<_> = by_file.into_iter().collect();
        worst.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        worst.truncate(10);
        println!("{per_1000:.2} per 1,000 words: {words:?}");
        assert!(
            per_1000 <= *limit,
            "{per_1000:.2} of 1,000 words are {words:?}, the limit is {limit}: {worst:?}"
        );
    }
}
