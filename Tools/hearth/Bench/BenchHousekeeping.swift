import Glibc
import Synchronization

/// What the bench has to put in order however it ends: programs that it started, and their folders.
final class BenchHousekeeping: Sendable {
    /// The processes that run.
    final class Children: Sendable {
        private let ids = Mutex<Set<pid_t>>([])

        func insert(_ id: pid_t) { ids.withLock { _ = $0.insert(id) } }
        func remove(_ id: pid_t) { ids.withLock { _ = $0.remove(id) } }

        func stopAll() {
            for id in ids.withLock({ $0 }) {
                kill(id, SIGTERM)
                var status: Int32 = 0
                waitpid(id, &status, 0)
            }
        }
    }

    static let children = Children()

    /// A folder of the bench's own, on the disk that is measured.
    let path: String

    init(folder: String) {
        var template = Array("\(folder)/hearth-bench-XXXXXX".utf8CString)
        let made = mkdtemp(&template) != nil
        path = template.withUnsafeBufferPointer { String(cString: $0.baseAddress!) }
        if !made {
            Output.error("hearth: Cannot make a folder in \(folder): \(String(cString: strerror(errno))).")
            exit(ToolFailure.Code.data.rawValue)
        }
        // Peers run as users of their own.
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
        Self.children.stopAll()
        Self.remove(path)
    }

    /// Ends in order when a signal comes.
    private func startSignalThread() {
        let signals = SignalWaiter()
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
    thread.housekeeping.end()
    _exit(130)
}
