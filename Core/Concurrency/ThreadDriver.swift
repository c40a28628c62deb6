/// A thread of its own for each worker.
package final class ThreadDriver: WorkerDriver {
    private let thread: WorkerThread<Void>

    package init(_ name: String, idle: @escaping @Sendable () -> Void, body: @escaping @Sendable () -> Void) {
        thread = WorkerThread(name: name, idle: idle) { _ in body() }
    }

    package func wake() -> Bool { thread.push(()) }
    package func stop() { thread.stop() }

    package static let make: WorkerDrivers = { ThreadDriver($0, idle: $1, body: $2) }
}
