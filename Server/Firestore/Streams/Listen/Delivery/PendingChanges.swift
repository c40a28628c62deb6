import HearthModel
import HearthDocuments

/// The net effect of commits on the documents of a stream's targets since the client's last snapshot. For each document
/// it records only whether a target showed it then and shows it now.
struct PendingChanges {
    struct Net {
        fileprivate(set) var targets: [(target: ListenSubscription, was: Bool, now: Bool)] = []
        fileprivate(set) var after: StoredDocument?
        /// The index of each target in `targets`; only when there are many.
        fileprivate var indices: [ObjectIdentifier: Int]?

        /// For tests: targets that were compared.
        fileprivate(set) var steps = 0

        /// Up to this count comparing all targets costs less than a table.
        private static let scannedMax = 16

        /// - Returns: whether the target is new here.
        fileprivate mutating func note(
            _ target: ListenSubscription, was: Bool, now: Bool, _ after: StoredDocument?
        ) -> Bool {
            self.after = after
            let id = ObjectIdentifier(target)
            let known = indices.map { $0[id] } ?? targets.firstIndex { $0.target === target }
            steps += indices == nil ? known.map { $0 + 1 } ?? targets.count : 1
            if let known {
                targets[known].now = now
                return false
            }
            targets.append((target, was, now))
            if indices != nil {
                indices?[id] = targets.count - 1
            } else if targets.count > Self.scannedMax {
                indices = Dictionary(
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

    /// Whether sending everything anew costs less.
    var isTooLarge: Bool {
        sizeBytes > Limits.listenPendingBytesMax || targetCount > Limits.listenPendingTargetsMax
    }

    // Memory of a document in the tables, and of one of its targets.
    private static let entryBytes = 192
    private static let targetBytes = 64

    /// Approximate memory in bytes.
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

    /// In the order in which documents were first noted.
    func change(at index: Int) -> (key: [UInt8], net: Net)? { nets[order[index]].map { (order[index], $0) } }
}
