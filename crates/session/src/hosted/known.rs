//! The known agents: for each, its command, and its needs beyond the sandbox of a session.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use holdpoint_common::AgentSettings;
use holdpoint_tools::environment;
use serde::Deserialize;

/// How many folders above a program are searched for the description of its package, and the most
/// bytes of a description.
const MAX_ABOVE: usize = 4;
const MAX_PACKAGE: u64 = 64 * 1024;

/// An agent that can be hosted by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KnownAgent {
    /// Name of the agent, for `--agent`.
    pub name: &'static str,
    /// Names of its program. The first one that is found is started.
    pub programs: &'static [&'static str],
    /// Arguments of the program.
    pub args: &'static [&'static str],
    /// Files and folders that it reads and changes. A folder ends with `/`. A path begins with `~`,
    /// `$XDG_CONFIG_HOME`, `$XDG_DATA_HOME` or `$XDG_STATE_HOME`. Missing ones are created.
    pub paths: &'static [&'static str],
    /// Files and folders in the first of `paths` that it can only read: they name programs and
    /// permissions for its next start, which may be outside of a sandbox. Missing ones are created,
    /// except files in other formats than JSON and TOML.
    pub read_only: &'static [&'static str],
    /// Files that it can only read, and does not start without, with the text of a new one.
    pub expected: &'static [(&'static str, &'static str)],
    /// Hosts that it reaches.
    pub domains: &'static [&'static str],
    /// Variables that it gets: its keys, and the address of its server.
    pub variables: &'static [&'static str],
    /// The one of `variables` that has the address of its server. It reaches the host of this
    /// address, too.
    pub server_variable: Option<&'static str>,
    /// Package of the npm registry that contains it.
    pub package: &'static str,
}

/// The known agents, by name.
pub const KNOWN_AGENTS: &[KnownAgent] = &[
    KnownAgent {
        name: "claude",
        programs: &["claude-agent-acp", "claude-code-acp"],
        args: &[],
        paths: &["~/.claude/", "~/.claude.json"],
        read_only: &[
            "agents/",
            "commands/",
            "hooks/",
            "local/",
            "plugins/",
            "settings.json",
            "settings.local.json",
            "skills/",
        ],
        expected: &[],
        domains: &["api.anthropic.com", "claude.ai", "platform.claude.com"],
        variables: &[
            "ANTHROPIC_API_KEY",
            "ANTHROPIC_AUTH_TOKEN",
            "ANTHROPIC_BASE_URL",
            "CLAUDE_CODE_OAUTH_TOKEN",
        ],
        server_variable: Some("ANTHROPIC_BASE_URL"),
        package: "@agentclientprotocol/claude-agent-acp",
    },
    KnownAgent {
        name: "codex",
        programs: &["codex-acp"],
        args: &[],
        paths: &["~/.codex/"],
        read_only: &[
            ".env",
            "agents/",
            "config.toml",
            "hooks.json",
            "hooks/",
            "plugins/",
            "prompts/",
            "rules/",
            "skills/",
        ],
        expected: &[],
        domains: &["api.openai.com", "auth.openai.com", "chatgpt.com"],
        variables: &["CODEX_API_KEY", "OPENAI_API_KEY", "OPENAI_BASE_URL"],
        server_variable: Some("OPENAI_BASE_URL"),
        package: "@agentclientprotocol/codex-acp",
    },
    KnownAgent {
        name: "gemini",
        programs: &["gemini"],
        args: &["--acp"],
        paths: &["~/.gemini/"],
        read_only: &[
            ".env",
            "agents/",
            "commands/",
            "extensions/",
            "hooks/",
            "policies/",
            "settings.json",
            "skills/",
            "tmp/bin/",
            "trustedFolders.json",
            "trusted_hooks.json",
        ],
        expected: &[],
        domains: &[
            "accounts.google.com",
            "cloudcode-pa.googleapis.com",
            "generativelanguage.googleapis.com",
            "oauth2.googleapis.com",
        ],
        variables: &["GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_GEMINI_BASE_URL"],
        server_variable: Some("GOOGLE_GEMINI_BASE_URL"),
        package: "@google/gemini-cli",
    },
    KnownAgent {
        name: "opencode",
        programs: &["opencode"],
        args: &["acp"],
        paths: &["$XDG_DATA_HOME/opencode/", "$XDG_STATE_HOME/opencode/"],
        read_only: &["bin/"],
        expected: &[(
            "$XDG_CONFIG_HOME/opencode/.gitignore",
            "node_modules\npackage.json\npackage-lock.json\nbun.lock\n.gitignore\n",
        )],
        domains: &["models.dev", "opencode.ai", "registry.npmjs.org"],
        variables: &["OPENCODE_API_KEY"],
        server_variable: None,
        package: "opencode-ai",
    },
];

