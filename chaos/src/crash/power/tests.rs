use std::collections::BTreeSet;

use super::acks::Facts;
use super::enumerate::Limits;
use super::model::{Disk, Effect, Node, Rules, Scope};
use super::states::states;
use super::trail::{Entry, Trail, What};
use crate::schedule::CallPoint;

const LIMITS: Limits = Limits { all_up_to: 8, samples: 20, tears: 99, most: usize::MAX };

fn trail(base: Disk, script: Vec<What>) -> Trail {
    let at = CallPoint { phase: "open".to_owned(), call: "x".to_owned(), nth: 1 };
    let entry = |what| Entry { at: at.clone(), call: 0, what, text: String::new(), process: 0, told: Facts::new() };
    let entries = script.into_iter().map(entry).collect();
    Trail { base, entries, processes: Vec::new(), blind: Vec::new(), threads: 1 }
}

fn name(path: &str, file: u64) -> What {
    What::Effect(Effect::Name { path: path.to_owned(), node: Node::File(file) })
}

fn data(file: u64, text: &str) -> What {
    What::Effect(Effect::Data { file, offset: 0, data: text.as_bytes().into() })
}

fn sync_folder(path: &str) -> What {
    What::Sync(Scope::Folder(path.to_owned()))
}

/// Every folder that is possible at some moment, as `name=content` lists.
fn shown(trail: &Trail) -> BTreeSet<String> {
    let found = states(trail, &LIMITS, 1);
    let show = |state| {
        let image = found.image(state);
        let files = image.files.iter().map(|(name, bytes)| format!("{name}={}", String::from_utf8_lossy(bytes)));
        files.chain(image.folders.iter().map(|name| format!("{name}/"))).collect::<Vec<_>>().join(" ")
    };
    found.all.iter().map(show).collect()
}

/// Those that are possible after the last entry.
fn at_end(trail: &Trail) -> BTreeSet<String> {
    let end = Trail { entries: trail.entries.clone(), ..trail.clone() };
    let found = states(&end, &LIMITS, 1);
    let last = trail.entries.len() - 1;
    let found_last = found.all.iter().filter(|state| state.moment == last);
    found_last.map(|state| found.image(state).files.keys().cloned().collect::<Vec<_>>().join(" ")).collect()
}

#[test]
fn an_unsynced_name_and_unsynced_content_are_lost_apart() {
    let trail = trail(Disk::default(), vec![name("a", 1), data(1, "x")]);
    assert_eq!(shown(&trail), BTreeSet::from(["", "a=", "a=x"].map(str::to_owned)));
}

#[test]
fn a_synced_file_in_an_unsynced_folder_may_have_no_name() {
    let trail = trail(Disk::default(), vec![name("a", 1), data(1, "x"), What::Sync(Scope::File(1)), What::Told]);
    assert_eq!(at_end(&trail), BTreeSet::from(["", "a"].map(str::to_owned)));
    let found = states(&trail, &LIMITS, 1);
    let empty = found.all.iter().filter(|state| state.moment == 3);
    assert!(empty.clone().all(|state| found.image(state).files.values().all(|bytes| bytes[..] == *b"x")));
    assert_eq!(empty.count(), 2);
}

#[test]
fn file_and_folder_synced_leave_one_disk() {
    let script = vec![name("a", 1), data(1, "x"), What::Sync(Scope::File(1)), sync_folder(""), What::Told];
    assert_eq!(at_end(&trail(Disk::default(), script)), BTreeSet::from(["a".to_owned()]));
}

#[test]
fn a_planted_missing_sync_of_the_folder_shows_and_of_the_parent_too() {
    let folder = || What::Effect(Effect::Folder { path: "d".to_owned() });
    let publish = |syncs: Vec<What>| {
        let mut script = vec![folder(), name("d/a", 1), data(1, "x"), What::Sync(Scope::File(1))];
        script.extend(syncs);
        script.push(What::Told);
        at_end(&trail(Disk::default(), script))
    };
    let whole = BTreeSet::from(["d/a".to_owned()]);
    let lost = BTreeSet::from([String::new(), "d/a".to_owned()]);
    assert_eq!(publish(vec![sync_folder("d"), sync_folder("")]), whole);
    assert_eq!(publish(vec![sync_folder("d")]), lost, "the parent is not synced");
    assert_eq!(publish(vec![sync_folder("")]), lost, "the folder is not synced");
    assert_eq!(publish(vec![What::Sync(Scope::All)]), whole);
}

