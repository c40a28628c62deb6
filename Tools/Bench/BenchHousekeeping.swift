import HearthToolSupport
import HearthTree
import Glibc
import Synchronization

/// Cleans up at every end of the bench: started programs and their folders.
final class BenchHousekeeping: Sendable {
    /// The running processes.
    final class Children: Sendable {
        private struct State {
            /// The signal that ends each, by process id.
            var signals: [pid_t: Int32] = [:]
            var isClosed = false
        }

        private let state = Mutex(State())

        /// Starts a program that is registered from its start.
        /// - Returns: its process id; nil when it did not start, or when the bench is ending.
        func insert(endSignal: Int32, _ start: () -> pid_t?) -> pid_t? {
            state.withLock { state in
                guard !state.isClosed, let id = start() else { return nil }
                state.signals[id] = endSignal
                return id
            }
        }

        func remove(_ id: pid_t) { state.withLock { _ = $0.signals.removeValue(forKey: id) } }

        /// Asks programs to end, and kills those that do not.
        func stop(_ ids: [pid_t], withinSeconds seconds: Double) {
            let signals = state.withLock { $0.signals }
            var running = ids.filter { signals[$0] != nil }
            for id in running { kill(id, signals[id] ?? SIGTERM) }
            let watch = Stopwatch()
            var isKilled = false
            while !running.isEmpty {
                running.removeAll { id in
                    var status: Int32 = 0
                    // Another thread may have waited for its end.
                    guard waitpid(id, &status, WNOHANG) != 0 else { return false }
                    remove(id)
                    return true
                }
                if !isKilled, watch.seconds > seconds {
                    isKilled = true
                    for id in running { kill(id, SIGKILL) }
                }
                usleep(500)
            }
        }

        /// Ends all programs, and prevents further starts.
        func close() {
            let ids = state.withLock { state in
                state.isClosed = true
                return Array(state.signals.keys)
            }
            stop(ids, withinSeconds: 5)
        }
    }

    static let children = Children()

    /// A signal was received, and another thread is ending the process.
    private let isInterrupted = Atomic(false)

    /// A folder of the bench, on the measured disk.
    let path: String

    init(folder: String) {
        var template = Array("\(folder)/hearth-bench-XXXXXX".utf8CString)
        let made = mkdtemp(&template) != nil
        path = template.withUnsafeBufferPointer { String(cString: $0.baseAddress!) }
        if !made {
            Output.error("hearth: Cannot make a folder in \(folder): \(String(cString: strerror(errno))).")
            exit(ToolFailure.Code.data.rawValue)
        }
        // Some peers run as other users.
        chmod(path, 0o755)
        startSignalThread()
    }

    /// A new folder inside.
    func folder(_ name: String) -> String {
        var number = 1
        while mkdir("\(path)/\(name)-\(number)", 0o755) != 0, errno == EEXIST { number += 1 }
        return "\(path)/\(name)-\(number)"
    }

    func end() {
        while isInterrupted.load(ordering: .acquiring) { pause() }
        clear()
    }

    fileprivate func interrupt() -> Never {
        isInterrupted.store(true, ordering: .releasing)
        clear()
        _exit(130)
    }

    private func clear() {
        Self.children.close()
        Self.remove(path)
    }

    /// Ends in an orderly way on a signal.
    private func startSignalThread() {
        // A closed terminal, or a reader that closes the pipe early, must not leave servers running.
        let signals = SignalWaiter(andFor: [SIGHUP, SIGPIPE])
        var thread = pthread_t()
        let box = Unmanaged.passRetained(SignalThread(self, signals)).toOpaque()
        pthread_create(&thread, nil, signalThreadMain, box)
    }

    static func remove(_ path: String) {
        if let folder = opendir(path) {
            while let entry = readdir(folder) {
                let name = withUnsafePointer(to: &entry.pointee.d_name) { pointer in
                    pointer.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
                }
                if name != ".", name != ".." { remove("\(path)/\(name)") }
            }
            closedir(folder)
            rmdir(path)
        } else {
            unlink(path)
        }
    }
}

private final class SignalThread: Sendable {
    let housekeeping: BenchHousekeeping
    let signals: SignalWaiter

    init(_ housekeeping: BenchHousekeeping, _ signals: SignalWaiter) {
        self.housekeeping = housekeeping
        self.signals = signals
    }
}

private func signalThreadMain(_ argument: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
    guard let argument else { return nil }
    let thread = Unmanaged<SignalThread>.fromOpaque(argument).takeRetainedValue()
    thread.signals.wait()
    thread.housekeeping.interrupt()
}
