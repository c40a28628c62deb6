import Glibc

/// Waits for the signals that end a program, on the thread that asks, instead of in a handler, where hardly anything is
/// allowed.
struct SignalWaiter {
    private var signals = sigset_t()

    /// Holds the signals back on this thread and on all that it starts from now on.
    init() {
        sigemptyset(&signals)
        sigaddset(&signals, SIGTERM)
        sigaddset(&signals, SIGINT)
        pthread_sigmask(SIG_BLOCK, &signals, nil)
    }

    /// Returns when SIGTERM or SIGINT comes.
    func wait() {
        var signals = signals
        var signal: Int32 = 0
        while sigwait(&signals, &signal) != 0 {}
    }

    /// From now on a signal ends the process at once, as if nobody had ever waited.
    func exitOnNext() {
        var signals = signals
        pthread_sigmask(SIG_UNBLOCK, &signals, nil)
    }

    /// Ends the wait from within the process.
    static func request() { kill(getpid(), SIGTERM) }
}
