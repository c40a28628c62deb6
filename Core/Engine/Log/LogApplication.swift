import HearthConcurrency
import HearthModel

/// The transfer of frozen trees to the base, in slices: transactions of the base.
///
/// The first slice stores how much of the log the base is going to have a part of, the last one that it has all of it. When
/// the process ends before that, the next one repeats all slices: each puts and deletes the same again.
///
/// `@unchecked Sendable`: of the thread that works for the store.
final class LogApplication: @unchecked Sendable {
    let number: UInt64
    /// The last record of the log that the trees contain, and its segment.
    let sequence: UInt64
    private let segment: UInt64
    /// Keeps the frozen trees; nil when they are applied.
    private var version: LoggedVersion?
    private var stage = Stage()
    private var isBegun = false
    /// Of the entries of slices that are in the base, as the table counts them.
    private(set) var appliedBytes = 0
    /// In which the trees were filled.
    private let fillNanoseconds: Int64
    /// Without rests.
    private var workNanoseconds: Int64 = 0

    /// Whether the applier has much time left: also with all rests it ends before the next trees are full.
    var isFast: Bool { workNanoseconds * (1 + ApplicationPace.restTimes) < fillNanoseconds }

    /// Where the next slice begins.
    private struct Stage {
        var keyspace = Keyspace.allCases[0]
        var part = Part.unstarted
        /// Over the ranges, then over the entries.
        var walk = TableWalk(nil)

        enum Part { case unstarted, ranges, entries }
    }

    init(_ version: LoggedVersion, sequence: UInt64, segment: UInt64, fillNanoseconds: Int64) {
        number = version.layers.number
        self.version = version
        self.sequence = sequence
        self.segment = segment
        self.fillNanoseconds = fillNanoseconds
    }

    /// - Parameter pace: called for each entry.
    /// - Returns: whether it was the last one.
    func applySlice(
        to base: any Store, entriesMax: Int, bytesMax: Int, pace: inout ApplicationPace
    ) throws(Status) -> Bool {
        let (begun, rested) = (MonotonicTime.now.nanoseconds, pace.restedNanoseconds)
        defer { workNanoseconds += MonotonicTime.now.nanoseconds - begun - (pace.restedNanoseconds - rested) }
        // A transaction that fails is repeated from where it began.
        var next = stage
        var sliceBytes = 0
        let isLast = try base.write { transaction throws(Status) -> Bool in
            var budget = Budget(entries: entriesMax, bytes: bytesMax)
            if !isBegun { try notePosition(transaction, isComplete: false) }
            defer { sliceBytes = budget.appliedBytes }
            while budget.entries > 0, budget.bytes > 0 {
                if try !step(&next, transaction, &budget, &pace) { continue }
                try notePosition(transaction, isComplete: true)
                return true
            }
            return false
        }
        stage = isLast ? Stage() : next
        appliedBytes += sliceBytes
        isBegun = true
        if isLast { version = nil }
        return isLast
    }

    /// What a slice may still do, and what it has done.
    private struct Budget {
        var entries: Int
        var bytes: Int
        var appliedBytes = 0
    }

    /// Keys of a range that are deleted at once: their values may be large.
    private static let rangeKeysMax = 256

    private func notePosition(_ transaction: any StoreTransaction, isComplete: Bool) throws(Status) {
        var position = try LogPosition(transaction)
        position.begun = sequence
        if isComplete { (position.sequence, position.segment) = (sequence, segment) }
        try transaction.put(.meta, LogPosition.key, position.bytes)
    }

    /// Applies one part of a keyspace, as far as the budget allows.
    /// - Returns: whether nothing is left.
    private func step(
        _ stage: inout Stage, _ transaction: any StoreTransaction, _ budget: inout Budget,
        _ pace: inout ApplicationPace
    ) throws(Status) -> Bool {
        let keyspace = stage.keyspace
        switch stage.part {
        case .unstarted:
            stage.walk = walk(LogLayers.frozenRanges(keyspace))
            stage.part = .ranges
        case .ranges:
            while let range = stage.walk.entry.map({ TableRange($0) }) {
                if budget.entries <= 0 { return false }
                if try !delete(range, keyspace, transaction, &budget.entries, &pace) { return false }
                stage.walk.next()
            }
            stage.walk = walk(LogLayers.frozenTree(keyspace))
            stage.part = .entries
        case .entries:
            while let entry = stage.walk.entry {
                if budget.entries <= 0 || budget.bytes <= 0 { return false }
                try apply(entry, keyspace, transaction)
                budget.appliedBytes += entry.sizeBytes + TableEditor.entryOverheadBytes
                pace.step()
                budget.entries -= 1
                budget.bytes -= entry.sizeBytes
                stage.walk.next()
            }
            guard let following = Keyspace(rawValue: keyspace.rawValue + 1) else { return true }
            stage = Stage(keyspace: following)
        }
        return false
    }

    private func walk(_ tree: Int) -> TableWalk {
        var walk = TableWalk(version?.table.roots[tree])
        if !walk.isEmpty { ([] as [UInt8]).withKey { walk.moveUp(to: $0) } }
        return walk
    }

    /// - Returns: whether all of the range is deleted.
    private func delete(
        _ range: TableRange, _ keyspace: Keyspace, _ transaction: any StoreTransaction, _ budget: inout Int,
        _ pace: inout ApplicationPace
    ) throws(Status) -> Bool {
        let keys = KeyRange(lower: range.lower.bytes, upper: range.upper?.bytes)
        // Much less work than as many single deletions.
        let isEverything = keys.lower.isEmpty && keys.upper == nil
        budget -= 1
        for part in LogPosition.parts(keyspace, keys) {
            while true {
                let limit = isEverything ? Int.max : max(1, min(budget, Self.rangeKeysMax))
                let count = try transaction.delete(keyspace, part, limit: limit)
                budget -= min(budget, count)
                pace.look()
                if count < limit { break }
                if budget <= 0 { return false }
            }
        }
        return true
    }

    private func apply(
        _ entry: TableEntry, _ keyspace: Keyspace, _ transaction: any StoreTransaction
    ) throws(Status) {
        if entry.isTombstone {
            try transaction.delete(keyspace, entry.key.bytes)
        } else {
            try transaction.put(keyspace, entry.key.bytes, [UInt8](entry.value))
        }
    }
}
