//! The plan of an agent as text.

use agent_client_protocol_schema::v1;

/// The most entries of a plan that are shown, and the most bytes of one.
const MAX_ENTRIES: usize = 64;
const MAX_ENTRY: usize = 1024;

/// A heading, and a line for each entry.
pub(super) fn text(plan: &v1::Plan) -> String {
    let line = |entry: &v1::PlanEntry| {
        let mark = match entry.status {
            v1::PlanEntryStatus::Completed => "[x]",
            v1::PlanEntryStatus::InProgress => "[>]",
            _ => "[ ]",
        };
        let content = &entry.content[..entry.content.floor_char_boundary(MAX_ENTRY)];
        format!("{mark} {}\n", content.lines().collect::<Vec<_>>().join(" "))
    };
    let more = plan.entries.len().saturating_sub(MAX_ENTRIES);
    let more = if more > 0 { format!("and {more} more\n") } else { String::new() };
    let lines: String = plan.entries.iter().take(MAX_ENTRIES).map(line).collect();
    format!("\nPlan:\n{lines}{more}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn m_h3_a_plan_has_a_line_for_each_entry() {
        let entry = |content: &str, status: &str| json!({ "content": content, "priority": "low", "status": status });
        let plan = |entries: Vec<_>| serde_json::from_value(json!({ "entries": entries })).unwrap();
        let shown = text(&plan(vec![
            entry("one", "completed"),
            entry("two\nlines", "in_progress"),
            entry("three", "pending"),
        ]));
        assert_eq!(shown, "\nPlan:\n[x] one\n[>] two lines\n[ ] three\n");
        let long = "x".repeat(10_000);
        let shown = text(&plan(vec![entry(&long, "pending"); 100]));
        assert!(shown.len() < 70 * 1024 && shown.ends_with("and 36 more\n"), "{}", shown.len());
    }
}
