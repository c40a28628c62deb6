import HearthConcurrency
import HearthModel

/// Whether a condition was met in a version of the tree.
struct TreeComparison: Sendable {
    var version: Int64
    var isEqual: Bool
}

/// The jobs of a writer, round-robin between requesters; jobs of one connection keep their order.
///
/// While a write of a connection is undecided, because it is checked beside the writer, the connection's later jobs
/// wait.
struct TreeWriteQueue: Sendable {
    struct Entry: Sendable {
        var job: TreeJob
        var requester: Requester
        var cost: Int

        var request: TreeRequest? { if case .write(let request) = job { request } else { nil } }
    }

    private var ready = FairQueue<Entry>()
    /// Taken already, but not begun: they are the next.
    private var carried = Queue<Entry>()
    private var held: [UInt64: Queue<Entry>] = [:]

    var isEmpty: Bool { ready.isEmpty && carried.isEmpty }

    static func isOrdered(_ requester: Requester) -> Bool { requester != .server }

    mutating func append(_ job: TreeJob, for requester: Requester, cost: Int) {
        let entry = Entry(job: job, requester: requester, cost: cost)
        if Self.isOrdered(requester), held[requester.connection] != nil {
            held[requester.connection]?.append(entry)
        } else {
            ready.append(entry, for: requester, cost: cost)
        }
    }

    /// Adds a write that was undecided: its connection is held for it.
    mutating func resume(_ job: TreeJob, for requester: Requester, cost: Int) {
        ready.append(Entry(job: job, requester: requester, cost: cost), for: requester, cost: cost)
    }

    mutating func popFirst() -> Entry? { carried.popFirst() ?? ready.popFirst() }

    /// Puts back jobs that were taken last and not begun, of each connection in their order. Small jobs come first:
    /// between two large slices the small ones run.
    mutating func putBack(_ entries: [Entry]) {
        var (small, large): ([Entry], [Entry]) = ([], [])
        var holdUp: Set<UInt64> = []
        for entry in entries {
            if entry.cost > Self.smallCostMax { holdUp.insert(entry.requester.connection) }
            if holdUp.contains(entry.requester.connection) { large.append(entry) } else { small.append(entry) }
        }
        for entry in (small + large).reversed() { carried.prepend(entry) }
    }

    /// A job that takes a fraction of a millisecond.
    static let smallCostMax = 64

    /// From now on the connection's jobs wait.
    /// - Parameter taken: jobs of the connection that were taken already, and precede those in the queue.
    mutating func hold(_ requester: Requester, before taken: [(job: TreeJob, cost: Int)]) {
        guard Self.isOrdered(requester) else { return }
        var waiting = Queue<Entry>()
        for (job, cost) in taken { waiting.append(Entry(job: job, requester: requester, cost: cost)) }
        // Held already: the taken jobs came before that, on another account of the same connection.
        if var later = held[requester.connection] {
            while let entry = later.popFirst() { waiting.append(entry) }
        }
        for entry in ready.removeAll(of: requester) { waiting.append(entry) }
        held[requester.connection] = waiting
    }

    func isHeld(_ requester: Requester) -> Bool {
        Self.isOrdered(requester) && held[requester.connection] != nil
    }

    mutating func release(_ requester: Requester) {
        guard Self.isOrdered(requester), var waiting = held.removeValue(forKey: requester.connection) else { return }
        while let entry = waiting.popFirst() { ready.append(entry, for: entry.requester, cost: entry.cost) }
    }

    /// All jobs, waiting or held.
    mutating func removeAll() -> [TreeJob] {
        var all: [TreeJob] = []
        while let entry = carried.popFirst() { all.append(entry.job) }
        all += ready.removeAll().map(\.job)
        for var waiting in held.values {
            while let entry = waiting.popFirst() { all.append(entry.job) }
        }
        held = [:]
        return all
    }
}
