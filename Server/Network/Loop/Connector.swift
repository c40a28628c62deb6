import CLinux
import Glibc
import HearthModel

/// Opens one TCP connection without blocking the loop. It tries the addresses of a host one after another.
///
/// `@unchecked Sendable`: guarded by the loop's thread once started.
package final class Connector: @unchecked Sendable {
    /// A socket that is being connected.
    private final class Attempt: EventSource {
        var onReady: (() -> Void)?
        override func handleEvents(_ events: UInt32) { onReady?() }
    }

    private let loop: EventLoop
    private var addresses: [SocketAddress.Resolved]
    private let timeoutMilliseconds: Int
    private let done: (Result<(descriptor: Int32, address: String), Status>) -> Void
    private var attempt: Attempt?
    private var timer: Timer?

    init(
        loop: EventLoop, addresses: [SocketAddress.Resolved], timeoutMilliseconds: Int,
        done: @escaping (Result<(descriptor: Int32, address: String), Status>) -> Void
    ) {
        self.loop = loop
        self.addresses = addresses
        self.timeoutMilliseconds = timeoutMilliseconds
        self.done = done
    }

    /// Resolves the host on the calling thread, connects on the loop, and calls `done` on the loop.
    package static func open(
        host: String, port: Int, timeoutMilliseconds: Int, on loop: EventLoop,
        _ done: @escaping @Sendable (Result<(descriptor: Int32, address: String), Status>) -> Void
    ) {
        let addresses: [SocketAddress.Resolved]
        do throws(Status) {
            addresses = try SocketAddress.resolve(host: host, port: port, isForListening: false)
        } catch {
            loop.execute { done(.failure(error)) }
            return
        }
        loop.execute {
            Connector(loop: loop, addresses: addresses, timeoutMilliseconds: timeoutMilliseconds, done: done).start()
        }
    }

    /// On the loop's thread.
    func start() {
        timer = loop.schedule(afterMilliseconds: timeoutMilliseconds) { [self] in
            if let attempt { loop.unregisterAndClose(attempt) }
            attempt = nil
            addresses = []
            finish(.failure(.unavailable("no connection within \(timeoutMilliseconds) ms")))
        }
        tryNext(.unavailable("the host has no address"))
    }

    private func tryNext(_ failure: Status) {
        guard !addresses.isEmpty else { return finish(.failure(failure)) }
        let address = addresses.removeFirst()
        let descriptor = socket(
            address.family, Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { return tryNext(refused(address, SystemError.last)) }
        let result = SocketAddress.withPointer(address) { connect(descriptor, $0, $1) }
        guard result == 0 || errno == EINPROGRESS else {
            let error = SystemError.last
            close(descriptor)
            return tryNext(refused(address, error))
        }
        let attempt = Attempt(descriptor: descriptor)
        attempt.onReady = { [unowned self, unowned attempt] in connected(attempt, address) }
        self.attempt = attempt
        if !loop.register(attempt, events: linux_epoll_out) {
            close(descriptor)
            tryNext(refused(address, SystemError.last))
        }
    }

    private func connected(_ attempt: Attempt, _ address: SocketAddress.Resolved) {
        var error: Int32 = 0
        var length = socklen_t(MemoryLayout<Int32>.size)
        getsockopt(attempt.descriptor, SOL_SOCKET, SO_ERROR, &error, &length)
        self.attempt = nil
        guard error == 0 else {
            loop.unregisterAndClose(attempt)
            return tryNext(refused(address, SystemError(code: error)))
        }
        loop.unregister(attempt)
        SocketAddress.setConnectionOptions(attempt.descriptor)
        finish(.success((attempt.descriptor, address.string)))
    }

    private func finish(_ result: Result<(descriptor: Int32, address: String), Status>) {
        timer?.cancel()
        timer = nil
        done(result)
    }

    private func refused(_ address: SocketAddress.Resolved, _ error: SystemError) -> Status {
        .unavailable("cannot connect to \(address.string): \(error.string)")
    }
}
