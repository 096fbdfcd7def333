//! A planted bug, and what became of it.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result};
use serde_json::Value;

/// A row of the table that `sabotaged --list` prints.
pub(super) struct Bug {
    pub(super) name: String,
    pub(super) about: String,
    /// `report`, `single` or `inbox`.
    pub(super) plan: String,
    pub(super) methods: Vec<String>,
    /// The part of the scenarios that is played.
    pub(super) part: String,
    /// The judges that must find it, one of them at least.
    pub(super) caught_by: Vec<String>,
    /// What it would take to show it, where no method does.
    pub(super) open: Option<String>,
}

/// For each method, each judge that found something, and in how many scenarios.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Catch(pub(super) BTreeMap<String, BTreeMap<String, usize>>);

impl Bug {
    pub(super) fn all(list: &str) -> Result<Vec<Self>> {
        let list: Value = serde_json::from_str(list).context("the list of bugs is not JSON")?;
        list["bugs"].as_array().context("there is no list of bugs")?.iter().map(Self::of).collect()
    }

    fn of(row: &Value) -> Result<Self> {
        let text = |name: &str| row[name].as_str().map(str::to_owned).with_context(|| format!("a bug without {name}"));
        let texts = |name: &str| row[name].as_array().into_iter().flatten().filter_map(Value::as_str);
        Ok(Self {
            name: text("name")?,
            about: text("about")?,
            plan: text("plan")?,
            methods: texts("methods").map(str::to_owned).collect(),
            part: text("part")?,
            caught_by: texts("caught_by").map(str::to_owned).collect(),
            open: row["open"].as_str().map(str::to_owned),
        })
    }
}

impl Catch {
    /// From the report that the lab prints.
    pub(super) fn of(report: &Value) -> Result<Self> {
        let mut catch = Self::default();
        let scenarios = report["scenarios"].as_array().context("the report has no scenarios")?;
        for scenario in scenarios {
            let method = scenario["method"].as_str().context("a scenario without method")?;
            for finding in scenario["findings"].as_array().into_iter().flatten() {
                let judge = finding["property"].as_str().context("a finding without judge")?;
                *catch.0.entry(method.to_owned()).or_default().entry(judge.to_owned()).or_default() += 1;
            }
        }
        Ok(catch)
    }

    /// Every judge that found something.
    pub(super) fn judges(&self) -> BTreeSet<&str> {
        self.0.values().flat_map(BTreeMap::keys).map(String::as_str).collect()
    }
}
