//! Text substitutions, which have no effect besides their text: `"$(cat <<'END' … )"`.

use super::ScriptEffect;
use super::reader::Reader;
use super::word::WordBuilder;

/// Characters that change where a substitution ends for versions of bash that count quotes and
/// parentheses, such as the one of macOS. For these, a text with such a character is not accepted.
const COUNTED: [char; 10] = ['\'', '"', '`', '\\', '$', '#', '(', ')', '{', '}'];

/// A text substitution.
#[derive(Debug, PartialEq, Eq)]
struct Text<'a> {
    /// The call in it, up to the delimiter of the here-document.
    call: &'a str,
    /// The text, without the line feeds at its end, which a substitution drops.
    text: String,
    /// The length of the whole substitution in bytes.
    length: usize,
}

impl Reader<'_> {
    /// Reads a text substitution between double quotes, and adds its text to the word. Returns
    /// `false` and reads nothing if the substitution has another form.
    ///
    /// Also returns `false` inside another substitution, or where a here-document waits for the
    /// next line, because versions of bash differ there.
    pub(super) fn text_substitution(&mut self, word: &mut WordBuilder) -> bool {
        if self.substitution_depth > 0
            || self.outer_heredocs > 0
            || !self.pending_heredocs.is_empty()
        {
            return false;
        }
        let Some(Text { call, text, length }) = Text::at(self.rest(), cfg!(target_os = "linux"))
        else {
            return false;
        };
        self.found.push(ScriptEffect::Text { call: call.to_owned() });
        word.text.push_str(&text);
        self.at += length;
        true
    }
}

impl<'a> Text<'a> {
    /// Reads the substitution at the beginning of `source`: only `cat`, with one here-document that
    /// has a quoted delimiter. `bash_parses` is true for versions of bash that find the end of a
    /// substitution by parsing it.
    fn at(source: &'a str, bash_parses: bool) -> Option<Self> {
        let call = skip_blanks(source.strip_prefix("$(")?);
        let rest = skip_blanks(call.strip_prefix("cat")?).strip_prefix("<<")?;
        let untabbed = rest.starts_with('-');
        let (end, after) = quoted_delimiter(skip_blanks(rest.strip_prefix('-').unwrap_or(rest)))?;
        let mut rest = skip_blanks(after).strip_prefix('\n')?;
        let mut text = String::new();
        loop {
            let (line, next) = rest.split_once('\n')?;
            rest = next;
            let line = if untabbed { line.trim_start_matches('\t') } else { line };
            // In some versions, a line that only begins with the delimiter ends the text if a `)`
            // follows.
            match line.strip_prefix(end) {
                Some("") => break,
                Some(_) => return None,
                None => text.extend([line, "\n"]),
            }
        }
        if !bash_parses && text.contains(COUNTED) {
            return None;
        }
        let rest = rest.trim_start_matches([' ', '\t', '\n']).strip_prefix(')')?;
        text.truncate(text.trim_end_matches('\n').len());
        Some(Self {
            call: &call[..call.len() - after.len()],
            text,
            length: source.len() - rest.len(),
        })
    }
}

/// The text after leading spaces and tabs.
fn skip_blanks(text: &str) -> &str {
    text.trim_start_matches([' ', '\t'])
}

