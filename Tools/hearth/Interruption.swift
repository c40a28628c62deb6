import Glibc
import HearthConcurrency
import HearthToolSupport

/// Ends the program at SIGINT and SIGTERM, with 128 and the signal's number as exit code, after what is unfinished has
/// been removed. Created before other threads start.
///
/// `@unchecked Sendable`: the monitor guards the state.
final class Interruption: @unchecked Sendable {
    private let monitor = Monitor()
    private var cleanUp: (() -> Void)?

    init() throws(ToolFailure) {
        let signals = SignalWaiter()
        let thread = NamedThread.start("signals") { [self] in
            let signal = signals.wait()
            // Never unlocked: nothing is written from now on.
            monitor.lock()
            cleanUp?()
            _exit(128 + signal)
        }
        if thread == nil { throw ToolFailure(.software, "A thread cannot be started.") }
    }

    /// Work that must not be interrupted in its middle, such as writing what `cleanUp` removes.
    func whole<Result, Failure>(_ body: () throws(Failure) -> Result) throws(Failure) -> Result {
        try monitor.withLock(body)
    }

    /// What is done before the program ends by a signal; runs between two pieces of whole work.
    func setCleanUp(_ body: (() -> Void)?) { monitor.withLock { cleanUp = body } }
}
