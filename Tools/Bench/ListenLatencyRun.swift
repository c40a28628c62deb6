import HearthNetwork
import Synchronization

/// One commit at a time, and the time when each listener received it. `@unchecked Sendable`: belongs to the loop,
/// except `isOver`.
final class ListenLatencyRun: @unchecked Sendable {
    private let listeners: Int
    private let countFrom: UInt64
    private let deadline: UInt64
    private let over = Atomic<Bool>(false)
    private var number = 0
    private var sentAt: UInt64 = 0
    private var missing = 0
    private var isAnswered = true
    private var snapshots = LoadResult()
    private var commits = LoadResult()

    init(listeners: Int, seconds: Double, warmUp: Double) {
        self.listeners = listeners
        countFrom = EventLoop.monotonicNanoseconds() + UInt64(warmUp * 1e9)
        deadline = countFrom + UInt64(seconds * 1e9)
    }

    var isOver: Bool { over.load(ordering: .acquiring) }

    func next() -> Int? {
        sentAt = EventLoop.monotonicNanoseconds()
        if sentAt >= deadline {
            over.store(true, ordering: .releasing)
            return nil
        }
        missing = listeners
        isAnswered = false
        number += 1
        return number
    }

    /// - Returns: whether the next commit may start.
    func answered() -> Bool {
        isAnswered = true
        note(&commits)
        return missing == 0
    }

    func delivered() -> Bool {
        // A boundary without a change does not belong to the commit.
        guard missing > 0 else { return false }
        missing -= 1
        note(&snapshots)
        return missing == 0 && isAnswered
    }

    private func note(_ result: inout LoadResult) {
        let now = EventLoop.monotonicNanoseconds()
        guard sentAt >= countFrom else { return }
        result.count += 1
        result.latenciesMicroseconds.append(UInt32(clamping: (now - sentAt) / 1000))
    }

    func results() -> (snapshots: LoadResult, commits: LoadResult) {
        snapshots.latenciesMicroseconds.sort()
        commits.latenciesMicroseconds.sort()
        return (snapshots, commits)
    }
}
