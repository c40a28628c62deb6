import HearthConcurrency

/// A snapshot that is being prepared: all changes up to one version. `@unchecked Sendable`: belongs to the stream's
/// loop.
final class PendingSnapshot: @unchecked Sendable {
    let version: Int64
    var changes: PendingChanges
    /// Windows that have not been moved to the version yet, in order.
    var windows = Queue<ListenSubscription>()
    /// Windows that are being moved.
    var windowsUnderWay = 0
    /// Whether `moveWindows` runs, or is about to.
    var isMovingWindows = false
    var willMoveWindows = false
    /// Some of it was sent.
    var hasChanged = false
    private var sentCount = 0

    init(version: Int64, _ changes: PendingChanges, _ windows: [ListenSubscription]) {
        self.version = version
        self.changes = changes
        for target in windows { self.windows.append(target) }
    }

    /// Nothing of it will be sent.
    func forget() {
        changes = PendingChanges()
        windows = Queue()
        sentCount = 0
    }

    var hasMovedWindows: Bool { windows.isEmpty && windowsUnderWay == 0 }
    var isOver: Bool { sentCount == changes.count }

    /// The next document to be sent; nil at the end.
    func next() -> (key: [UInt8], net: PendingChanges.Net)? {
        while sentCount < changes.count {
            sentCount += 1
            if let change = changes.change(at: sentCount - 1) { return change }
        }
        return nil
    }
}
