import Glibc
import HearthNetwork
import Synchronization

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
                result.all = min(requests.load(ordering: .relaxed), requestsMax)
                return result
            }
            usleep(2000)
        }
    }
}
