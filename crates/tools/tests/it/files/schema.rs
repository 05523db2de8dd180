//! The schemas of inputs that a model receives.

use holdpoint_tools::{EditFile, ReadFile, Shell, Tool, WriteFile};
use serde_json::json;

#[test]
fn schemas_list_the_required_fields() {
    for (tool, needed) in [
        (Box::new(ReadFile::new()) as Box<dyn Tool>, json!(["path"])),
        (Box::new(WriteFile::new()), json!(["path", "content"])),
        (Box::new(EditFile::new()), json!(["path"])),
        (Box::new(Shell::new()), json!(["command"])),
    ] {
        let schema = tool.schema();
        assert_eq!(schema["type"], "object");
        assert_eq!(schema["required"], needed, "{schema}");
        assert_eq!(schema["additionalProperties"], false);
        assert!(schema.get("$schema").is_none() && schema.get("title").is_none(), "{schema}");
    }
}
