//! Counts allocations and the bytes that are allocated, of the whole process. It has one thread.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

static COUNT: AtomicU64 = AtomicU64::new(0);
static LIVE: AtomicU64 = AtomicU64::new(0);
static PEAK: AtomicU64 = AtomicU64::new(0);

struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Loads and stores, which cost less than what is atomic: there is one thread.
fn grow(bytes: usize) {
    COUNT.store(COUNT.load(Relaxed) + 1, Relaxed);
    let live = LIVE.load(Relaxed) + bytes as u64;
    LIVE.store(live, Relaxed);
    if live > PEAK.load(Relaxed) {
        PEAK.store(live, Relaxed);
    }
}

fn shrink(bytes: usize) {
    LIVE.store(LIVE.load(Relaxed) - bytes as u64, Relaxed);
}

// SAFETY: all is passed on to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        grow(layout.size());
        // SAFETY: as the caller has promised.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        grow(layout.size());
        // SAFETY: as the caller has promised.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        shrink(layout.size());
        // SAFETY: as the caller has promised.
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        shrink(layout.size());
        grow(size);
        // SAFETY: as the caller has promised.
        unsafe { System.realloc(block, layout, size) }
    }
}

/// Allocations so far, and bytes that are allocated, which are the least that the peak is from now on.
pub fn begin() -> (u64, u64) {
    PEAK.store(LIVE.load(Relaxed), Relaxed);
    (COUNT.load(Relaxed), LIVE.load(Relaxed))
}

/// Allocations since then, and how many bytes more were allocated at the most.
pub fn since((count, live): (u64, u64)) -> (u64, u64) {
    (COUNT.load(Relaxed) - count, PEAK.load(Relaxed) - live)
}
