import HearthConcurrency
import HearthModel
import HearthNetwork
import Synchronization

/// Whether the server can do its work: the state behind `/readyz`.
///
/// A check of the data folder waits for the disk, so it has its own thread, and concurrent requests share one check.
package final class Readiness: Sendable {
    private typealias Asker = @Sendable (Status?) -> Void

    private struct State {
        var known: (status: Status?, time: MonotonicTime)?
        var askers: [Asker] = []
        var isChecking = false
        var isStopped = false
    }

    /// How long a result is valid.
    private static let knownMilliseconds = 1000
    /// The server is not ready when the disk does not answer within this time.
    private static let answerMilliseconds = 5000

    private let state = Mutex(State())
    private let thread = LifecycleThreads(threadsMax: 1, name: "hearth-ready")
    private let check: @Sendable () throws(Status) -> Void

    /// - Parameter check: fails with the reason why the server cannot work.
    package init(_ check: @escaping @Sendable () throws(Status) -> Void) {
        self.check = check
    }

    /// - Parameter answer: receives the reason why the server cannot work, or nil; on the loop, within some seconds.
    package func ask(on loop: EventLoop, _ answer: @escaping @Sendable (Status?) -> Void) {
        let once = OneAnswer(answer)
        let timer = loop.schedule(afterMilliseconds: Self.answerMilliseconds) {
            once.take()?(.unavailable("The data folder does not answer."))
        }
        let asker: Asker = { status in
            loop.execute {
                timer.cancel()
                once.take()?(status)
            }
        }
        let (known, begins) = state.withLock { state -> (Status??, Bool) in
            if let known = state.known,
                MonotonicTime.now < known.time.advanced(milliseconds: Self.knownMilliseconds)
            {
                return (.some(known.status), false)
            }
            if state.isStopped { return (.some(.unavailable("The server is shutting down.")), false) }
            state.askers.append(asker)
            defer { state.isChecking = true }
            return (nil, !state.isChecking)
        }
        if let known { return asker(known) }
        if begins { thread.run { [self] in checkNow() } }
    }

    private func checkNow() {
        var found: Status?
        do throws(Status) { try check() } catch { found = error }
        let askers = state.withLock { state in
            defer { state.askers = [] }
            state.known = (found, .now)
            state.isChecking = false
            return state.askers
        }
        for asker in askers { asker(found) }
    }

    package func stop() {
        state.withLock { $0.isStopped = true }
        thread.stop()
    }
}

/// A closure that is called at most once.
private final class OneAnswer: Sendable {
    private let body: Mutex<(@Sendable (Status?) -> Void)?>

    init(_ body: @escaping @Sendable (Status?) -> Void) {
        self.body = Mutex(body)
    }

    func take() -> (@Sendable (Status?) -> Void)? {
        body.withLock { body in
            defer { body = nil }
            return body
        }
    }
}
