//! Syntax highlighting in the terminal's sixteen colours.

use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use synoptic::{TokOpt, from_extension};

use crate::tone::Tone;

/// The width of a tab, in cells.
const TAB: usize = 4;
/// The longest line that is highlighted, in bytes. Longer ones are not meant to be read.
const MAX_LINE_BYTES: usize = 4 * 1024;

/// Highlights lines of code. Returns `None` if the language is unknown, a line is too long, or no
/// token is recognised. The first use of a language compiles its rules, which takes a millisecond
/// or two.
pub(super) fn highlight(language: &str, code: &[String]) -> Option<Vec<Line<'static>>> {
    if code.iter().any(|line| line.len() > MAX_LINE_BYTES) {
        return None;
    }
    let mut rules = from_extension(extension(language), TAB)?;
    rules.run(code);
    let lines: Vec<_> = code.iter().enumerate().map(|(at, line)| rules.line(at, line)).collect();
    // A language without rules yields no tokens.
    let known = lines.iter().flatten().any(|token| matches!(token, TokOpt::Some(..)));
    known.then(|| lines.into_iter().map(|tokens| tokens.into_iter().map(span).collect()).collect())
}

fn span(token: TokOpt) -> Span<'static> {
    match token {
        TokOpt::Some(text, kind) => Span::styled(text, token_style(&kind)),
        TokOpt::None(text) => Span::raw(text),
    }
}

/// The file extension of a language, given one of its names.
fn extension(language: &str) -> &str {
    let name = language.split([' ', ',', '{']).next().unwrap_or_default();
    match name {
        "rust" => "rs",
        "python" | "python3" => "py",
        "javascript" | "jsx" | "mjs" | "node" => "js",
        "typescript" => "ts",
        "shell" | "zsh" | "console" | "shell-session" => "sh",
        "golang" => "go",
        "kotlin" => "kt",
        "csharp" | "c#" => "cs",
        "haskell" => "hs",
        "jsonc" | "json5" | "jsonl" => "json",
        "patch" => "diff",
        "perl" => "pm",
        "svg" => "xml",
        "latex" => "tex",
        name => name,
    }
}

fn token_style(kind: &str) -> Style {
    let style = Style::new();
    match kind {
        "comment" | "quote" => Tone::Dim.style(),
        "keyword" | "kw" | "tag" | "header" | "operator" => style.fg(Color::Magenta),
        "string" | "character" | "link" | "insertion" => style.fg(Color::Green),
        "digit" | "boolean" | "struct" | "type" | "namespace" | "global" => style.fg(Color::Cyan),
        "function" | "macro" | "attribute" | "key" | "reference" | "table" => style.fg(Color::Blue),
        "deletion" => style.fg(Color::Red),
        "heading" | "bold" => style.add_modifier(Modifier::BOLD),
        _ => style,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(code: &str) -> Vec<String> {
        code.split('\n').map(str::to_owned).collect()
    }

    /// The text shown in this colour.
    fn shown_in(lines: &[Line<'_>], colour: Color) -> Vec<String> {
        let spans = lines.iter().flat_map(|line| &line.spans);
        spans
            .filter(|span| span.style.fg == Some(colour))
            .map(|span| span.content.to_string())
            .collect()
    }

    #[test]
    fn keywords_strings_and_numbers_are_highlighted() {
        let code = lines("fn main() {\n\tlet x = \"漢字\"; // why\n    12\n}");
        let coloured = highlight("rust", &code).unwrap();
        assert_eq!(coloured[1].to_string(), "    let x = \"漢字\"; // why");
        assert!(shown_in(&coloured, Color::Magenta).contains(&"fn".to_owned()));
        assert_eq!(shown_in(&coloured, Color::Green), ["\"漢字\""]);
        assert_eq!(shown_in(&coloured, Color::Cyan), ["12"]);
        for language in ["python", "bash", "json", "ts", "toml", "diff", "sh title=x", "c++"] {
            assert!(
                self::highlight(language, &lines("+ for \"x\": 1 # [a]\n[b]\nc = 1")).is_some(),
                "{language}"
            );
        }
    }

    #[test]
    fn unknown_languages_and_very_long_lines_are_not_highlighted() {
        assert_eq!(highlight("", &lines("fn main")), None);
        assert_eq!(highlight("brainfuck", &lines("+++[->+<]")), None);
        assert_eq!(highlight("rust", &lines(&"fn ".repeat(2_000))), None);
    }

    #[test]
    fn highlighting_keeps_all_text() {
        let pieces = [
            "\"",
            "'",
            "\\",
            "/*",
            "*/",
            "//",
            "#",
            "\n",
            " ",
            "fn",
            "漢",
            "👩‍👩‍👧",
            "${",
            "`",
            "<!--",
            "r#\"",
            "0x",
            "=",
        ];
        let languages = [
            "rs", "py", "js", "ts", "sh", "html", "css", "md", "json", "yaml", "rb", "php", "sql",
            "diff",
        ];
        let mut random = fastrand::Rng::with_seed(7);
        for _ in 0..500 {
            let text: String =
                (0..random.usize(1..40)).map(|_| pieces[random.usize(..pieces.len())]).collect();
            let code = lines(&text);
            let Some(coloured) = highlight(languages[random.usize(..languages.len())], &code)
            else {
                continue;
            };
            let shown: Vec<_> = coloured.iter().map(ToString::to_string).collect();
            assert_eq!(shown, code);
        }
    }
}
