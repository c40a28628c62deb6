// HearthConcurrency: threads, what they share, and time. No sockets and no data.
//
// - Work: `WorkerPool` has the threads for what would block an event loop, served round-robin between accounts by
//   `FairQueue`; `WorkerThread` is one thread with a queue, `Periodic` one that wakes up at intervals, `Mailbox` the
//   way to a loop.
// - Waiting: `Monitor`, `Latch` and `Awaited` for threads, `Answer` for tasks; `Cancellation` says that a result is
//   not wanted.
// - Memory: a `MemoryBudget` bounds what peers make the process hold; budgets share a `MemoryPool`.
// - Time: `Clock` is a parameter of whatever needs the time; `SystemClock`, `SteadyClock`, and clocks that tests set.
// - `Interleaving` runs threads one at a time in an order that a seed determines, for tests.
