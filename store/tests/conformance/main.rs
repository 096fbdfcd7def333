//! What every backend of [`store::Store`] must do, written once against the trait.
//!
//! A backend joins by implementing [`support::Backend`] and by one line at the end of this file.

#![cfg(feature = "sqlite")]
#![expect(clippy::unwrap_used, reason = "a helper that cannot go on fails its test")]

mod atomicity;
mod broken;
mod creating;
mod fencing;
mod journal;
mod leases;
mod reading;
mod sqlite;
mod support;
mod waiting;

/// Makes a module of tests for one backend: each check gets a storage of its own.
macro_rules! conformance {
    ($backend:ident = $fresh:expr; $($topic:ident: $($check:ident)*;)*) => {
        mod $backend {
            $(mod $topic {
                $(#[test]
                fn $check() {
                    crate::$topic::$check(&$fresh);
                })*
            })*
        }
    };
}

/// The list of all checks. A check that is missing here is dead code, which the compiler reports.
macro_rules! every_check {
    ($backend:ident = $fresh:expr) => {
        conformance! { $backend = $fresh;
            creating:
                a_new_task_has_its_row_its_steps_and_its_event
                an_id_is_given_once_and_the_second_plan_is_not_stored
                who_creates_a_task_under_lease_holds_it_from_the_first_moment
                ids_with_spaces_other_alphabets_and_200_bytes_are_kept_apart
                a_plan_comes_back_as_it_was_given
                a_completion_is_kept_and_a_plan_without_one_has_none
                a_plan_that_changes_while_it_is_stored_is_not_stored
                a_home_is_kept_and_a_rebinding_replaces_what_it_names;
            reading:
                an_empty_storage_has_nothing_and_says_so
                an_unknown_task_is_none_and_no_error
                tasks_come_oldest_first
                steps_come_in_pages
                an_output_is_readable_when_its_step_is_done_and_not_before
                two_tasks_do_not_touch_each_other
                what_one_handle_commits_another_reads
                a_snapshot_does_not_move
                a_sound_storage_has_no_findings;
            atomicity:
                a_commit_writes_state_and_events_together
                a_commit_on_other_rows_is_a_conflict_and_changes_nothing
                a_commit_whose_second_step_differs_changes_nothing_of_the_first
                a_task_is_not_done_while_a_row_is_open
                a_command_that_is_refused_stores_nothing
                a_session_that_is_dropped_in_a_step_leaves_the_step_running_for_the_next;
            fencing:
                each_lease_has_a_higher_token
                a_commit_under_an_old_token_is_fenced_and_changes_nothing
                tokens_of_two_tasks_count_apart
                a_lease_can_be_renewed_until_it_is_lost;
            leases:
                a_second_lease_is_held_and_changes_nothing
                a_lease_is_held_against_other_threads_too
                dropping_a_lease_gives_it_back
                leases_of_two_tasks_do_not_meet
                an_unknown_task_has_no_lease
                a_session_of_an_unknown_task_is_missing
                eight_retries_at_once_give_one_fresh_budget;
            journal:
                the_journal_has_the_order_and_times_of_the_commits
                the_journal_of_one_task_comes_in_pages
                the_journal_of_all_tasks_comes_in_pages
                every_event_carries_the_run_that_wrote_it;
            waiting:
                every_state_comes_back_as_it_was_committed
                the_cursor_is_found_among_steps_that_have_failed
                a_word_that_it_happened_brings_its_output
                a_checkpoint_is_kept_until_its_step_is_done
                what_waits_for_a_person_is_listed_and_nothing_else
                a_commit_on_another_wait_or_intent_is_a_conflict
                what_a_plan_file_says_is_kept;
        }
    };
}

every_check!(on_sqlite = crate::sqlite::Sqlite::new());
