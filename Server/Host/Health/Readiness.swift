import HearthConcurrency
import HearthModel
import HearthNetwork
import Synchronization

/// Whether the server can do its work: what `/readyz` answers.
///
/// A look at the data folder waits for the disk, so it has a thread of its own, and many who ask share one look.
package final class Readiness: Sendable {
    private typealias Asker = @Sendable (Status?) -> Void

    private struct State {
        var known: (status: Status?, time: MonotonicTime)?
        var askers: [Asker] = []
        var isLooking = false
        var isStopped = false
    }

    /// How long an answer holds.
    private static let knownMilliseconds = 1000
    /// After this without an answer from the disk the server isn't ready.
    private static let answerMilliseconds = 5000

    private let state = Mutex(State())
    private let thread = LifecycleThreads(threadsMax: 1, name: "hearth-ready")
    private let look: @Sendable () throws(Status) -> Void

    /// - Parameter look: fails with what keeps the server from its work.
    package init(_ look: @escaping @Sendable () throws(Status) -> Void) {
        self.look = look
    }

    /// - Parameter answer: given what keeps the server from its work, or nil; on the loop, within some seconds.
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
            defer { state.isLooking = true }
            return (nil, !state.isLooking)
        }
        if let known { return asker(known) }
        if begins { thread.run { [self] in lookNow() } }
    }

    private func lookNow() {
        var found: Status?
        do throws(Status) { try look() } catch { found = error }
        let askers = state.withLock { state in
            defer { state.askers = [] }
            state.known = (found, .now)
            state.isLooking = false
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
