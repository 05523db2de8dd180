//! Rules for the start of hosted agents: `agent(NAME)`, with `*` for any part of a name.

use super::mcp_rule::wildcard;

/// A pattern for the names of agents.
#[derive(Debug)]
pub(super) struct AgentRule(String);

impl AgentRule {
    /// Compiles the pattern of a rule. No allow rule may be for all agents.
    pub(super) fn new(pattern: &str, allows: bool) -> Result<Self, String> {
        if pattern.contains(char::is_whitespace) {
            return Err("write `agent(NAME)`, for example `agent(opencode)`".to_owned());
        }
        if allows && pattern.bytes().all(|byte| byte == b'*') {
            return Err("it would allow the start of every agent: name the agent, as in \
                        `agent(opencode)`, or use `--policy all`"
                .to_owned());
        }
        Ok(Self(pattern.to_owned()))
    }

    pub(super) fn matches(&self, agent: &str) -> bool {
        wildcard(&self.0, agent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m_h3_a_rule_names_an_agent() {
        let rule = |pattern| AgentRule::new(pattern, true).unwrap();
        assert!(rule("opencode").matches("opencode") && rule("open*").matches("opencode"));
        assert!(!rule("opencode").matches("opencode2"));
        for (pattern, why) in [("*", "every agent"), ("a b", "agent(NAME)")] {
            assert!(AgentRule::new(pattern, true).unwrap_err().contains(why), "{pattern}");
        }
        assert!(AgentRule::new("*", false).unwrap().matches("any"));
    }
}
