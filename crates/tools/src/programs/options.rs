//! Options and subcommands that make a program run another one.

use super::prefixes::GIT;
use super::{name_of, without_g};
use crate::script::Word;

/// How a program is made to run another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The value, or the words that follow, are a command.
    Command,
    /// The value is a setting, or a file with settings, which can name programs.
    Setting,
    /// Like a setting, but only where it is written out: an unknown word is not taken for it. The
    /// program runs code of the workspace, or a program of the user's configuration, in any case.
    Visible,
}

use Kind::{Command, Setting, Visible};

/// Programs, their subcommands, and the options that run other programs. Without subcommands, the
/// options apply to each call; for git, before the subcommand. Without options, each call of the
/// subcommand runs programs. An option without a dash is a word among the arguments.
struct Row(&'static str, &'static str, &'static str, Kind);

const ROWS: [Row; 56] = [
    Row("git", "", "-c --config-env --exec-path", Setting),
    Row("git", "", "-p --paginate", Visible),
    Row("git", "archive", "--exec", Command),
    Row("git", "bisect", "run", Command),
    Row("git", "cat-file", "--filters --textconv", Visible),
    Row("git", "clone", "--upload-pack -u", Command),
    Row("git", "clone", "--config --template -c", Setting),
    Row("git", "config daemon difftool filter-branch for-each-repo gui instaweb", "", Setting),
    Row("git", "merge-index mergetool remote-ext send-email shell web--browse", "", Setting),
    Row("git", "diff format-patch log show whatchanged", "--ext-diff --textconv", Visible),
    Row("git", "diff-files diff-index diff-tree", "--ext-diff --textconv", Visible),
    Row("git", "fetch fetch-pack ls-remote pull", "--upload-pack", Command),
    Row("git", "fetch-pack ls-remote", "--exec", Command),
    Row("git", "grep", "--open-files-in-pager -O", Command),
    Row("git", "grep", "--textconv", Visible),
    Row("git", "init", "--template", Setting),
    Row("git", "push send-pack", "--exec --receive-pack", Command),
    Row("git", "rebase", "--exec -x", Command),
    Row("git", "submodule", "foreach", Command),
    Row("git", "svn", "--authors-prog", Command),
    Row("gh", "alias extension", "", Setting),
    Row("hg", "", "--config", Setting),
    Row("hg", "clone incoming outgoing pull push", "--remotecmd --ssh -e", Command),
    Row("jj", "", "--config --config-file", Setting),
    Row("svn", "", "--diff-cmd --diff3-cmd --editor-cmd", Command),
    Row("svn", "", "--config-dir --config-option", Setting),
    Row("ack ag bat batcat", "", "--pager", Command),
    Row("apt apt-cache apt-get", "", "--config-file --option -c -o", Visible),
    Row("ar nm ranlib", "", "--plugin", Setting),
    Row("bison", "", "--skeleton -S", Setting),
    Row("cargo", "", "--config", Visible),
    Row("cpio mt", "", "--rsh-command", Command),
    Row("ctags", "", "--options --options-maybe", Setting),
    Row("diff3 sdiff", "", "--diff-program", Command),
    Row("eslint", "", "--config --format --parser --plugin --rulesdir -c -f", Visible),
    Row("eslint", "", "--resolve-plugins-relative-to", Visible),
    Row("fd fdfind", "", "--exec --exec-batch -X -x", Command),
    Row("go", "build clean generate get install list vet", "-toolexec", Setting),
    Row("go", "vet", "-vettool", Setting),
    Row("go", "run test", "-exec -toolexec", Visible),
    Row("go", "test", "-vettool", Visible),
    Row("gpg gpg2", "", "--agent-program --dirmngr-program --options --photo-viewer", Setting),
    Row("groff pic troff", "", "-U", Setting),
    Row("install", "", "--strip-program", Command),
    Row("kubectl", "", "--kubeconfig", Setting),
    Row("make", "", "--eval --file --makefile -E -f", Visible),
    Row("npm pnpm", "", "--git --node-options --script-shell --shell", Visible),
    Row("patch", "", "--ed -e", Setting),
    Row("prettier", "", "--config --plugin", Visible),
    Row("rg", "", "--hostname-bin --pre", Command),
    Row("sdiff", "", "--output -o", Setting),
    Row("sort", "", "--compress-program", Command),
    Row("split", "", "--filter", Command),
    Row("ssh-keygen", "", "-D -w", Setting),
    Row("wget", "", "--config --execute -e", Setting),
    Row("wget", "", "--use-askpass", Command),
];

/// Something in a call that makes the program run another one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Running {
    /// The option as in the table, or the subcommand.
    pub(crate) option: &'static str,
    /// The position among the arguments; `None` for a subcommand in the program's own name.
    pub(crate) at: Option<usize>,
    pub(crate) kind: Kind,
    /// Whether it is a subcommand, each call of which runs programs.
    pub(crate) is_subcommand: bool,
    /// Whether the word is the option; otherwise it is unknown until it runs.
    pub(crate) certain: bool,
}

