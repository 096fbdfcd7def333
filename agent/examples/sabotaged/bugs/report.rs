//! Bugs of the report that an inbox task ends with.

use super::{BUG, Bug, FAULTS, POWER, PlanKind};
use crate::plant::{HONEST, Plant, Report, ReportSync};

pub(super) static BUGS: &[Bug] = &[
    Bug {
        name: "report_before_last_step",
        about: "The report is published in part before the last step is done.",
        methods: &["points", "observe"],
        caught_by: &["report_whole"],
        plant: report(Report::Early),
        ..REPORT
    },
    Bug {
        name: "report_after_task_done",
        about: "The task is committed as done before its report is published.",
        caught_by: &["report_whole"],
        plant: report(Report::Late),
        ..REPORT
    },
    Bug {
        name: "report_in_place",
        about: "The report is emptied and filled again under its own name.",
        caught_by: &["report_whole"],
        plant: report(Report::InPlace),
        ..REPORT
    },
    Bug {
        name: "report_not_put_back",
        about: "A report that has gone missing from a finished task stays away.",
        methods: &["log"],
        caught_by: &["report_whole"],
        plant: report(Report::NotPutBack),
        ..REPORT
    },
    Bug {
        name: "report_order_wrong_on_resume",
        about: "A resumed run puts its own results before those of the run that was killed.",
        caught_by: &["report_whole"],
        plant: report(Report::OfThisRunFirst),
        ..REPORT
    },
    Bug {
        name: "report_not_synced",
        about: "The report gets its name before its content is on the disk.",
        methods: POWER,
        caught_by: &["report_whole"],
        plant: report(Report::ByTemporary(ReportSync::NoFile)),
        ..REPORT
    },
    Bug {
        name: "report_folder_not_synced",
        about: "The task is committed as done before the report's name is on the disk.",
        methods: POWER,
        caught_by: &["report_whole"],
        plant: report(Report::ByTemporary(ReportSync::NoFolder)),
        ..REPORT
    },
    Bug {
        name: "report_fsync_error_ignored",
        about: "A sync of the report that fails is taken for one that did not.",
        methods: FAULTS,
        caught_by: &["no_false_success"],
        plant: report(Report::ByTemporary(ReportSync::Ignored)),
        ..REPORT
    },
];

const REPORT: Bug = Bug { plan: PlanKind::Inbox, ..BUG };

const fn report(way: Report) -> Plant {
    Plant { report: way, ..HONEST }
}
