import HearthDocuments
import HearthEngine
import HearthModel

/// How much there is of one trigger in a store: stored with the data, by each transaction that changes it, so that a database
/// with many events is opened without counting them.
///
///     keyspace meta
///     "p"                      1 (1 byte): every number has counts. Not there in a store of an earlier version.
///     "p" · number (4 bytes)   events that wait (8) · dead letters (8) · version of the oldest event (8), 0 without any
///                              · number of the next body (8): `EventBodies`
///
/// Numbers are big-endian.
package struct TriggerCounts: Equatable, Sendable {
    var pending = 0
    var deadLetters = 0
    /// The version of the first event that waits.
    var oldest: Int64?
    /// The number of the next body.
    var nextBody: UInt64 = 1

    static let completeKey = [EventKeys.counts]
    static let complete: [UInt8] = [1]
    private static let sizeBytes = 32

    static func key(_ number: UInt32) -> [UInt8] { completeKey + withUnsafeBytes(of: number.bigEndian) { Array($0) } }

    var isEmpty: Bool { pending <= 0 && deadLetters <= 0 }

    init() {}

    /// - Returns: nil for bytes that are no counts.
    init?(_ bytes: [UInt8]) {
        if bytes.count != Self.sizeBytes { return nil }
        func number(_ offset: Int) -> Int64 {
            bytes.withUnsafeBytes { Int64(bigEndian: $0.loadUnaligned(fromByteOffset: offset, as: Int64.self)) }
        }
        (pending, deadLetters) = (Int(number(0)), Int(number(8)))
        oldest = number(16) == 0 ? nil : number(16)
        nextBody = UInt64(bitPattern: number(24))
        // Damage: more than a store can have, and than can be added to; and a time of no commit.
        let isPossible = [number(0), number(8), number(24)].allSatisfy { 0...1 << 48 ~= $0 }
        if !isPossible || !(0...1 << 60 ~= number(16)) { return nil }
    }

    var bytes: [UInt8] {
        [Int64(pending), Int64(deadLetters), oldest ?? 0, Int64(bitPattern: nextBody)].flatMap { number in
            withUnsafeBytes(of: number.bigEndian) { Array($0) }
        }
    }

    // MARK: In a store

    /// The counts of all numbers, nil for those that can't be read.
    /// - Returns: nil for a store of an earlier version.
    static func all(in snapshot: any Snapshot) throws(Status) -> [UInt32: TriggerCounts?]? {
        guard try snapshot.get(.meta, completeKey) != nil else { return nil }
        var all: [UInt32: TriggerCounts?] = [:]
        let cursor = try snapshot.scan(.meta, KeyRange(prefix: completeKey), reverse: false, values: true)
        defer { cursor.close() }
        while try cursor.next() {
            let key = cursor.key
            if key.count == 5 { all[TriggerLedger.number(key[1...])] = .some(TriggerCounts(cursor.value)) }
        }
        return all
    }

    /// Counts the records of a number.
    init(counting number: UInt32, in snapshot: any Snapshot) throws(Status) {
        let events = EventQueue(trigger: number)
        pending = try events.count(in: snapshot)
        oldest = try events.first(in: snapshot)
        deadLetters = try DeadLetters(trigger: number).count(in: snapshot)
        nextBody = try EventBodies(trigger: number).nextNumber(in: snapshot)
    }

    /// What is wrong in a store.
    package struct Problems {
        /// One for each.
        package var sentences: [String] = []
        /// Whether counting anew mends some of it.
        package var areCountsWrong = false
    }

    /// Compares the stored counts with the records; for the check of a store.
    package static func problems(in snapshot: any Snapshot) throws(Status) -> Problems {
        do throws(Status) {
            return try differences(in: snapshot)
        } catch {
            // What can't be read of triggers is a problem like the others.
            if error.code != .dataLoss { throw error }
            return Problems(sentences: ["meta: \(error.message)"])
        }
    }

    /// Has all counted when the store is opened next.
    package static func forget(in transaction: any StoreTransaction) throws(Status) {
        try transaction.delete(.meta, KeyRange(prefix: completeKey), limit: .max)
    }

    private static func differences(in snapshot: any Snapshot) throws(Status) -> Problems {
        let stored = try all(in: snapshot)
        var problems = Problems()
        let unknown = try unknownKeyCount(in: snapshot)
        if unknown > 0 {
            problems.sentences.append("meta: \(unknown) counts of triggers have no number")
            problems.areCountsWrong = true
        }
        let numbers = try TriggerLedger.numbers(in: snapshot).union(stored.map { Set($0.keys) } ?? [])
        for number in numbers.sorted() {
            problems.sentences += try bodyProblems(number, in: snapshot)
            if let stored, let sentence = try countProblem(number, stored[number] ?? nil, in: snapshot) {
                problems.sentences.append(sentence)
                problems.areCountsWrong = true
            }
        }
        return problems
    }

    /// Damaged ones.
    private static func unknownKeyCount(in snapshot: any Snapshot) throws(Status) -> Int {
        let cursor = try snapshot.scan(.meta, KeyRange(prefix: completeKey), reverse: false, values: false)
        defer { cursor.close() }
        var count = 0
        while try cursor.next() { if cursor.key.count != 1, cursor.key.count != 5 { count += 1 } }
        return count
    }

    private static func countProblem(
        _ number: UInt32, _ known: TriggerCounts?, in snapshot: any Snapshot
    ) throws(Status) -> String? {
        guard let known else { return "meta: the counts of trigger \(number) are missing or can't be read" }
        var counted = try TriggerCounts(counting: number, in: snapshot)
        // There may have been others, which are gone.
        counted.nextBody = max(counted.nextBody, known.nextBody)
        return known == counted ? nil : "meta: trigger \(number) has \(counted), its counts say \(known)"
    }

    private static func bodyProblems(_ number: UInt32, in snapshot: any Snapshot) throws(Status) -> [String] {
        let bodies = EventBodies(trigger: number)
        var known: Set<UInt64> = []
        var (pieces, faults) = (0, 0)
        var all: [EventBodies.Reference] = []
        try EventQueue(trigger: number).forEachBody(in: snapshot) { all.append($0) }
        try DeadLetters(trigger: number).forEachBody(in: snapshot) { all.append($0) }
        for body in all {
            pieces += body.pieceCount
            let isWhole = try bodies.read(body, in: snapshot) != nil
            if !known.insert(body.number).inserted || !isWhole { faults += 1 }
        }
        var problems: [String] = []
        if faults > 0 { problems.append("meta: \(faults) records of trigger \(number) are not complete") }
        let found = try snapshot.count(.meta, bodies.all, limit: .max)
        if faults == 0, found != pieces {
            problems.append("meta: \(found - pieces) pieces of records of trigger \(number) belong to nothing")
        }
        return problems
    }
}

/// What there is of a trigger in all databases.
struct TriggerTotals: Equatable, Sendable {
    private(set) var pending = 0
    private(set) var deadLetters = 0
    /// The version of the oldest event that waits.
    private(set) var oldest: Int64?

    mutating func add(_ counts: TriggerCounts) {
        pending += counts.pending
        deadLetters += counts.deadLetters
        if let other = counts.oldest { oldest = min(oldest ?? other, other) }
    }
}

extension TriggerCounts: CustomStringConvertible {
    package var description: String {
        "\(pending) events" + (oldest.map { " since \($0)" } ?? "")
            + " and \(deadLetters) dead letters, next body \(nextBody)"
    }
}
