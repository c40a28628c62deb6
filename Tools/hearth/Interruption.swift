import Glibc
import HearthConcurrency
import HearthToolSupport

/// Ends the program at SIGINT and SIGTERM, after what is unfinished has been removed. Created before other threads start.
///
/// `@unchecked Sendable`: the monitor guards the state.
final class Interruption: @unchecked Sendable {
    private let monitor = Monitor()
    private var cleanUp: (() -> Void)?
    private var isAwaited = false
    private var hasArrived = false

    /// - Parameter raises: the program ends by the signal itself, and not with 128 and its number as exit code.
    init(raises: Bool = false) throws(ToolFailure) {
        let signals = SignalWaiter()
        let thread = NamedThread.start("signals") { [self] in
            var signal: Int32
            repeat { signal = signals.wait() } while passOn()
            // Locked for ever: nothing is written from now on.
            cleanUp?()
            if raises {
                signals.exitOnNext()
                kill(getpid(), signal)
            }
            _exit(128 + signal)
        }
        if thread == nil { throw ToolFailure(.software, "A thread cannot be started.") }
    }

    /// Whether a signal was for `wait`. Otherwise the monitor stays locked.
    private func passOn() -> Bool {
        monitor.lock()
        guard isAwaited else { return false }
        isAwaited = false
        hasArrived = true
        monitor.signal()
        monitor.unlock()
        return true
    }

    /// Work that must not be interrupted in its middle, such as writing what `cleanUp` removes.
    /// - Parameter mayEnd: the work may be interrupted anywhere, and may take for ever.
    func whole<Result, Failure>(
        unless mayEnd: Bool = false, _ body: () throws(Failure) -> Result
    ) throws(Failure) -> Result {
        if mayEnd { return try body() }
        return try monitor.withLock(body)
    }

    /// What is done before the program ends by a signal; runs between two pieces of whole work.
    func setCleanUp(_ body: (() -> Void)?) { monitor.withLock { cleanUp = body } }

    /// From now on the next signal ends `wait`, and not the program; the one after it ends the program.
    func expect() { monitor.withLock { isAwaited = true } }

    /// Waits for the signal that is expected.
    func wait() {
        monitor.lock()
        defer { monitor.unlock() }
        while !hasArrived { monitor.wait() }
    }
}