/// The quoted delimiter of a here-document, and the text after it.
fn quoted_delimiter(text: &str) -> Option<(&str, &str)> {
    let quote = text.chars().next().filter(|quote| matches!(quote, '\'' | '"' | '\\'))?;
    let text = &text[1..];
    let length = text
        .bytes()
        .take_while(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(byte))
        .count();
    let (word, rest) = text.split_at(length);
    let rest = if quote == '\\' { rest } else { rest.strip_prefix(quote)? };
    (!word.is_empty()).then_some((word, rest))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use proptest::prelude::*;
    use proptest::sample::select;

    use super::super::{ScriptEffect, read};
    use super::*;
    use crate::testing::rounds;

    /// The last argument of the only command that is called, if it is completely known.
    fn argument(script: &str) -> Option<String> {
        let mut argument = None;
        for effect in read(script, 0) {
            match effect {
                ScriptEffect::Text { .. } => {}
                ScriptEffect::Call(call) if argument.is_none() => {
                    argument = Some(call.words.last()?.literal()?.to_owned())
                }
                ScriptEffect::Call(_)
                | ScriptEffect::Redirect(_)
                | ScriptEffect::Unclear { .. } => return None,
            }
        }
        argument
    }

    /// The argument that bash passes to `printf`, in a folder where `touch` would leave a file.
    fn passed(script: &str) -> String {
        let folder = tempfile::tempdir().unwrap();
        let bash =
            Command::new("bash").args(["-c", script]).current_dir(folder.path()).output().unwrap();
        let errors = String::from_utf8_lossy(&bash.stderr);
        assert!(bash.status.success() && errors.is_empty(), "{script}\n{errors}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "{script}");
        String::from_utf8(bash.stdout).unwrap()
    }

    #[test]
    fn the_text_equals_what_bash_passes() {
        for (body, text) in [
            ("fix: don't (ever) \"quote\"\n\n$(touch S) `touch S` $x \\ \\\\ # a\n", None),
            ("one\n\n\n", Some("one")),
            ("\n\none\n \n", Some("\n\none\n ")),
            ("", Some("")),
            ("\n", Some("")),
            ("a)\n) ;; esac } done fi\n'\n\"\n`\n${\n$((\n<<EOF\n", None),
            ("EO\n EOF\n'EOF'\n", None),
            ("häß → 漢字 \u{a0}\n", None),
            ("~ * ? [a] {a,b}\n", None),
        ] {
            for (open, end) in [
                ("$(cat <<'EOF'", "EOF\n)"),
                ("$(cat <<\"EOF\"", "EOF\n)"),
                ("$(cat <<\\EOF", "EOF\n)"),
                ("$( \tcat<< 'EOF' \t", "EOF\n\n \t)"),
                ("$(cat <<-'EOF'", "\t\tEOF\n)"),
            ] {
                let script = format!("printf %s \"<{open}\n{body}{end}>\"");
                let text = format!("<{}>", text.unwrap_or(body.trim_end_matches('\n')));
                assert_eq!(argument(&script).as_ref(), Some(&text), "{script}");
                assert_eq!(passed(&script), text, "{script}");
            }
        }
        let untabbed = "printf %s \"$(cat <<-'EOF'\n\ta\n\t\tb \tc\n \td\n\tEOF\n)\"";
        assert_eq!(argument(untabbed).as_deref(), Some("a\nb \tc\n \td"));
        assert_eq!(passed(untabbed), "a\nb \tc\n \td");
    }

    #[test]
    fn a_text_with_counted_characters_is_refused_for_older_bash() {
        let source = |body: &str| format!("$(cat <<'EOF'\n{body}\nEOF\n)");
        assert!(Text::at(&source("a; b | c & d <e> ~ !"), false).is_some());
        for counted in COUNTED {
            assert!(Text::at(&source(&format!("a {counted} b")), true).is_some());
            assert_eq!(Text::at(&source(&format!("a {counted} b")), false), None);
        }
    }

    /// Lines, most of which have a meaning in bash elsewhere.
    fn body() -> impl Strategy<Value = String> {
        let parts = select(vec![
            "EOF",
            "EOF ",
            " EOF",
            "\tEOF",
            "EOF)",
            "EOFx",
            "EO",
            "'EOF'",
            ")",
            "(",
            "\"",
            "'",
            "`",
            "\\",
            "$(touch S)",
            "`touch S`",
            "${x",
            "$((",
            "# a",
            "\"; touch S; echo \"",
            "')\"; touch S; echo \"",
            "case x in x)",
            "<<EOF",
            "<<'A'",
            "a",
            "é",
            "\u{a0}",
            "\t",
            " ",
            "\\\n",
            "\n",
            "\n",
            "\n",
            "\n",
        ]);
        prop::collection::vec(parts, 0..12).prop_map(|parts| parts.concat())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(rounds(400, 20_000)))]

        #[test]
        fn a_known_argument_equals_the_one_that_bash_passes(
            body in body(),
            open in select(vec!["<<'EOF'", "<<\"EOF\"", "<<\\EOF", "<<-'EOF'", "<< 'EOF' ", "<<EOF", "<<'EOF' -", "<<'EO'F"]),
            close in select(vec!["\nEOF\n)", "\nEOF\n)", "\nEOF\n \n)", "\n\tEOF\n)", "\nEOF)", "\nEOF \n)", "\nEOF\n; touch S)"]),
        ) {
            let script = format!("printf %s \"a $(cat {open}\n{body}{close} b\"");
            if let Some(text) = argument(&script) {
                prop_assert_eq!(passed(&script), text, "{}", script);
            }
        }
    }
}