impl KnownAgent {
    /// The known agent that a session hosts: its command is the name of the agent, and no more.
    #[must_use]
    pub fn of(settings: &AgentSettings) -> Option<&'static Self> {
        match &settings.command[..] {
            [name] => Self::named(name),
            _ => None,
        }
    }

    /// Finds its program in the `PATH` of `env`. A program below `workspace` is never returned.
    #[must_use]
    pub fn find(&self, env: &[(String, String)], workspace: &Path) -> Option<PathBuf> {
        environment::program(self.programs, env, workspace)
    }

    /// The version of its program, if it was installed as a package of the npm registry. Nothing is
    /// run.
    #[must_use]
    pub fn version(&self, program: &Path) -> Option<String> {
        #[derive(Deserialize)]
        struct Package {
            name: String,
            version: String,
        }
        let file = program.canonicalize().ok()?;
        let packages = file.ancestors().skip(1).take(MAX_ABOVE).filter_map(|folder| {
            let file = File::open(folder.join("package.json")).ok()?;
            serde_json::from_reader::<_, Package>(file.take(MAX_PACKAGE)).ok()
        });
        let mut packages = packages.filter(|package| package.name == self.package);
        packages.next().map(|package| package.version)
    }

    /// The known agent of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Self> {
        KNOWN_AGENTS.iter().find(|known| known.name == name)
    }
}

/// Whether a known agent gets the variable of this name.
#[cfg(feature = "remote")]
pub(crate) fn is_variable(name: &str) -> bool {
    KNOWN_AGENTS.iter().any(|known| known.variables.contains(&name))
}

#[cfg(test)]
mod tests {
    use holdpoint_tools::Domains;

    use super::*;

    #[test]
    fn m_h3_the_lines_of_known_agents_are_valid() {
        assert!(KNOWN_AGENTS.is_sorted_by_key(|known| known.name));
        for known in KNOWN_AGENTS {
            let KnownAgent { name, programs, paths, read_only, domains, variables, .. } = known;
            let settings = AgentSettings::from_command(vec![(*name).to_owned()]);
            assert_eq!(settings.check(), Ok(()));
            assert_eq!(KnownAgent::of(&settings), Some(known));
            assert!(!programs.is_empty());
            let domains: Vec<_> = domains.iter().map(|domain| (*domain).to_owned()).collect();
            assert!(Domains::parse(&domains).is_ok(), "{name}");
            let bases = ["~/", "$XDG_CONFIG_HOME/", "$XDG_DATA_HOME/", "$XDG_STATE_HOME/"];
            let is_valid = |path: &&str| bases.iter().any(|base| path.starts_with(base));
            assert!(paths.iter().all(is_valid) && paths[0].ends_with('/'), "{name}");
            assert!(known.expected.iter().all(|(path, _)| is_valid(path)), "{name}");
            assert!(known.server_variable.is_none_or(|name| variables.contains(&name)), "{name}");
            assert!(read_only.is_sorted() && read_only.iter().all(|path| !path.starts_with('/')));
        }
        let with_arguments = AgentSettings::from_command(vec!["gemini".into(), "--acp".into()]);
        assert_eq!(KnownAgent::of(&with_arguments), None);
    }
}
