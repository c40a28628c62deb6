import HearthConcurrency
import HearthModel
import HearthDocuments

/// What peers make the process hold, counted in one place for all protocols.
///
/// A server has one, which its network engine and both products share. Each kind of use has a bound and a part of its own;
/// besides, all draw on one pool, so that the process stays below the 400 MB of `docs/abuse.md` when all are used up at
/// once, and no kind keeps another from working. What requests become while they are worked on never draws on it: it waits
/// for nothing that others may hold for hours. While the pool is tight, caches are small (`CachePressure`).
package final class ServerMemory: Sendable {
    package let pool: MemoryPool
    /// Bytes that were received and can't be worked on yet: unfinished bodies and messages, messages ahead of their turn,
    /// those that wait for a stream, large requests that wait for memory.
    package let received: MemoryBudget
    /// What large requests become when they are decoded.
    package let working: WorkingMemory
    /// The same of those that loops decode: none of them waits for a large one to have its turn.
    let workingOnLoops: WorkingMemory
    /// Messages of the Realtime Database that wait for clients which don't read, or don't poll.
    package let unread: MemoryBudget
    /// What queries hold while they sort, and while they wait for their clients.
    package let sorting: MemoryBudget
    /// What the targets of listeners take.
    package let listening: MemoryBudget
    /// Changes that wait for listeners which take nothing.
    package let listenersWaiting: MemoryBudget
    /// What is noted of the documents that clients have of targets with a limit or an offset.
    package let windows: MemoryBudget
    /// What is kept of windows, for all who watch them, so that most changes need no look into an index. What finds no room
    /// is looked for again with every change.
    package let cachedWindows: MemoryBudget
    /// What open transactions have read, and commits that wait.
    package let databases: DatabaseMemory
    /// What streams have sent to clients of WebChannel and those have not acknowledged.
    package let unacknowledged: MemoryBudget

    /// What is given takes the place of a part.
    package init(
        pool: MemoryPool = MemoryPool(bytesMax: Limits.pooledBytesMax),
        received: MemoryBudget? = nil, working: WorkingMemory = WorkingMemory(bytesMax: Limits.workingBytesMax),
        unread: MemoryBudget? = nil,
        sorting: MemoryBudget? = nil, listening: MemoryBudget? = nil, listenersWaiting: MemoryBudget? = nil,
        windows: MemoryBudget? = nil, cachedWindows: MemoryBudget? = nil, unacknowledged: MemoryBudget? = nil
    ) {
        self.pool = pool
        self.working = working
        workingOnLoops = WorkingMemory(bytesMax: Limits.workingOnLoopsBytesMax)
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
