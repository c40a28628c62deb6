import CLinux

import Glibc

/// A thread with a name that `top -H`, `perf` and debuggers show.
package struct NamedThread: @unchecked Sendable {
    // A `pthread_t` is a number or a pointer that any thread may join.
    private let handle: pthread_t
    #if DEBUG
    /// The number in the `Interleaving` of the thread that started this one.
    private var number: Int?
    #endif

    /// Starts a thread that runs `body` and keeps it alive until it returns.
    /// - Parameter name: at most 15 bytes, the limit of the kernel.
    /// - Returns: nil when the system cannot start another thread.
    package static func start(_ name: String, _ body: @escaping @Sendable () -> Void) -> NamedThread? {
        #if DEBUG
        if let interleaving = Interleaving.current {
            let number = interleaving.add()
            var thread = startThread(name) { interleaving.take(part: number, body) }
            if thread == nil { interleaving.end(number) }
            thread?.number = number
            return thread
        }
        #endif
        return startThread(name, body)
    }

    private static func startThread(_ name: String, _ body: @escaping @Sendable () -> Void) -> NamedThread? {
        var thread = pthread_t()
        let retained = Unmanaged.passRetained(
            ThreadBody(name: String(decoding: name.utf8.prefix(15), as: UTF8.self), body))
        guard pthread_create(&thread, nil, threadEntry, retained.toOpaque()) == 0 else {
            retained.release()
            return nil
        }
        return NamedThread(thread)
    }

    private init(_ handle: pthread_t) { self.handle = handle }

    /// Lets the threads of the process that answer clients go before the calling one when all cores are busy. It can't be
    /// taken back.
    package static func giveWay() {
        // A process may have less already.
        let nice = max(18, getpriority(__priority_which_t(PRIO_PROCESS.rawValue), 0))
        if linux_give_way(nice) != 0 { _ = setpriority(__priority_which_t(PRIO_PROCESS.rawValue), 0, nice) }
    }

    package var isCurrent: Bool { pthread_equal(handle, pthread_self()) != 0 }

    /// Waits for the end of the thread. May be called once, and not after `detach`.
    package func join() {
        #if DEBUG
        if let number, let interleaving = Interleaving.current { interleaving.join(number) }
        #endif
        pthread_join(handle, nil)
    }

    /// Lets the system free the thread when it ends.
    package func detach() { pthread_detach(handle) }
}

/// The body of a new thread; the thread keeps it alive.
private final class ThreadBody: Sendable {
    private let name: String
    private let body: @Sendable () -> Void

    init(name: String, _ body: @escaping @Sendable () -> Void) {
        self.name = name
        self.body = body
    }

    func run() {
        linux_set_thread_name(name)
        body()
    }
}

private func threadEntry(_ argument: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
    if let argument { Unmanaged<ThreadBody>.fromOpaque(argument).takeRetainedValue().run() }
    return nil
}
