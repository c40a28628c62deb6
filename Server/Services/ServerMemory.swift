import HearthConcurrency
import HearthModel
import HearthStorage

/// What peers make the process hold, counted in one place for all protocols.
///
/// A server has one, which its network engine and both products share. Any one of the bounds leaves the process below the
/// 400 MB of `docs/abuse.md`, which is a promise for one attack at a time: all of them used up at once, with what answers
/// may take (`NetworkLimits.answersBytesMax`), are more.
final class ServerMemory: Sendable {
    /// Bytes that were received and can't be worked on yet: unfinished bodies and messages, messages ahead of their turn,
    /// those that wait for a stream, large requests that wait for memory.
    let received: MemoryBudget
    /// What large requests become when they are decoded.
    let working: WorkingMemory
    /// The same of those that loops decode: none of them waits for a large one to have its turn.
    let workingOnLoops: WorkingMemory
    /// Messages of the Realtime Database that wait for clients which don't read, or don't poll.
    let unread: MemoryBudget
    /// What queries hold while they sort, and while they wait for their clients.
    let sorting: MemoryBudget
    /// What the targets of listeners take.
    let listening: MemoryBudget
    /// Changes that wait for listeners which take nothing.
    let listenersWaiting: MemoryBudget
    /// What is noted of the documents that clients have of targets with a limit or an offset.
    let windows: MemoryBudget
    /// What is kept of windows, for all who watch them, so that most changes need no look into an index. What finds no room
    /// is looked for again with every change.
    let keptWindows: MemoryBudget
    /// What open transactions have read, and commits that wait.
    let databases: DatabaseMemory
    /// What streams have sent to clients of WebChannel and those have not acknowledged.
    let unacknowledged: MemoryBudget

    init(
        received: MemoryBudget = MemoryBudget(
            bytesMax: Limits.receivedBytesMax, shareBytesMax: Limits.receivedShareBytesMax,
            smallBytesMax: Limits.receivedSmallBytesMax),
        working: WorkingMemory = WorkingMemory(bytesMax: Limits.workingBytesMax),
        workingOnLoops: WorkingMemory = WorkingMemory(bytesMax: Limits.workingOnLoopsBytesMax),
        unread: MemoryBudget = MemoryBudget(
            bytesMax: Limits.realtimeUnreadBytesMax, shareBytesMax: Limits.realtimeUnreadShareBytesMax,
            smallBytesMax: Limits.realtimeUnreadSmallBytesMax),
        sorting: MemoryBudget = MemoryBudget(
            bytesMax: Limits.sortingBytesMax, shareBytesMax: Limits.sortingBytesMax),
        listening: MemoryBudget = MemoryBudget(
            bytesMax: Limits.listeningBytesMax, shareBytesMax: Limits.listeningShareBytesMax,
            smallBytesMax: Limits.listeningSmallBytesMax),
        listenersWaiting: MemoryBudget = MemoryBudget(
            bytesMax: Limits.listenWaitingBytesMax, shareBytesMax: Limits.listenWaitingShareBytesMax,
            smallBytesMax: Limits.listenWaitingSmallBytesMax),
        windows: MemoryBudget = MemoryBudget(
            bytesMax: Limits.listenWindowsBytesMax, shareBytesMax: Limits.listenWindowsShareBytesMax,
            smallBytesMax: Limits.listenWindowsSmallBytesMax),
        keptWindows: MemoryBudget = MemoryBudget(
            bytesMax: Limits.listenKeptWindowsBytesMax, shareBytesMax: Limits.listenKeptWindowsShareBytesMax),
        databases: DatabaseMemory = DatabaseMemory(),
        unacknowledged: MemoryBudget = MemoryBudget(
            bytesMax: Limits.webChannelOutputBytesMax, shareBytesMax: Limits.webChannelOutputShareBytesMax,
            smallBytesMax: Limits.webChannelOutputSmallBytesMax)
    ) {
        self.received = received
        self.working = working
        self.workingOnLoops = workingOnLoops
        self.unread = unread
        self.sorting = sorting
        self.listening = listening
        self.listenersWaiting = listenersWaiting
        self.windows = windows
        self.keptWindows = keptWindows
        self.databases = databases
        self.unacknowledged = unacknowledged
    }
}
