//! One fresh folder for one scenario. Below it `world` is the agent's working folder (plan, inputs, `state.db`,
//! artifacts) and `lab` holds what the lab needs for itself, so that nothing of the lab can be taken for an effect.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use tempfile::TempDir;

use crate::agent::process::{Env, Launch, Outcome, Running};
use crate::agent::stray::{self, Stray};
use crate::agent::target::Target;
use crate::case::plan::PlanCase;
use crate::case::world;
use crate::contract::{DB_FILE, PLAN_FILE};
use crate::error::LabError;
use crate::look::files;
use crate::look::reader;
use crate::look::snapshot::Snapshot;
use crate::look::tables::Tables;
use crate::schedule::CrashPoint;
use crate::server::ledger::{Fault, Ledger};

/// Where folders go if nobody chooses: memory, where there is such a file system.
#[must_use]
pub fn default_root() -> PathBuf {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() }
}

/// One scenario's folder. Dropped, it is removed and what the agent left running is ended.
pub struct Sandbox {
    dir: TempDir,
    case: Arc<PlanCase>,
    launched: usize,
    /// How many had been launched when strays were looked for last.
    swept: usize,
    /// Whether a resume came at once: what the killed process has left had the time
    /// of a whole run to end.
    at_once: bool,
    /// Its book in the ledger, where its effects are there and not in the folder.
    book: Option<Book>,
}

/// A page of the shared ledger for one folder; gone with it.
struct Book {
    ledger: &'static Ledger,
    name: String,
}

impl Book {
    fn new() -> Result<Self, LabError> {
        static COUNT: AtomicU64 = AtomicU64::new(1);
        let name = format!("book{}", COUNT.fetch_add(1, Ordering::Relaxed));
        Ok(Self { ledger: Ledger::shared()?, name })
    }
}

impl Drop for Book {
    fn drop(&mut self) {
        self.ledger.close(&self.name);
    }
}

impl Sandbox {
    /// A fresh folder below `root` with the plan and its inputs.
    ///
    /// # Errors
    /// A folder or file that cannot be created.
    pub fn new(root: &Path, case: &Arc<PlanCase>) -> Result<Self, LabError> {
        let sandbox = Self::empty(root, case)?;
        if case.kind.is_created() {
            sandbox.write(PLAN_FILE, case.text.as_bytes())?;
        }
        for (name, content) in &case.files {
            sandbox.write(name, content)?;
        }
        Ok(sandbox)
    }

    /// A folder without any file.
    ///
    /// # Errors
    /// A folder that cannot be created.
    pub fn empty(root: &Path, case: &Arc<PlanCase>) -> Result<Self, LabError> {
        let mut builder = tempfile::Builder::new();
        let made = builder.prefix(crate::agent::stray::PREFIX).tempdir_in(root);
        let dir = made.map_err(LabError::io("create a folder in", root))?;
        for name in ["world", "lab"] {
            let path = dir.path().join(name);
            std::fs::create_dir(&path).map_err(LabError::io("create", &path))?;
        }
        let book = case.kind.is_served().then(Book::new).transpose()?;
        Ok(Self { dir, case: Arc::clone(case), launched: 0, swept: 0, at_once: false, book })
    }

    /// A second folder with the same content, for another continuation of the same past. Only while no process is at
    /// work in this one.
    ///
    /// # Errors
    /// A file that cannot be copied.
    pub fn fork(&self, root: &Path) -> Result<Self, LabError> {
        let twin = Self::empty(root, &self.case)?;
        copy_tree(&self.world(), &twin.world())?;
        if let (Some(from), Some(to)) = (&self.book, &twin.book) {
            from.ledger.copy(&from.name, &to.name);
        }
        Ok(twin)
    }

    /// Lets the next requests go wrong that the agent sends, one fault each.
    pub fn fail(&self, faults: impl IntoIterator<Item = Fault>) {
        if let Some(book) = &self.book {
            book.ledger.fail(&book.name, faults);
        }
    }

