import HearthTree

/// The client's own locations below `.info`: `connected` and `serverTimeOffset`. They are never sent to the server.
final class InfoTree {
    static let name: TreeKey = ".info"

    let sync: SyncTree
    private(set) var isConnected = false
    private(set) var serverTimeOffsetMilliseconds: Int64 = 0

    init(outputs: OutputQueue) {
        sync = SyncTree(connection: nil, disk: nil, outputs: outputs)
        sync.server.markComplete(at: .root)
        set("connected", false)
        set("serverTimeOffset", 0)
    }

    func setConnected(_ isConnected: Bool) {
        self.isConnected = isConnected
        set("connected", .bool(isConnected))
    }

    func setServerTimeOffset(_ milliseconds: Int64) {
        serverTimeOffsetMilliseconds = milliseconds
        set("serverTimeOffset", .integer(milliseconds))
    }

    private func set(_ key: TreeKey, _ value: Scalar) {
        let path = TreePath(keys: [Self.name, key])
        sync.server.apply(Node(value), at: path)
        sync.refresh(changesAt: [path])
    }
}
