import HearthConcurrency
import HearthModel
import HearthEngine

/// What commits did to the documents of a stream's targets since the client's last snapshot: of each document only where it
/// stood then and where it stands now.
struct PendingChanges {
    struct Net {
        fileprivate(set) var targets: [(target: ListenSubscription, was: Bool, now: Bool)] = []
        fileprivate(set) var after: StoredDocument?
        /// Where each target stands in `targets`; kept when there are many.
        fileprivate var places: [ObjectIdentifier: Int]?

        /// For tests: targets that were looked at.
        fileprivate(set) var steps = 0

        /// Up to here a look at each costs less than a table.
        private static let scannedMax = 16

        /// - Returns: whether the target is new here.
        fileprivate mutating func note(
            _ target: ListenSubscription, was: Bool, now: Bool, _ after: StoredDocument?
        ) -> Bool {
            self.after = after
            let id = ObjectIdentifier(target)
            let known = places.map { $0[id] } ?? targets.firstIndex { $0.target === target }
            steps += places == nil ? known.map { $0 + 1 } ?? targets.count : 1
            if let known {
                targets[known].now = now
                return false
            }
            targets.append((target, was, now))
            if places != nil {
                places?[id] = targets.count - 1
            } else if targets.count > Self.scannedMax {
                places = Dictionary(
                    targets.enumerated().map { (ObjectIdentifier($0.element.target), $0.offset) }
                ) { $1 }
            }
            return true
        }
    }

    private var nets: [[UInt8]: Net] = [:]
    private var order: [[UInt8]] = []
    private(set) var sizeBytes = 0
    /// Targets over all documents.
    private(set) var targetCount = 0

    var isEmpty: Bool { nets.isEmpty }

    /// Whether so much has gathered that sending everything anew costs less.
    var isTooLarge: Bool {
        sizeBytes > Limits.listenPendingBytesMax || targetCount > Limits.listenPendingTargetsMax
    }

    // Of a document in the tables, and of one of its targets.
    private static let entryBytes = 192
    private static let targetBytes = 64

    /// About how many bytes it takes.
    var heldBytes: Int { sizeBytes + Self.entryBytes * count + Self.targetBytes * targetCount }

    mutating func note(_ key: [UInt8], _ target: ListenSubscription, was: Bool, now: Bool, _ after: StoredDocument?) {
        let known = nets[key]?.after?.fields.count
        if known == nil, nets[key] == nil {
            order.append(key)
            sizeBytes += key.count + 128
        }
        sizeBytes += (after?.fields.count ?? 0) - (known ?? 0)
        let isNew = nets[key, default: Net()].note(target, was: was, now: now, after)
        if isNew { targetCount += 1 }
    }

    var count: Int { order.count }

    /// In the order in which they were noted first.
    func change(at place: Int) -> (key: [UInt8], net: Net)? { nets[order[place]].map { (order[place], $0) } }
}

/// A snapshot in the making: all that is to be told of one version. `@unchecked Sendable`: belongs to the stream's loop.
final class PendingSnapshot: @unchecked Sendable {
    let version: Int64
    var changes: PendingChanges
    /// Windows that have yet to be moved to the version, in order.
    var windows = Queue<ListenSubscription>()
    /// Windows that are being moved.
    var windowsUnderWay = 0
    /// Whether `moveWindows` runs, or is about to.
    var isMovingWindows = false
    var willMoveWindows = false
    /// Something of it was sent.
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
