import CLinux
import Glibc

/// A listening socket.
package final class Listener: EventSource {
    private let loop: EventLoop
    private let accepted: (Int32, String) -> Void
    private var isSuspended = false
    private static let acceptsPerTickMax = 64
    /// Out of descriptors or memory: a pause lets connections end, and keeps the loop from spinning.
    private static let pauseMilliseconds = 100

    init(loop: EventLoop, descriptor: Int32, accepted: @escaping (Int32, String) -> Void) {
        self.loop = loop
        self.accepted = accepted
        super.init(descriptor: descriptor)
    }

    func start() -> Bool { loop.register(self, events: linux_epoll_in) }

    override func handleEvents(_ events: UInt32) {
        for _ in 0..<Listener.acceptsPerTickMax {
            guard !isSuspended else { return }
            var address = sockaddr_storage()
            var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
            let socket = withUnsafeMutablePointer(to: &address) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { linux_accept(descriptor, $0, &length) }
            }
            guard socket >= 0 else {
                switch errno {
                case EAGAIN: return
                case EMFILE, ENFILE, ENOBUFS, ENOMEM: return pause()
                // The connection was closed before it was accepted.
                default: continue
                }
            }
            accepted(socket, SocketAddress.string(&address))
        }
    }

    private func pause() {
        loop.change(self, events: 0)
        nonisolated(unsafe) let this = self
        loop.schedule(afterMilliseconds: Listener.pauseMilliseconds) {
            if !this.isSuspended { this.loop.change(this, events: linux_epoll_in) }
        }
    }

    /// Accepts nothing until `resume`; the kernel keeps what connects.
    func suspend() {
        isSuspended = true
        loop.change(self, events: 0)
    }

    func resume() {
        isSuspended = false
        loop.change(self, events: linux_epoll_in)
    }
}
