import CNetlink
import Glibc
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

/// Used on the loop's thread.
final class NetworkWatcher: LoopActivity {
    private let loop: TransportLoop
    private let descriptor: Int32
    private let state: () -> [String]
    private let onChange: () -> Void
    private var known: [String] = []
    private var watch: DescriptorWatch?
    private var timer: TransportTimer?
    private var firstNews: UInt64?
    private var isStopped = false

    /// After this time without changes…
    static let quietMilliseconds = 250
    /// …or this time with changes the state is read.
    static let patienceMilliseconds = 2_000

    /// - Parameters:
    ///   - descriptor: becomes readable with every change; owned by the monitor.
    ///   - state: the compared state.
    init(loop: TransportLoop, descriptor: Int32, state: @escaping () -> [String], onChange: @escaping () -> Void) {
        self.loop = loop
        self.descriptor = descriptor
        self.state = state
        self.onChange = onChange
    }

    func start() {
        known = state()
        let watch = DescriptorWatch(descriptor: descriptor, events: Int16(POLLIN)) { [unowned self] _ in news() }
        self.watch = watch
        loop.watch(watch)
        loop.add(self)
    }

    func abort(_ status: Status) { stop() }

    func stop() {
        guard !isStopped else { return }
        isStopped = true
        if let watch { loop.unwatch(watch) }
        watch = nil
        if let timer { loop.cancelTimer(timer) }
        timer = nil
        loop.remove(self)
        close(descriptor)
    }

    private func news() {
        // The messages are ignored, even a report of lost messages: the state is read again.
        var chunk = [UInt8](repeating: 0, count: 16_384)
        while recv(descriptor, &chunk, chunk.count, Int32(MSG_DONTWAIT)) > 0 {}
        let now = Monotonic.nanoseconds()
        let first = firstNews ?? now
        firstNews = first
        guard timer == nil || now - first < UInt64(NetworkWatcher.patienceMilliseconds) * 1_000_000 else { return }
        if let timer { loop.cancelTimer(timer) }
        timer = loop.schedule(afterMilliseconds: NetworkWatcher.quietMilliseconds) { [unowned self] in look() }
    }

    private func look() {
        timer = nil
        firstNews = nil
        let present = state()
        guard present != known else { return }
        known = present
        onChange()
    }
}

/// The machine's addresses and routes, as strings that can be compared.
enum NetworkState {
    static func now() -> [String] { (addresses() + defaultRoutes()).sorted() }

    private static func addresses() -> [String] {
        var list: UnsafeMutablePointer<ifaddrs>?
        guard getifaddrs(&list) == 0 else { return [] }
        defer { freeifaddrs(list) }
        var result: [String] = []
        var next = list
        while let entry = next {
            next = entry.pointee.ifa_next
            let flags = entry.pointee.ifa_flags
            guard flags & UInt32(IFF_UP) != 0, flags & UInt32(IFF_LOOPBACK) == 0,
                let address = entry.pointee.ifa_addr, let string = string(of: address), !string.hasPrefix("fe80:")
            else { continue }
            result.append("\(String(cString: entry.pointee.ifa_name)) \(string)")
        }
        return result
    }

    private static func string(of address: UnsafeMutablePointer<sockaddr>) -> String? {
        let length: Int
        switch Int32(address.pointee.sa_family) {
        case AF_INET: length = MemoryLayout<sockaddr_in>.size
        case AF_INET6: length = MemoryLayout<sockaddr_in6>.size
        default: return nil
        }
        var string = [CChar](repeating: 0, count: Int(NI_MAXHOST))
        guard getnameinfo(address, socklen_t(length), &string, socklen_t(string.count), nil, 0, NI_NUMERICHOST) == 0
        else {
            return nil
        }
        return String(decoding: string.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    /// Source: proc(5), `/proc/net/route` and `/proc/net/ipv6_route`, without the counters.
    private static func defaultRoutes() -> [String] {
        var result: [String] = []
        for line in lines(of: "/proc/net/route") {
            let columns = line.split(whereSeparator: { $0 == "\t" || $0 == " " })
            if columns.count > 2, columns[1] == "00000000" { result.append("\(columns[0]) by \(columns[2])") }
        }
        for line in lines(of: "/proc/net/ipv6_route") {
            let columns = line.split(separator: " ")
            guard columns.count > 9, columns[1] == "00", columns[9] != "lo" else { continue }
            result.append("\(columns[9]) by \(columns[4])")
        }
        return result
    }

    private static func lines(of path: String) -> [Substring] {
        guard let file = fopen(path, "re") else { return [] }
        defer { fclose(file) }
        var bytes: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 8_192)
        while bytes.count < 1 << 20 {
            let count = fread(&chunk, 1, chunk.count, file)
            guard count > 0 else { break }
            bytes += chunk[..<count]
        }
        return String(decoding: bytes, as: UTF8.self).split(separator: "\n")
    }
}