/// Every option and subcommand that makes the program run others and is, or may be, among `words`:
/// in full, shortened, bundled with others, or in a word that is unknown until it runs.
pub(crate) fn running(program: &str, words: &[Word]) -> Vec<Running> {
    let name = without_g(name_of(program));
    let (name, call) = match name.strip_prefix("git-") {
        Some(subcommand) => ("git", Subcommand::Named { name: subcommand, at: None }),
        None => (name, Subcommand::find(name, words)),
    };
    let mut found = Vec::new();
    for Row(programs, subcommands, options, kind) in ROWS {
        if !programs.split_whitespace().any(|program| program == name) {
            continue;
        }
        let Some((subcommand, first, end)) = call.range(name, subcommands, words.len()) else {
            continue;
        };
        if let (Some(option), true) = (subcommand, options.is_empty()) {
            let at = first.checked_sub(1);
            found.push(Running { option, at, kind, is_subcommand: true, certain: true });
        }
        // Where the subcommand is unknown, it may be any of the words.
        let options =
            if options.is_empty() && subcommand.is_none() { subcommands } else { options };
        for option in options.split_whitespace() {
            for (at, word) in words.iter().enumerate().take(end).skip(first) {
                let (is_option, certain) = match word.literal() {
                    Some(word) => (is_option(option, word), true),
                    None => (kind != Visible && *word == Word::Dynamic, false),
                };
                if is_option {
                    let at = Some(at);
                    found.push(Running { option, at, kind, is_subcommand: false, certain });
                }
            }
        }
    }
    found
}

/// The subcommand of a call.
enum Subcommand<'a> {
    /// Its name and position; the position is `None` if it is in the name of the program.
    Named { name: &'a str, at: Option<usize> },
    /// It is missing.
    Missing,
    /// It may be anywhere.
    Unknown,
}

impl<'a> Subcommand<'a> {
    fn find(program: &str, words: &'a [Word]) -> Self {
        let at = match program {
            "git" => GIT.words_before_program(words),
            // The first word that is not an option, unless it may be an option's value.
            _ => match words.first() {
                Some(Word::Literal(word)) if word.starts_with(['-', '+']) => Err(0),
                _ => Ok(0),
            },
        };
        match at.map(|at| (at, words.get(at))) {
            Ok((at, Some(Word::Literal(name)))) => Self::Named { name, at: Some(at) },
            Ok((_, None)) => Self::Missing,
            Ok(_) | Err(_) => Self::Unknown,
        }
    }

    /// The part of `count` words to which a row applies, and its matching subcommand, if it has
    /// any; `None` if it does not apply.
    fn range(
        &self,
        program: &str,
        subcommands: &'static str,
        count: usize,
    ) -> Option<(Option<&'static str>, usize, usize)> {
        match self {
            Self::Named { at, .. } if subcommands.is_empty() && program == "git" => {
                Some((None, 0, at.unwrap_or(0)))
            }
            _ if subcommands.is_empty() => Some((None, 0, count)),
            Self::Named { name, at } => {
                let subcommand = subcommands.split_whitespace().find(|known| known == name)?;
                Some((Some(subcommand), at.map_or(0, |at| at + 1), count))
            }
            Self::Missing => None,
            Self::Unknown => Some((None, 0, count)),
        }
    }
}