    /// The variable that tells the agent where its effects go.
    #[must_use]
    pub fn address(&self) -> Env {
        let of = |book: &Book| (world::LEDGER, format!("{}/{}", book.ledger.url(), book.name));
        self.book.iter().map(of).collect()
    }

    /// What came of requests, once each, as files that are named after their keys: so it looks the same wherever an
    /// effect is. What is under way is waited for.
    fn served(&self) -> BTreeMap<String, Vec<u8>> {
        let mut files = BTreeMap::<String, Vec<u8>>::new();
        let Some(book) = &self.book else { return files };
        book.ledger.settle(&book.name);
        for effect in book.ledger.book(&book.name).effects {
            let sent: serde_json::Value = serde_json::from_str(&effect.body).unwrap_or_default();
            let key = sent["key"].as_str().unwrap_or("unknown");
            files.entry(world::file_of_key(key)).or_default().extend(format!("{key}\n").bytes());
        }
        files
    }

    /// What is played here.
    #[must_use]
    pub fn case(&self) -> &Arc<PlanCase> {
        &self.case
    }

    /// The agent's working folder.
    #[must_use]
    pub fn world(&self) -> PathBuf {
        self.dir.path().join("world")
    }

    /// The agent's database.
    #[must_use]
    pub fn db(&self) -> PathBuf {
        self.world().join(DB_FILE)
    }

    fn lab(&self) -> PathBuf {
        self.dir.path().join("lab")
    }