#[test]
fn a_move_is_never_half_done() {
    let mut base = Disk::default();
    for (path, file, text) in [("new", 1, "n"), ("old", 2, "o")] {
        base.names.insert(path.to_owned(), Node::File(file));
        base.contents.insert(file, text.as_bytes().into());
    }
    let node = Node::File(1);
    let effect = Effect::Move { from: "new".to_owned(), to: "old".to_owned(), node };
    let trail = trail(base, vec![What::Effect(effect)]);
    assert_eq!(shown(&trail), BTreeSet::from(["new=n old=o", "old=n"].map(str::to_owned)));
}

#[test]
fn a_link_outlives_the_loss_of_the_name_that_it_was_made_from() {
    let remove = What::Effect(Effect::Remove { path: "t".to_owned() });
    let trail = trail(Disk::default(), vec![name("t", 1), name("a", 1), remove]);
    assert_eq!(shown(&trail), BTreeSet::from(["", "a=", "a= t=", "t="].map(str::to_owned)));
}

#[test]
fn a_long_write_is_torn_at_every_sector_and_a_short_one_is_not() {
    let content = "a".repeat(512) + &"b".repeat(512);
    let long = vec![name("f", 1), sync_folder(""), data(1, &content)];
    let lengths: BTreeSet<usize> = shown(&trail(Disk::default(), long)).iter().map(String::len).collect();
    assert_eq!(lengths, BTreeSet::from([0, 2, 2 + 512, 2 + 1024]), "none, whole, and either half");
    let short = vec![name("f", 1), sync_folder(""), data(1, "xy")];
    assert_eq!(shown(&trail(Disk::default(), short)).len(), 3);
}

#[test]
fn a_size_is_lost_like_a_write_and_synced_with_its_file() {
    let mut base = Disk::default();
    base.names.insert("f".to_owned(), Node::File(1));
    base.contents.insert(1, b"1234".as_slice().into());
    let cut = What::Effect(Effect::Size { file: 1, len: 2 });
    let trail = trail(base, vec![cut, What::Sync(Scope::File(1)), data(1, "x")]);
    assert_eq!(shown(&trail), BTreeSet::from(["f=1234", "f=12", "f=x2"].map(str::to_owned)));
}

#[test]
fn after_a_sync_that_failed_no_later_one_brings_the_content_back() {
    let failed = What::Failed(Scope::File(1));
    let script = vec![name("a", 1), sync_folder(""), data(1, "x"), failed, What::Sync(Scope::File(1)), What::Told];
    let trail = trail(Disk::default(), script);
    assert_eq!(trail.safe_after(Rules::Strict)[2], None);
    assert!(shown(&trail).contains("a="));
}

#[test]
fn the_same_disk_is_told_once_and_at_its_latest_moment() {
    let trail = trail(Disk::default(), vec![name("a", 1), What::Told, What::Told]);
    let found = states(&trail, &LIMITS, 1);
    assert_eq!(found.all.iter().map(|state| state.moment).collect::<Vec<_>>(), [2, 2]);
    assert_eq!(found.made, 6);
}

#[test]
fn a_journaling_file_system_takes_names_along_with_any_sync() {
    let script = vec![name("a", 1), name("b", 2), What::Sync(Scope::File(9)), What::Told];
    let trail = trail(Disk::default(), script);
    let effect = |i: usize| trail.safe_after(Rules::Journaled)[i];
    assert_eq!((effect(0), effect(1)), (Some(2), Some(2)));
    assert_eq!(trail.safe_after(Rules::Strict)[0], None);
    let found = states(&trail, &LIMITS, 1);
    let lost = found.all.iter().filter(|state| state.moment == 3 && found.image(state).files.is_empty());
    assert!(lost.clone().count() == 1 && lost.clone().all(|state| !found.journaled_too(state)));
}
