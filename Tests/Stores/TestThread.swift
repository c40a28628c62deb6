import Glibc

/// Runs a body on a thread of its own.
package final class TestThread: @unchecked Sendable {
    // Set before the thread starts, and read again after it was joined.
    private var thread = pthread_t()
    private let body: @Sendable () -> Void

    package init(_ body: @escaping @Sendable () -> Void) {
        self.body = body
        pthread_create(&thread, nil, testThreadMain, Unmanaged.passRetained(self).toOpaque())
    }

    package func join() { pthread_join(thread, nil) }

    fileprivate func run() { body() }
}

private func testThreadMain(_ argument: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
    if let argument { Unmanaged<TestThread>.fromOpaque(argument).takeRetainedValue().run() }
    return nil
}

/// Waits for an effect of another thread; false when it doesn't happen in 60 seconds.
package func eventually(_ condition: () -> Bool) -> Bool {
    var start = timespec()
    clock_gettime(CLOCK_MONOTONIC, &start)
    while !condition() {
        var now = timespec()
        clock_gettime(CLOCK_MONOTONIC, &now)
        if now.tv_sec - start.tv_sec > 60 { return false }
        sched_yield()
    }
    return true
}