    /// Writes a file into the agent's working folder.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn write(&self, name: &str, content: &[u8]) -> Result<(), LabError> {
        let path = self.world().join(name);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).map_err(LabError::io("create", parent))?;
        }
        std::fs::write(&path, content).map_err(LabError::io("write", &path))
    }

    /// The agent with `--db state.db` before `args`, to be started here.
    pub fn launch<'a>(
        &mut self,
        target: &'a Target,
        args: &[impl AsRef<str>],
        env: &[(&'static str, String)],
    ) -> Launch<'a> {
        self.launched += 1;
        let stem = self.lab().join(format!("p{}", self.launched));
        let words = ["--db", DB_FILE].into_iter().chain(args.iter().map(AsRef::as_ref));
        Launch::new(target, words, &self.world(), &stem).env([env.to_vec(), self.address()].concat())
    }

    /// Starts the agent here with `--db state.db` before `args`.
    ///
    /// # Errors
    /// An agent that cannot be started.
    pub fn start(
        &mut self,
        target: &Target,
        args: &[impl AsRef<str>],
        env: &[(&'static str, String)],
    ) -> Result<Running, LabError> {
        self.launch(target, args, env).start()
    }

    /// Waits for a process of this folder to end.
    ///
    /// # Errors
    /// See [`Running::finish`].
    pub fn finish(&mut self, running: Running) -> Result<Outcome, LabError> {
        running.finish()
    }

    /// Waits for a process to end, and for nothing that it may have left.
    ///
    /// # Errors
    /// See [`Running::finish`].
    pub fn finish_at_once(&mut self, running: Running) -> Result<Outcome, LabError> {
        self.at_once = true;
        running.finish_at_once()
    }

    /// Ends what still runs here, wherever it has gone, when all processes that
    /// were launched have ended. Once for a whole scenario: it looks at every
    /// process of the system.
    #[must_use]
    pub fn strays(&mut self) -> Vec<Stray> {
        if self.swept == self.launched {
            return Vec::new();
        }
        self.swept = self.launched;
        stray::end_below(self.dir.path(), if self.at_once { Duration::ZERO } else { stray::GRACE })
    }

    /// Plays `create` for a task.
    ///
    /// # Errors
    /// An agent that cannot be started.
    pub fn create(&mut self, target: &Target, task: &str) -> Result<Outcome, LabError> {
        let running = self.start(target, &["create", task, PLAN_FILE], &[])?;
        self.finish(running)
    }

    /// Where the next process shall record its crash points.
    #[must_use]
    pub fn record_file(&self) -> PathBuf {
        self.lab().join(format!("record{}", self.launched + 1))
    }

    /// Reads what a process recorded; nothing where it left no file.
    ///
    /// # Errors
    /// A file that cannot be read, and lines that are not crash points.
    pub fn recorded(file: &Path) -> Result<Option<Vec<CrashPoint>>, LabError> {
        if !file.exists() {
            return Ok(None);
        }
        let text = std::fs::read_to_string(file).map_err(LabError::io("read", file))?;
        let points = text.lines().map(|line| {
            line.parse::<CrashPoint>()
                .map_err(|e| LabError::Inventory(format!("the agent recorded what is not a crash point: {e}")))
        });
        points.collect::<Result<_, _>>().map(Some)
    }

    /// Makes files look written so many seconds ago, or that far ahead: those whose names `which` says yes to.
    ///
    /// # Errors
    /// A file that cannot be dated.
    pub fn age(&self, seconds: i64, which: impl Fn(&str) -> bool) -> Result<(), LabError> {
        let root = self.world();
        let by = Duration::from_secs(seconds.unsigned_abs());
        let then = if seconds < 0 { SystemTime::now() + by } else { SystemTime::now() - by };
        walk(&root, &mut |path| {
            if path.is_symlink() || !which(&relative(&root, path)) {
                return Ok(());
            }
            let file = std::fs::File::options().append(true).open(path);
            file.and_then(|file| file.set_modified(then)).map_err(LabError::io("date", path))
        })
    }

    /// The action log's bytes, where there is one.
    ///
    /// # Errors
    /// A file that cannot be read.
    pub fn log(&self) -> Result<Option<Vec<u8>>, LabError> {
        let path = self.case.kind.log().map(|log| self.world().join(log)).filter(|path| path.exists());
        path.map(|path| content(&path)).transpose()
    }

    /// Looks at the folder while no process is at work in it.
    ///
    /// # Errors
    /// Files that cannot be read.
    pub fn look(&self) -> Result<Snapshot, LabError> {
        let (tables, faults) = reader::read_at_rest(&self.db(), &self.lab())?;
        self.look_around(tables, faults)
    }

    /// Like [`Sandbox::look`] where the database is known already.
    ///
    /// # Errors
    /// Files that cannot be read.
    pub fn look_around(&self, tables: Tables, faults: Vec<String>) -> Result<Snapshot, LabError> {
        let mut world = BTreeMap::new();
        let mut written = BTreeMap::new();
        let mut own_files = Vec::new();
        let root = self.world();
        walk(&root, &mut |path| {
            let name = relative(&root, path);
            if self.case.effects.ignores(&name) {
                return Ok(());
            }
            if name.starts_with(DB_FILE) {
                own_files.push(name);
            } else if !self.case.is_input(&name) && self.case.kind.log() != Some(&name) && self.case.is_effect(&name) {
                written.insert(name.clone(), written_at(path)?);
                world.insert(name, content(path)?);
            }
            Ok(())
        })?;
        world.extend(self.served());
        own_files.sort();
        let log = self.log()?;
        Ok(Snapshot { tables, faults, world, log, damaged_log: None, written, own_files })
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        // What nobody asked for is told by nobody, but must not stay either.
        if self.swept != self.launched {
            stray::kill_below(self.dir.path());
        }
    }
}

fn relative(root: &Path, path: &Path) -> String {
    let below = path.strip_prefix(root).unwrap_or(path);
    below.to_string_lossy().into_owned()
}

/// A file's bytes; for a symbolic link, where it points.
fn content(path: &Path) -> Result<Vec<u8>, LabError> {
    if path.is_symlink() {
        let to = std::fs::read_link(path).map_err(LabError::io("read", path))?;
        return Ok(format!("-> {}", to.display()).into_bytes());
    }
    files::read(path).map_err(LabError::io("read", path))
}

fn written_at(path: &Path) -> Result<SystemTime, LabError> {
    let meta = std::fs::symlink_metadata(path);
    meta.and_then(|meta| meta.modified()).map_err(LabError::io("look at", path))
}

/// Visits all files and links; a pipe, a socket and a device hold nothing that could be judged.
fn walk(dir: &Path, visit: &mut dyn FnMut(&Path) -> Result<(), LabError>) -> Result<(), LabError> {
    for entry in std::fs::read_dir(dir).map_err(LabError::io("read", dir))? {
        let entry = entry.map_err(LabError::io("read", dir))?;
        let kind = entry.file_type().map_err(LabError::io("read", dir))?;
        if kind.is_dir() {
            walk(&entry.path(), visit)?;
        } else if kind.is_file() || kind.is_symlink() {
            visit(&entry.path())?;
        }
    }
    Ok(())
}

/// Copies with the times of writing: they tell whether a result was made again.
fn copy_tree(from: &Path, to: &Path) -> Result<(), LabError> {
    walk(from, &mut |path| {
        let target = to.join(relative(from, path));
        if let Some(parent) = target.parent() {
            std::fs::create_dir_all(parent).map_err(LabError::io("create", parent))?;
        }
        if path.is_symlink() {
            let linked = std::fs::read_link(path).and_then(|to| std::os::unix::fs::symlink(to, &target));
            return linked.map_err(LabError::io("copy", path));
        }
        std::fs::copy(path, &target).map_err(LabError::io("copy", path))?;
        let time = written_at(path)?;
        let file = std::fs::File::options().append(true).open(&target);
        file.and_then(|file| file.set_modified(time)).map_err(LabError::io("date", &target))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_agent_made_is_world() {
        let root = tempfile::tempdir().expect("dir");
        let sandbox = Sandbox::new(root.path(), &Arc::new(PlanCase::report())).expect("sandbox");
        for (name, content) in [("artifacts/t1-2.md", "text"), ("state.db-wal", "log"), ("state.db.t1.lock", "")] {
            sandbox.write(name, content.as_bytes()).expect("write");
        }
        let look = sandbox.look().expect("look");
        assert_eq!(look.world.keys().collect::<Vec<_>>(), ["artifacts/t1-2.md"]);
        assert_eq!(look.own_files, ["state.db-wal", "state.db.t1.lock"]);
        assert_eq!(look.faults, ["there is no database"]);
        let twin = sandbox.fork(root.path()).expect("fork");
        assert_eq!(twin.look().expect("look"), look);
    }

    #[test]
    fn a_pipe_and_a_socket_hang_nobody_and_are_nobodys_effect() {
        let root = tempfile::tempdir().expect("dir");
        let sandbox = Sandbox::new(root.path(), &Arc::new(PlanCase::report())).expect("sandbox");
        let before = sandbox.look().expect("look");
        let pipe = sandbox.world().join("pipe");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
        let _listener = std::os::unix::net::UnixListener::bind(sandbox.world().join("socket")).expect("a socket");
        assert_eq!(sandbox.look().expect("look"), before);
        assert_eq!(sandbox.fork(root.path()).expect("fork").look().expect("look"), before);
    }

    #[test]
    fn recorded_points_are_read_and_a_bad_line_is_refused() {
        let dir = tempfile::tempdir().expect("dir");
        let file = dir.path().join("record");
        assert_eq!(Sandbox::recorded(&file).expect("read"), None);
        std::fs::write(&file, "run.started\nbefore_effect:0\nx.y:1#2\n").expect("write");
        let points = Sandbox::recorded(&file).expect("read").expect("points");
        assert_eq!(points[2].hit, 2);
        std::fs::write(&file, "Before effect\n").expect("write");
        assert!(Sandbox::recorded(&file).is_err());
    }
}
