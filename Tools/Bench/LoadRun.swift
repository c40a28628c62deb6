import Glibc
import HearthNetwork
import Synchronization

/// The end of a load's run.
enum LoadBound: Sendable {
    /// After a time; a first part is not counted.
    case seconds(Double, warmUp: Double)
    /// After a number of responses.
    case requests(Int)
}

/// The shared state of a run's connections.
final class LoadRun: Sendable {
    private struct State {
        var result = LoadResult()
        var open: Int
        var failure: String?
        var end: UInt64 = 0
    }

    private let state: Mutex<State>
    private let requests = Atomic<Int>(0)
    private let isStopped = Atomic<Bool>(false)
    private let requestsMax: Int
    let start: UInt64
    let countFrom: UInt64
    let deadline: UInt64

    init(_ bound: LoadBound, connections: Int) {
        state = Mutex(State(open: connections))
        start = EventLoop.monotonicNanoseconds()
        switch bound {
        case .seconds(let seconds, let warmUp):
            requestsMax = .max
            countFrom = start + UInt64(warmUp * 1e9)
            deadline = countFrom + UInt64(seconds * 1e9)
        case .requests(let count):
            requestsMax = count
            countFrom = start
            deadline = .max
        }
    }

    /// The number of the next request; nil when enough requests were sent.
    func next() -> Int? {
        if isStopped.load(ordering: .relaxed) || EventLoop.monotonicNanoseconds() >= deadline { return nil }
        let number = requests.add(1, ordering: .relaxed).oldValue
        return number < requestsMax ? number : nil
    }

    func fail(_ message: String) {
        isStopped.store(true, ordering: .relaxed)
        state.withLock { state in state.failure = state.failure ?? message }
    }

    var failure: String? { state.withLock { $0.failure } }

    func finished(_ result: LoadResult) {
        state.withLock { state in
            state.result.add(result)
            state.open -= 1
            state.end = EventLoop.monotonicNanoseconds()
        }
    }

    func wait() -> LoadResult {
        while true {
            let isOver = state.withLock { $0.open == 0 }
            if isOver {
                var (result, end) = state.withLock { ($0.result, $0.end) }
                end = max(countFrom, min(end, deadline))
                result.seconds = Double(end - countFrom) / 1e9
                return result
            }
            usleep(2000)
        }
    }
}

/// The results of a run.
struct LoadResult: Sendable {
    var count = 0
    var errors = 0
    var firstError: String?
    var seconds = 0.0
    /// Sorted at the end of the run.
    var latenciesMicroseconds: [UInt32] = []

    var rate: Double { seconds > 0 ? Double(count) / seconds : 0 }

    /// - Parameter share: 0.5 for the median.
    func percentile(_ share: Double) -> Double {
        guard !latenciesMicroseconds.isEmpty else { return 0 }
        let index = min(latenciesMicroseconds.count - 1, Int(Double(latenciesMicroseconds.count) * share))
        return Double(latenciesMicroseconds[index])
    }

    mutating func add(_ other: LoadResult) {
        count += other.count
        errors += other.errors
        firstError = firstError ?? other.firstError
        latenciesMicroseconds += other.latenciesMicroseconds
    }
}

/// The results of one connection of a run.
struct LoadCount {
    let run: LoadRun
    private(set) var result = LoadResult()

    init(_ run: LoadRun) { self.run = run }

    /// Records the response to a request and its send time.
    /// - Parameter failure: the error of the response.
    mutating func answered(_ failure: String?, sentAt: UInt64) {
        let now = EventLoop.monotonicNanoseconds()
        guard now >= run.countFrom, now <= run.deadline else { return }
        guard let failure else {
            result.count += 1
            result.latenciesMicroseconds.append(UInt32(clamping: (now - sentAt) / 1000))
            return
        }
        result.errors += 1
        result.firstError = result.firstError ?? failure
        // A server that rejects everything would be called as fast as it can reject.
        if result.errors > 1000 + result.count { run.fail("Most requests fail: \(failure)") }
    }
}
