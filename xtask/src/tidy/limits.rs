//! A limit that is declared is used: one that nobody asks about reads like a promise.

/// Names of constants in the text of the limits that no other source names. `sources` are path and text.
pub(super) fn unused(path: &str, text: &str, sources: &[(String, String)]) -> Vec<String> {
    let names = text.lines().filter_map(|line| line.strip_prefix("pub const ")?.split(':').next());
    let is_used = |name: &str| {
        let named = format!("limits::{name}");
        sources.iter().any(|(other, text)| other != path && text.contains(&named))
    };
    names.filter(|name| !is_used(name)).map(|name| format!("{path}: nobody asks about {name}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The size of an output had a limit of which nothing but its declaration knew.
    #[test]
    fn a_limit_that_nobody_asks_about_is_found() {
        let limits = "/// Most.\npub const STEPS: usize = 1;\n\npub const BYTES: u64 = 2;\n";
        let sources = [("limits.rs", limits), ("plan.rs", "steps > limits::STEPS // not BYTES")];
        let sources = sources.map(|(path, text)| (path.to_owned(), text.to_owned()));
        assert_eq!(unused("limits.rs", limits, &sources), ["limits.rs: nobody asks about BYTES"]);
    }
}