/// Whether `word` is this option, with or without a value.
fn is_option(option: &str, word: &str) -> bool {
    let name = word.split('=').next().unwrap_or(word);
    if option.starts_with("--") {
        name.len() > 2 && option.starts_with(name)
    } else if option.len() == 2 {
        word.starts_with('-') && !word.starts_with("--") && word.contains(&option[1..])
    } else if option.starts_with('-') {
        // Programs in Go accept one dash or two.
        name == option || name.strip_prefix('-') == Some(option)
    } else {
        word == option
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::process::{Command, Stdio};

    use super::*;

    /// Runs a program and returns its output; `None` if it is not installed.
    fn output(words: &[&str], folder: &Path) -> Option<String> {
        let name = ["GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME"].map(|name| (name, "a"));
        let email = ["GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"].map(|name| (name, "a@b.c"));
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).current_dir(folder).stdin(Stdio::null());
        let output = command.envs(name).envs(email).output().ok()?;
        Some(format!(
            "{}\n{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        ))
    }

    /// The help of a program or of its subcommand.
    fn help(program: &str, subcommand: Option<&str>, folder: &Path) -> Option<String> {
        match (program, subcommand) {
            // Its subcommands share options.
            ("go", _) => ["build", "test", "vet"]
                .map(|subject| output(&[program, "help", subject], folder))
                .into_iter()
                .collect(),
            ("gpg", _) => output(&[program, "--dump-options"], folder),
            ("kubectl", _) => output(&[program, "options"], folder),
            ("npm" | "pnpm", _) => output(&[program, "config", "ls", "-l"], folder)
                .map(|settings| settings.replace('\n', "\n--")),
            (_, Some(subcommand)) => output(&[program, subcommand, "-h"], folder),
            (_, None) => output(&[program, "--help"], folder),
        }
    }

    /// Whether a help names the option. Git writes `--[no-]exec`, and usages bundle letters.
    fn names(help: &str, option: &str) -> bool {
        let help = help.replace("--[no-]", "--");
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '-';
        help.split(|c| !is_part(c)).any(|word| match option.len() {
            2 => word.starts_with('-') && !word.starts_with("--") && word.contains(&option[1..]),
            _ => word == option,
        })
    }

    /// Whether a program accepts an option that its help leaves out.
    fn accepts(program: &str, subcommand: Option<&str>, option: &str, folder: &Path) -> bool {
        let with_value = format!("{option}=true");
        let words = match (program, subcommand) {
            ("git", Some(name @ ("diff-index" | "diff-tree"))) => {
                vec![program, name, option, "HEAD"]
            }
            ("git", Some(name @ ("fetch-pack" | "ls-remote"))) => {
                vec![program, name, &with_value, "."]
            }
            ("git", Some(name)) => vec![program, name, option],
            ("apt" | "apt-cache" | "apt-get", _) if option.contains('c') => {
                vec![program, option, "/dev/null", "--version"]
            }
            ("apt" | "apt-cache" | "apt-get", _) => vec![program, option, "a=b", "--version"],
            _ => return false,
        };
        let is_given = |word: &&str| *word == option || *word == with_value;
        let wrong: Vec<_> =
            words.iter().map(|word| if is_given(word) { "--no-such" } else { *word }).collect();
        let complains = |words: &[&str]| {
            let text = output(words, folder).unwrap_or_default();
            ["usage:", "unknown option", "unrecognized", "invalid option", "understood"]
                .iter()
                .any(|complaint| text.contains(complaint))
        };
        !complains(&words) && complains(&wrong)
    }

    /// An option that the program does not have would be a mistake in the table.
    #[test]
    fn m_g4_the_options_in_the_table_exist_in_the_installed_programs() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        for git in [&["git", "init", "-q"][..], &["git", "commit", "--allow-empty", "-m", "a"]] {
            output(git, folder);
        }
        let (mut unknown, mut checked) = (Vec::new(), 0);
        for Row(programs, subcommands, options, _) in ROWS {
            let subcommands: Vec<_> = match subcommands {
                "" => vec![None],
                _ => subcommands.split_whitespace().map(Some).collect(),
            };
            for program in programs.split_whitespace() {
                for subcommand in &subcommands {
                    let call = format!("{program} {}", subcommand.unwrap_or_default());
                    let help = match help(program, *subcommand, folder) {
                        // Parts of git are packages of their own.
                        Some(help) if call != "git gui" && !help.contains("Can't locate") => help,
                        _ => {
                            println!("skipped: {call}: the program is not installed");
                            continue;
                        }
                    };
                    if help.contains("is not a git command") {
                        unknown.push(call.clone());
                    }
                    for option in options.split_whitespace() {
                        checked += 1;
                        if !names(&help, option) && !accepts(program, *subcommand, option, folder) {
                            unknown.push(format!("{call} {option}"));
                        }
                    }
                }
            }
        }
        println!("{checked} options were checked");
        assert!(unknown.is_empty(), "{unknown:#?}");
    }
}
