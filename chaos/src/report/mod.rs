//! What people and machines get to see of a run. [`model`] is the plain data; every other file here turns it into one
//! format and reads nothing else, so that a stored report can be shown again at any time.

mod causes;
mod github;
mod html;
mod junit;
mod markdown;
mod matrix;
pub mod model;
mod phrase;
mod row;
#[cfg(test)]
mod sample;
mod terminal;
mod timeline;

use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use crate::error::LabError;
use model::{FILE_NAME, RunReport, SCHEMA};

pub use github::{GitHub, annotations, append_summary};
pub use markdown::document as markdown;
pub use phrase::harmless;
pub use terminal::{failure_in_full, summary};

/// Writes every form of the report into `dir`, which is created where it is not there: `report.json`, `report.html`,
/// `junit.xml` and `summary.md`.
///
/// # Errors
/// A folder or file that cannot be written.
pub fn write(dir: &Path, report: &RunReport) -> Result<(), LabError> {
    std::fs::create_dir_all(dir).map_err(LabError::io("create", dir))?;
    // In one line: a green run of thousands of scenarios stays below a megabyte.
    let text = serde_json::to_string(report).map_err(|e| LabError::Internal(e.to_string()))?;
    write_file(dir, FILE_NAME, &(text + "\n"))?;
    render(dir, report)
}

/// Makes the folder for a report, and makes sure that files can be written there: better found out before the scenarios
/// than after.
///
/// # Errors
/// A folder that cannot be made or written to.
pub fn prepare(dir: &Path) -> Result<(), LabError> {
    let made = std::fs::create_dir_all(dir).and_then(|()| tempfile::tempfile_in(dir));
    made.map(drop).map_err(|e| LabError::Usage(format!("cannot write reports into {}: {e}", dir.display())))
}

/// Writes what follows from `report.json` beside it.
///
/// # Errors
/// A file that cannot be written.
pub fn render(dir: &Path, report: &RunReport) -> Result<(), LabError> {
    write_file(dir, "report.html", &html::document(report)?)?;
    write_file(dir, "junit.xml", &junit::document(report)?)?;
    write_file(dir, "summary.md", &markdown(report))
}

/// Reads `report.json` from a folder that [`write()`] has filled.
///
/// # Errors
/// A file that is not there, is no report, or is one of a later version.
pub fn load(dir: &Path) -> Result<RunReport, LabError> {
    let file = dir.join(FILE_NAME);
    let bad = |why: String| LabError::Usage(format!("cannot read {}: {why}", file.display()));
    let text = std::fs::read_to_string(&file).map_err(|e| bad(e.to_string()))?;
    let report: RunReport = serde_json::from_str(&text).map_err(|e| bad(e.to_string()))?;
    if report.schema > SCHEMA {
        return Err(bad(format!("it has form {}, this program knows forms up to {SCHEMA}", report.schema)));
    }
    Ok(report)
}

/// Any part of a report as a JSON document with a line break at its end.
///
/// # Errors
/// A number that JSON cannot express.
pub fn json<T: serde::Serialize>(value: &T) -> Result<String, LabError> {
    let text = serde_json::to_string_pretty(value).map_err(|e| LabError::Internal(e.to_string()))?;
    Ok(text + "\n")
}

fn write_file(dir: &Path, name: &str, text: &str) -> Result<(), LabError> {
    let file = dir.join(name);
    // Under its name only when it is whole: a full disk must not leave half a report that somebody reads.
    let written = tempfile::Builder::new().prefix(name).tempfile_in(dir).and_then(|mut draft| {
        draft.write_all(text.as_bytes())?;
        let mode = std::fs::Permissions::from_mode(0o644);
        draft.as_file().set_permissions(mode)?;
        draft.persist(&file).map_err(|e| e.error)
    });
    written.map(drop).map_err(LabError::io("write", &file))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_comes_back_from_its_folder_as_it_was() {
        let dir = tempfile::tempdir().expect("a folder");
        let out = dir.path().join("deep/down");
        for report in [sample::green(), sample::red()] {
            write(&out, &report).expect("written");
            assert_eq!(load(&out).expect("read"), report);
        }
        for name in ["report.json", "report.html", "junit.xml", "summary.md"] {
            assert!(out.join(name).metadata().expect(name).len() > 0, "{name}");
        }
    }

    /// A lab played everything and found only then that it had nowhere to write.
    #[test]
    fn a_place_that_takes_no_report_is_refused_before_anything_is_played() {
        let dir = tempfile::tempdir().expect("a folder");
        assert!(prepare(&dir.path().join("new/one")).is_ok());
        let file = dir.path().join("file");
        std::fs::write(&file, "mine").expect("written");
        assert!(prepare(&file).expect_err("a refusal").to_string().contains("cannot write reports into"));
        assert_eq!(std::fs::read_to_string(&file).expect("read"), "mine");
    }

    #[test]
    fn everything_can_be_made_again_from_the_json_alone() {
        let dir = tempfile::tempdir().expect("a folder");
        write(dir.path(), &sample::red()).expect("written");
        let first = std::fs::read_to_string(dir.path().join("report.html")).expect("a page");
        std::fs::remove_file(dir.path().join("report.html")).expect("removed");
        render(dir.path(), &load(dir.path()).expect("read")).expect("rendered");
        assert_eq!(std::fs::read_to_string(dir.path().join("report.html")).expect("a page"), first);
    }

    #[test]
    fn what_is_no_report_or_one_of_tomorrow_is_refused() {
        let dir = tempfile::tempdir().expect("a folder");
        assert!(load(dir.path()).is_err());
        std::fs::write(dir.path().join(FILE_NAME), "{}").expect("written");
        assert!(load(dir.path()).is_err());
        let mut report = sample::green();
        report.schema = SCHEMA + 1;
        write(dir.path(), &report).expect("written");
        assert!(load(dir.path()).expect_err("a refusal").to_string().contains("knows forms up to"));
    }
}
