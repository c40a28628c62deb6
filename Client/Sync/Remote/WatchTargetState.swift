import HearthModel

/// The watch stream's messages for one target since the last global snapshot.
struct WatchTargetState {
    enum Change { case added, modified, removed }

    /// Requests sent minus answers received. While there are any, messages belong to an earlier listen.
    private var outstandingCount = 0
    private(set) var isCurrent = false
    private(set) var resumeToken: [UInt8] = []
    /// The number of the message that brought the token, or reset the target: see `WatchChangeAggregator.sequence`.
    private(set) var tokenSequence: Int
    private(set) var changes: [ResourcePath: Change] = [:]
    /// True at first, so that the first snapshot always mentions the target.
    private(set) var hasPendingChanges = true
    /// The server has reset the target, and not all documents were sent again.
    private(set) var isReset: Bool

    /// - Parameter isReset: the server reset a target that it had before.
    init(isReset: Bool = false, sequence: Int) {
        self.isReset = isReset
        tokenSequence = sequence
    }

    var isPending: Bool { outstandingCount > 0 }

    mutating func requestSent() { outstandingCount += 1 }
    mutating func responseCame(_ sequence: Int) {
        outstandingCount = max(0, outstandingCount - 1)
        tokenSequence = sequence
    }

    mutating func take(token: [UInt8], _ sequence: Int) {
        if token.isEmpty { return }
        hasPendingChanges = true
        resumeToken = token
        tokenSequence = sequence
    }

    mutating func becomeCurrent() {
        hasPendingChanges = true
        isCurrent = true
    }

    mutating func record(_ change: Change, of key: ResourcePath) {
        hasPendingChanges = true
        changes[key] = change
    }

    mutating func forget(_ key: ResourcePath) {
        hasPendingChanges = true
        changes[key] = nil
    }

    mutating func clearPendingChanges() {
        hasPendingChanges = false
        changes = [:]
        if isCurrent { isReset = false }
    }

    /// - Parameter token: the newest one.
    func targetChange(_ token: [UInt8]) -> TargetChange {
        var result = TargetChange(resumeToken: token, isCurrent: isCurrent)
        for (key, change) in changes {
            switch change {
            case .added: result.added.insert(key)
            case .modified: result.modified.insert(key)
            case .removed: result.removed.insert(key)
            }
        }
        return result
    }

    /// The change of the target's number of documents.
    var countDifference: Int {
        changes.values.reduce(0) { $0 + ($1 == .added ? 1 : $1 == .removed ? -1 : 0) }
    }
}
