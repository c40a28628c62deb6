/// The open channels of one loop; it owns them.
final class ChannelTable {
    private(set) var channels: [SocketChannel] = []
    /// Called when the last channel is removed.
    var onEmpty: (() -> Void)?
    var onRemove: (() -> Void)?

    func insert(_ channel: SocketChannel) {
        channel.table = self
        channel.tableIndex = channels.count
        channels.append(channel)
    }

    func remove(_ channel: SocketChannel) {
        let index = channel.tableIndex
        guard index >= 0 else { return }
        channel.tableIndex = -1
        let last = channels.removeLast()
        if index < channels.count {
            channels[index] = last
            last.tableIndex = index
        }
        onRemove?()
        if channels.isEmpty { onEmpty?() }
    }
}
