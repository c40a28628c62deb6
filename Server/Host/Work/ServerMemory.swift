import HearthConcurrency
import HearthModel
import HearthDocuments

/// The memory that clients make the process hold, counted centrally for all protocols.
///
/// A server has one object, which its network engine and both products share. Each kind of use has a limit and a part
/// of its own. In addition, all kinds use one pool, so that the process stays below the 400 MB of `docs/reference/abuse.md` when
/// all limits are reached at the same time, and no kind blocks another. Memory for decoded requests never comes from
/// the pool: a request must not wait for memory that others may hold for hours. When little of the pool is free, caches
/// are small (`CachePressure`).
package final class ServerMemory: Sendable {
    package let pool: MemoryPool
    /// Bytes that were received and cannot be processed yet: incomplete bodies and messages, messages that arrived out
    /// of order, messages that wait for a stream, requests that wait for memory, decoded queries that wait for a worker
    /// or a long read.
    package let received: MemoryBudget
    /// The decoded size of requests in progress.
    package let working: WorkingMemory
    /// Messages of the Realtime Database that wait for clients that do not read, or do not poll.
    package let unread: MemoryBudget
    /// Memory of queries while they sort, and while they wait for their clients.
    package let sorting: MemoryBudget
    /// Memory of listeners' targets.
    package let listening: MemoryBudget
    /// Changes that wait for listeners that take nothing.
    package let listenersWaiting: MemoryBudget
    /// The recorded documents that clients have of targets with a limit or an offset.
    package let windows: MemoryBudget
    /// Cached windows, shared by all watchers, so that most changes need no index. A window that gets no memory here is
    /// found again at every change.
    package let cachedWindows: MemoryBudget
    /// The reads of open transactions, and commits that wait.
    package let databases: DatabaseMemory
    /// Output of streams that WebChannel clients have not acknowledged.
    package let unacknowledged: MemoryBudget

    /// A non-nil argument replaces the default budget.
    package init(
        pool: MemoryPool = MemoryPool(bytesMax: Limits.pooledBytesMax),
        received: MemoryBudget? = nil,
        working: WorkingMemory = WorkingMemory(
            largeBytesMax: Limits.workingLargeBytesMax, commonBytesMax: Limits.workingCommonBytesMax),
        unread: MemoryBudget? = nil,
        sorting: MemoryBudget? = nil, listening: MemoryBudget? = nil, listenersWaiting: MemoryBudget? = nil,
        windows: MemoryBudget? = nil, cachedWindows: MemoryBudget? = nil, unacknowledged: MemoryBudget? = nil
    ) {
        self.pool = pool
        self.working = working
        func loan(_ ownBytes: Int) -> MemoryLoan { MemoryLoan(pool, ownBytes: ownBytes) }
        self.received =
            received
            ?? MemoryBudget(
                bytesMax: Limits.receivedBytesMax, shareBytesMax: Limits.receivedShareBytesMax,
                smallBytesMax: Limits.receivedSmallBytesMax, loan: loan(Limits.receivedOwnBytes))
        self.unread =
            unread
            ?? MemoryBudget(
                bytesMax: Limits.realtimeUnreadBytesMax, shareBytesMax: Limits.realtimeUnreadShareBytesMax,
                smallBytesMax: Limits.realtimeUnreadSmallBytesMax, loan: loan(Limits.otherOwnBytes))
        self.sorting =
            sorting
            ?? MemoryBudget(
                bytesMax: Limits.sortingBytesMax, shareBytesMax: Limits.sortingBytesMax,
                loan: loan(Limits.sortingOwnBytes))
        self.listening =
            listening
            ?? MemoryBudget(
                bytesMax: Limits.listeningBytesMax, shareBytesMax: Limits.listeningShareBytesMax,
                smallBytesMax: Limits.listeningSmallBytesMax, loan: loan(Limits.listeningOwnBytes))
        self.listenersWaiting =
            listenersWaiting
            ?? MemoryBudget(
                bytesMax: Limits.listenWaitingBytesMax, shareBytesMax: Limits.listenWaitingShareBytesMax,
                smallBytesMax: Limits.listenWaitingSmallBytesMax, loan: loan(Limits.otherOwnBytes))
        self.windows =
            windows
            ?? MemoryBudget(
                bytesMax: Limits.listenWindowsBytesMax, shareBytesMax: Limits.listenWindowsShareBytesMax,
                smallBytesMax: Limits.listenWindowsSmallBytesMax, loan: loan(Limits.otherOwnBytes))
        self.cachedWindows =
            cachedWindows
            ?? MemoryBudget(
                bytesMax: Limits.listenCachedWindowsBytesMax, shareBytesMax: Limits.listenCachedWindowsShareBytesMax,
                loan: loan(Limits.otherOwnBytes))
        self.unacknowledged =
            unacknowledged
            ?? MemoryBudget(
                bytesMax: Limits.webChannelOutputBytesMax, shareBytesMax: Limits.webChannelOutputShareBytesMax,
                smallBytesMax: Limits.webChannelOutputSmallBytesMax, loan: loan(Limits.otherOwnBytes))
        databases = DatabaseMemory(pool: pool)
    }
}
