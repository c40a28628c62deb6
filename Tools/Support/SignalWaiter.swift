import Glibc

/// Waits for the signals that end a program, on the calling thread. A signal handler would be allowed to do hardly
/// anything.
package struct SignalWaiter {
    private var signals = sigset_t()

    /// Blocks the signals on this thread and on all threads that it starts from now on.
    /// - Parameter more: signals in addition to SIGTERM and SIGINT. An ignored signal stays ignored, as nohup requires.
    package init(andFor more: [Int32] = []) {
        sigemptyset(&signals)
        for signal in [SIGTERM, SIGINT] + more.filter({ !Self.isIgnored($0) }) { sigaddset(&signals, signal) }
        pthread_sigmask(SIG_BLOCK, &signals, nil)
    }

    private static func isIgnored(_ signal: Int32) -> Bool {
        var action = sigaction()
        sigaction(signal, nil, &action)
        // SIG_IGN, a cast that Swift doesn't import.
        return unsafeBitCast(action.__sigaction_handler.sa_handler, to: Int.self) == 1
    }

    /// Returns when one of the signals is received.
    /// - Returns: its number.
    @discardableResult
    package func wait() -> Int32 {
        var signals = signals
        var signal: Int32 = 0
        while sigwait(&signals, &signal) != 0 {}
        return signal
    }

    /// From now on a signal ends the process immediately.
    package func exitOnNext() {
        var signals = signals
        pthread_sigmask(SIG_UNBLOCK, &signals, nil)
    }

    /// Ends the wait from within the process.
    package static func request() { kill(getpid(), SIGTERM) }
}
