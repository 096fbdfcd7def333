//! What the wrong parts of one process know of each other.

use std::cell::{Cell, RefCell};
use std::path::PathBuf;
use std::rc::Rc;

use store::model::TaskState;

/// Shared by the store, the action log and the report.
#[derive(Clone, Default)]
pub(crate) struct Known(Rc<Facts>);

#[derive(Default)]
struct Facts {
    /// The state as the run found it.
    found: Cell<Option<TaskState>>,
    /// Where the action log is.
    log: RefCell<Option<PathBuf>>,
    /// A report that the caller takes for published.
    report: RefCell<Option<LateReport>>,
}

/// A report that is to be published at last.
pub(crate) struct LateReport {
    pub(crate) path: PathBuf,
    pub(crate) key: String,
    pub(crate) content: Vec<u8>,
}

impl Known {
    /// The state as it was read first; later ones are the run's own doing.
    pub(crate) fn find(&self, state: TaskState) {
        if self.0.found.get().is_none() {
            self.0.found.set(Some(state));
        }
    }

    pub(crate) fn found(&self) -> Option<TaskState> {
        self.0.found.get()
    }

    pub(crate) fn log_is_at(&self, path: PathBuf) {
        self.0.log.replace(Some(path));
    }

    pub(crate) fn log(&self) -> Option<PathBuf> {
        self.0.log.borrow().clone()
    }

    pub(crate) fn put_off(&self, report: LateReport) {
        self.0.report.replace(Some(report));
    }

    pub(crate) fn take_late_report(&self) -> Option<LateReport> {
        self.0.report.take()
    }
}
