//! Work side by side, results in the order of the items whatever the number of threads.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::error::LabError;

/// Does `work` for every item with `jobs` threads.
///
/// # Errors
/// The first failure in the order of the items; after one no further item is begun.
pub fn parallel<T: Sync, R: Send>(
    jobs: usize,
    items: &[T],
    work: impl Fn(&T) -> Result<R, LabError> + Sync,
) -> Result<Vec<R>, LabError> {
    let results = parallel_while(jobs, items, || true, work)?;
    Ok(results.into_iter().flatten().collect())
}

/// Like [`parallel`], but begins no further item once `go_on` says no; items that were not begun have no result.
///
/// # Errors
/// See [`parallel`].
pub fn parallel_while<T: Sync, R: Send>(
    jobs: usize,
    items: &[T],
    go_on: impl Fn() -> bool + Sync,
    work: impl Fn(&T) -> Result<R, LabError> + Sync,
) -> Result<Vec<Option<R>>, LabError> {
    let next = AtomicUsize::new(0);
    let results: Mutex<Vec<Option<Result<R, LabError>>>> = Mutex::new(items.iter().map(|_| None).collect());
    let worker = || {
        while go_on() {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(index) else { return };
            let result = work(item);
            if result.is_err() {
                next.store(items.len(), Ordering::Relaxed);
            }
            if let Ok(mut results) = results.lock() {
                results[index] = Some(result);
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..jobs.clamp(1, items.len().max(1)) {
            scope.spawn(worker);
        }
    });
    let results = results.into_inner().map_err(|_| LabError::poisoned())?;
    results.into_iter().map(Option::transpose).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_keep_the_order_of_the_items() {
        let items: Vec<u64> = (0..50).collect();
        let slow = |n: &u64| {
            std::thread::sleep(std::time::Duration::from_micros((50 - n) * 20));
            Ok(n * 2)
        };
        let results = parallel(4, &items, slow).expect("results");
        assert_eq!(results, (0..50).map(|n| n * 2).collect::<Vec<_>>());
    }

    #[test]
    fn a_failure_ends_the_work_and_comes_back() {
        let begun = AtomicUsize::new(0);
        let items: Vec<u64> = (0..1000).collect();
        let fail = |n: &u64| {
            begun.fetch_add(1, Ordering::Relaxed);
            if *n == 3 {
                return Err(LabError::Internal("three".to_owned()));
            }
            Ok(())
        };
        assert!(parallel(2, &items, fail).is_err());
        assert!(begun.load(Ordering::Relaxed) < 1000);
    }

    #[test]
    fn what_is_not_begun_has_no_result() {
        let begun = AtomicUsize::new(0);
        let work = |_: &u64| Ok(begun.fetch_add(1, Ordering::Relaxed));
        let go_on = || begun.load(Ordering::Relaxed) < 3;
        let results = parallel_while(1, &[1, 2, 3, 4, 5], go_on, work).expect("results");
        assert_eq!(results, [Some(0), Some(1), Some(2), None, None]);
    }
}
