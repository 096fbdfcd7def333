//! The report with wrong ways of publishing it.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::Path;

use serde_json::Value;
use store::model::TaskId;
use store::{Crash, CrashScope, Reader};
use tools::{Content, PublishError, Published, ReplaceSites};

use crate::known::{Known, LateReport};
use crate::plant::{Report, ReportSync};

/// Crash points of a publication that passes none.
const NOWHERE: ReplaceSites = {
    let site = store::CrashSite("");
    ReplaceSites { written: site, renamed: site, unchanged: site, published: site }
};

/// What publishes in the place of [`tools::replace`].
pub(crate) struct PlantedReport {
    way: Report,
    known: Known,
}

impl PlantedReport {
    pub(crate) fn new(way: Report, known: Known) -> Self {
        Self { way, known }
    }

    pub(crate) fn replace(
        &self,
        path: &Path,
        key: &str,
        content: &mut Content<'_>,
        sites: ReplaceSites,
        crash: CrashScope<'_>,
    ) -> Result<Published, PublishError> {
        let found = self.known.found();
        let over = found.is_some_and(|state| state.status.is_over());
        let failed = |source: io::Error| PublishError::Io { op: "publish", path: path.to_owned(), source };
        let mut text = Vec::new();
        match self.way {
            Report::NotPutBack if over => Ok(Published::AlreadyThere),
            Report::Late if !over => {
                content(&mut text).map_err(failed)?;
                self.known.put_off(LateReport { path: path.to_owned(), key: key.to_owned(), content: text });
                Ok(Published::New)
            }
            Report::OfThisRunFirst => {
                content(&mut text).map_err(failed)?;
                let turned = turned(&text, found.map_or(0, |state| state.cursor as usize));
                tools::replace(path, key, &mut |out| out.write_all(&turned), sites, crash)
            }
            Report::InPlace => {
                content(&mut text).map_err(failed)?;
                in_place(path, &text, sites, crash).map_err(failed)
            }
            Report::ByTemporary(sync) => {
                content(&mut text).map_err(failed)?;
                by_temporary(path, key, &text, sync, sites, crash).map_err(failed)
            }
            _ => tools::replace(path, key, content, sites, crash),
        }
    }
}

/// Publishes at last what was put off.
pub(crate) fn catch_up(known: &Known) -> io::Result<()> {
    known.take_late_report().map_or(Ok(()), |late| publish(&late.path, &late.key, &late.content))
}

/// Publishes a report of the steps before `end`.
pub(crate) fn publish_part(reader: &mut dyn Reader, task: &TaskId, end: u32) -> io::Result<()> {
    let Some(completion) = reader.completion(task).map_err(io::Error::other)? else { return Ok(()) };
    let mut results = Vec::new();
    for step in 0..end {
        results.extend(reader.output(task, step).map_err(io::Error::other)?.map(Value::Object));
    }
    let out = completion["report"]["out"].as_str().unwrap_or_default();
    publish(Path::new(out), &format!("{task}-report"), format!("{}\n", Value::Array(results)).as_bytes())
}

fn publish(path: &Path, key: &str, content: &[u8]) -> io::Result<()> {
    let crash = Crash::off();
    let done = tools::replace(path, key, &mut |out| out.write_all(content), NOWHERE, crash.scope(None));
    done.map(|_| ()).map_err(io::Error::other)
}

/// The results from number `first` on before the others, a result a line as it should be.
fn turned(text: &[u8], first: usize) -> Vec<u8> {
    let text = String::from_utf8_lossy(text);
    let lines = text.lines().map(|line| line.trim_end_matches(','));
    let mut results: Vec<&str> = lines.filter(|line| line.starts_with('{')).collect();
    let first = first.min(results.len());
    results.rotate_left(first);
    format!("[\n{}\n]\n", results.join(",\n")).into_bytes()
}

/// Empties the file under its own name and fills it again, in two pieces as any large one is.
fn in_place(path: &Path, text: &[u8], sites: ReplaceSites, crash: CrashScope<'_>) -> io::Result<Published> {
    let (head, tail) = text.split_at(text.len() / 2);
    let mut file = File::create(path)?;
    file.write_all(head)?;
    crash.point(sites.written);
    file.write_all(tail)?;
    file.sync_all()?;
    tools::sync_folder(tools::folder_of(path)).map_err(io::Error::other)?;
    crash.point(sites.published);
    Ok(Published::New)
}

fn by_temporary(
    path: &Path,
    key: &str,
    text: &[u8],
    sync: ReportSync,
    sites: ReplaceSites,
    crash: CrashScope<'_>,
) -> io::Result<Published> {
    let folder = tools::folder_of(path);
    let temporary = folder.join(format!(".{key}.{}.tmp", std::process::id()));
    let mut file = File::create(&temporary)?;
    file.write_all(text)?;
    match sync {
        ReportSync::NoFile => {}
        ReportSync::Ignored => drop(file.sync_all()),
        ReportSync::NoFolder => file.sync_all()?,
    }
    crash.point(sites.written);
    fs::rename(&temporary, path)?;
    crash.point(sites.renamed);
    if sync != ReportSync::NoFolder {
        tools::sync_folder(folder).map_err(io::Error::other)?;
    }
    crash.point(sites.published);
    Ok(Published::New)
}
