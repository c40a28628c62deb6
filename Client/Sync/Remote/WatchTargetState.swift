import HearthModel

/// What the watch stream said of one target since the last global snapshot.
struct WatchTargetState {
    enum Change { case added, modified, removed }

    /// Requests sent, less answers come: while there are any, messages speak of an earlier listen.
    private var outstandingCount = 0
    private(set) var isCurrent = false
    private(set) var resumeToken: [UInt8] = []
    private(set) var changes: [ResourcePath: Change] = [:]
    /// True at first, so that the first snapshot mentions the target in any case.
    private(set) var hasPendingChanges = true
    /// The server has begun anew, and hasn't named all documents again.
    private(set) var isAnew: Bool

    /// - Parameter isAnew: the server says so of a target that it had before.
    init(isAnew: Bool = false) { self.isAnew = isAnew }

    var isPending: Bool { outstandingCount > 0 }

    mutating func requestSent() { outstandingCount += 1 }
    mutating func responseCame() { outstandingCount = max(0, outstandingCount - 1) }

    mutating func take(token: [UInt8]) {
        if token.isEmpty { return }
        hasPendingChanges = true
        resumeToken = token
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
        if isCurrent { isAnew = false }
    }

    var targetChange: TargetChange {
        var result = TargetChange(resumeToken: resumeToken, isCurrent: isCurrent)
        for (key, change) in changes {
            switch change {
            case .added: result.added.insert(key)
            case .modified: result.modified.insert(key)
            case .removed: result.removed.insert(key)
            }
        }
        return result
    }

    /// How the number of the target's documents changes.
    var countDifference: Int {
        changes.values.reduce(0) { $0 + ($1 == .added ? 1 : $1 == .removed ? -1 : 0) }
    }
}
