//! How far the tree has been swept.

/// Where comments have one width and plain English.
const SWEPT: &[&str] = &["fixtures/", "xtask/", "docs/inbox.md", "CONTRIBUTING.md", "README.md", "ARCHITECTURE.md"];

pub(super) fn is_swept(path: &str) -> bool {
    SWEPT.iter().any(|swept| path.starts_with(swept))
}
