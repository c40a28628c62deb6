import CNetlink
import Glibc
import HearthHTTPClient
import HearthModel

/// Notifies when the machine's network path has changed: its addresses (except loopback and link-local ones) or its
/// default routes. The kernel reports each single change, often many in a row. The observer is notified after a quiet
/// period, and only when the state differs.
///
/// It runs on the transport's thread, which also calls the observer. Releasing it stops it.
package final class NetworkMonitor: Sendable {
    private let loop: TransportLoop
    private nonisolated(unsafe) let watcher: NetworkWatcher

    /// - Throws: UNAVAILABLE when the kernel provides no notifications.
    package init(transport: Transport, onChange: @escaping @Sendable () -> Void) throws(Status) {
        loop = transport.loop
        let descriptor = netlink_open_route_changes()
        guard descriptor >= 0 else {
            throw .unavailable("cannot watch the network: \(String(cString: strerror(errno)))")
        }
        let watcher = NetworkWatcher(
            loop: transport.loop, descriptor: descriptor, state: NetworkState.now, onChange: onChange)
        self.watcher = watcher
        nonisolated(unsafe) let started = watcher
        if !loop.execute({ started.start() }) { close(descriptor) }
    }

    deinit {
        nonisolated(unsafe) let watcher = watcher
        loop.execute { watcher.stop() }
    }
}
