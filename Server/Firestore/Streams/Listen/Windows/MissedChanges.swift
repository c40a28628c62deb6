import HearthConcurrency

/// Changes since the version at which a search for the window began. Bounded: after more changes the search must be
/// repeated.
struct MissedChanges {
    struct Change {
        var key: [UInt8]
        /// Nil when the document no longer matches.
        var position: [UInt8]?
        var updateVersion: Int64
        /// That of the commit.
        var version: Int64
    }

    private var changes: [Change] = []
    private var bytes = 0
    /// All changes after this version are here.
    private var from: Int64 = 0
    private var findings = 0
    private var memory: MemoryReservation?

    private static let countMax = 1000
    private static let bytesMax = 256 << 10
    private static let entryBytes = 128

    var isRecording: Bool { findings > 0 }

    mutating func begin(_ memory: @autoclosure () -> MemoryReservation) {
        findings += 1
        if self.memory == nil { self.memory = memory() }
    }

    mutating func end() {
        findings -= 1
        guard findings == 0 else { return }
        pass(changes.last?.version ?? 0)
        memory = nil
    }

    mutating func note(_ change: Change) {
        let more = change.key.count + (change.position?.count ?? 0) + Self.entryBytes
        let hasCapacity =
            changes.count < Self.countMax && bytes + more <= Self.bytesMax
            && (memory?.resize(to: bytes + more) ?? false)
        guard hasCapacity else { return pass(change.version) }
        bytes += more
        changes.append(change)
    }

    /// Changes up to a version are not recorded here.
    mutating func pass(_ version: Int64) {
        from = max(from, version)
        if changes.isEmpty { return }
        changes.removeAll { $0.version <= from }
        bytes = changes.reduce(0) { $0 + $1.key.count + ($1.position?.count ?? 0) + Self.entryBytes }
        memory?.resize(to: bytes)
    }

    /// In order; nil when some are missing.
    func changes(after version: Int64) -> [Change]? {
        version < from ? nil : changes.filter { $0.version > version }
    }
}
