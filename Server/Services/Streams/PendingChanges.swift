import HearthStorage

/// What commits did to the documents of a stream's targets since the client's last snapshot: of each document only where it
/// stood then and where it stands now.
struct PendingChanges {
    struct Net {
        var targets: [(target: ListenTarget, was: Bool, now: Bool)] = []
        var after: StoredDocument?
    }

    private var nets: [[UInt8]: Net] = [:]
    private var order: [[UInt8]] = []
    private(set) var sizeBytes = 0

    var isEmpty: Bool { nets.isEmpty }

    mutating func note(_ key: [UInt8], _ target: ListenTarget, was: Bool, now: Bool, _ after: StoredDocument?) {
        var net: Net
        if let known = nets.removeValue(forKey: key) {
            net = known
        } else {
            net = Net()
            order.append(key)
            sizeBytes += key.count + 128
        }
        sizeBytes += (after?.fields.count ?? 0) - (net.after?.fields.count ?? 0)
        net.after = after
        if let place = net.targets.firstIndex(where: { $0.target === target }) {
            net.targets[place].now = now
        } else {
            net.targets.append((target, was, now))
        }
        nets[key] = net
    }

    /// A target is no more; its documents stay noted, which costs no message.
    mutating func forget(_ target: ListenTarget) {
        for key in nets.keys { nets[key]?.targets.removeAll { $0.target === target } }
    }

    /// In the order in which they were noted first.
    var changes: [(key: [UInt8], net: Net)] { order.compactMap { key in nets[key].map { (key, $0) } } }
}

/// A snapshot in the making: all that is to be told of one version. Belongs to the stream's loop.
final class PendingSnapshot {
    let version: Int64
    var changes: PendingChanges
    /// Windows that have yet to be moved to the version.
    var windowsMissing: Int

    init(version: Int64, _ changes: PendingChanges, windowsMissing: Int) {
        self.version = version
        self.changes = changes
        self.windowsMissing = windowsMissing
    }
}
