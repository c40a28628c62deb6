import HearthModel
import HearthEngine
import HearthTestDoubles
import HearthTestSupport
import Testing

@testable import HearthTreeStorage

/// Another tree as its differences from a tree.
@Suite struct TreeDeltaTests {
    private typealias Records = [[UInt8]: [UInt8]]

    private static func key(_ random: inout SeededGenerator) -> [UInt8] {
        var key: [UInt8] = [UInt8(1 + random.below(3)), 2]
        for _ in 0..<random.below(4) { key.append(UInt8(random.below(3))) }
        return key
    }

    private static func range(_ random: inout SeededGenerator) -> KeyRange {
        if random.chance(60) { return KeyRange(prefix: key(&random)) }
        if random.chance(20) { return KeyRange(lower: key(&random), upper: nil) }
        return KeyRange(lower: key(&random), upper: key(&random))
    }

    /// Both trees are changed at random; each agrees with a dictionary, in every direction, and in the end the tree is
    /// the other one.
    @Test func bothTreesAgreeWithDictionaries() throws {
        let seed = TestRun.seed()
        var random = SeededGenerator(seed: seed)
        for round in 0..<60 * TestRun.effort {
            let store = MemoryStore()
            let keyspace: Keyspace = random.chance(50) ? .entries : .documents
            var below: Records = [:]
            for _ in 0..<random.below(60) { below[Self.key(&random)] = [UInt8(random.below(3))] }
            try store.write { transaction throws(Status) in
                for (key, value) in below { try transaction.put(keyspace, key, value) }
            }
            let shadow = TreeShadow(id: 7)
            var above = below
            for step in 0..<60 {
                let note: Comment = "seed \(seed), round \(round), step \(step)"
                try store.write { transaction throws(Status) in
                    try Self.change(&random, shadow, transaction, keyspace, &above, &below)
                }
                let snapshot = try store.snapshot()
                defer { snapshot.close() }
                #expect(try Self.all(snapshot, keyspace) == below, note)
                for map in [shadow.map, try TreeDeltaMap(shadow.delta, in: snapshot)] {
                    try Self.compare(map, snapshot, keyspace, above, &random, note)
                }
            }
            var slices = 0
            while true {
                let isDone = try store.write { transaction throws(Status) in
                    var slice = Slice(SliceBounds(recordsMax: 3))
                    return try shadow.delta.settle(&slice, transaction)
                }
                slices += 1
                let snapshot = try store.snapshot()
                defer { snapshot.close() }
                let map = try TreeDeltaMap(shadow.delta, in: snapshot)
                try Self.compare(
                    map, snapshot, keyspace, above, &random, "seed \(seed), round \(round), slice \(slices)")
                if isDone { break }
            }
            let snapshot = try store.snapshot()
            defer { snapshot.close() }
            #expect(try Self.all(snapshot, keyspace) == above)
            #expect(try snapshot.count(keyspace, KeyRange(lower: [], upper: nil), limit: .max) == above.count)
        }
    }

    private static func change(
        _ random: inout SeededGenerator, _ shadow: TreeShadow, _ transaction: any StoreTransaction,
        _ keyspace: Keyspace,
        _ above: inout Records, _ below: inout Records
    ) throws(Status) {
        let (key, value, range) = (key(&random), [UInt8(random.below(3))], range(&random))
        let shown = ShadowTransaction(transaction, shadow)
        switch random.below(6) {
        case 0:
            try shown.put(keyspace, key, value)
            above[key] = value
        case 1:
            try shown.delete(keyspace, key)
            above[key] = nil
        case 2:
            _ = try shown.delete(keyspace, range, limit: .max)
            above = above.filter { !range.contains($0.key) }
        case 3:
            try shadow.keep(keyspace, key, before: value, transaction)
            try transaction.put(keyspace, key, value)
            below[key] = value
        case 4:
            try shadow.keep(keyspace, key, before: nil, transaction)
            try transaction.delete(keyspace, key)
            below[key] = nil
        default:
            let (lower, upper) = TreeDelta.clipped(range)
            let clipped = KeyRange(lower: lower, upper: upper)
            try shadow.keep(keyspace, range, transaction)
            if !clipped.isEmpty { try transaction.delete(keyspace, clipped, limit: .max) }
            below = below.filter { !range.contains($0.key) }
        }
    }

    private static func all(_ snapshot: any Snapshot, _ keyspace: Keyspace) throws -> Records {
        var found: Records = [:]
        let cursor = try snapshot.scan(
            keyspace, KeyRange(lower: [], upper: [PathCode.Space.staged]), reverse: false, values: true)
        defer { cursor.close() }
        while try cursor.next() { found[cursor.key] = cursor.value }
        return found
    }

    private static func compare(
        _ map: TreeDeltaMap, _ snapshot: any Snapshot, _ keyspace: Keyspace, _ model: Records,
        _ random: inout SeededGenerator, _ note: Comment
    ) throws {
        let key = key(&random)
        #expect(try map.get(snapshot, keyspace, key) == model[key], note)
        let range = range(&random)
        let reverse = random.chance(50)
        let dropping = random.chance(50) ? min(2, range.lower.count) : 0
        // The omitted part must be the same in all keys.
        let hasStart = range.upper.map { $0.starts(with: range.lower.prefix(dropping)) } ?? false
        let dropped = hasStart ? dropping : 0
        var wanted = model.keys.filter { range.contains($0) }.sorted { UTF8Order.compare($0, $1) < 0 }
        #expect(try map.count(snapshot, keyspace, range, limit: .max) == wanted.count, note)
        #expect(try map.count(snapshot, keyspace, range, limit: 2) == min(2, wanted.count), note)
        if reverse { wanted.reverse() }
        let cursor = try map.scan(
            snapshot, keyspace, range, reverse: reverse, values: true, dropping: dropped)
        defer { cursor.close() }
        var index = 0
        while true {
            if random.chance(20) {
                let target = Self.key(&random)
                let isInside = range.contains(target)
                if isInside {
                    try cursor.seek(target)
                    while index < wanted.count {
                        let order = UTF8Order.compare(wanted[index], target)
                        if reverse ? order <= 0 : order >= 0 { break }
                        index += 1
                    }
                }
            }
            guard try cursor.next() else { break }
            guard index < wanted.count else {
                Issue.record("more than there is, \(note)")
                return
            }
            #expect(cursor.key == Array(wanted[index].dropFirst(dropped)), note)
            #expect(cursor.value == model[wanted[index]], note)
            index += 1
        }
        #expect(index == wanted.count, note)
    }

    /// Deleted records do not increase the cost of reading the existing ones.
    @Test func aReadCostsTheSameHoweverMuchIsDifferent() throws {
        var costs: [[Int]] = []
        for count in [100, 1_000, 10_000] {
            let store = MemoryStore()
            let shadow = TreeShadow(id: 1)
            try store.write { transaction throws(Status) in
                let shown = ShadowTransaction(transaction, shadow)
                for number in 0..<count {
                    try transaction.put(.entries, Self.numbered(number), [1])
                }
                for number in 1..<count - 1 {
                    // Half of the records in the middle are deleted one by one, the rest are deleted or new between
                    // existing ones.
                    if number < count / 2 || number % 2 == 0 { try shown.delete(.entries, Self.numbered(number)) }
                    if number > count / 2, number % 2 == 0 { try shown.put(.entries, Self.numbered(number) + [1], [2]) }
                }
            }
            let snapshot = CountingSnapshot(try store.snapshot())
            defer { snapshot.close() }
            let map = try TreeDeltaMap(shadow.delta, in: snapshot)
            var found: [Int] = []
            #expect(try map.get(snapshot, .entries, Self.numbered(count / 4)) == nil)
            found.append(snapshot.reads)
            #expect(try map.get(snapshot, .entries, Self.numbered(count - 1)) == [1])
            found.append(snapshot.reads)
            let behind = KeyRange(lower: Self.numbered(1), upper: nil)
            #expect(try map.count(snapshot, .entries, behind, limit: 1) == 1)
            found.append(snapshot.reads)
            for reverse in [false, true] {
                let cursor = try map.scan(
                    snapshot, .entries, KeyRange(prefix: [1]), reverse: reverse, values: false, dropping: 0)
                defer { cursor.close() }
                for _ in 0..<20 { #expect(try cursor.next()) }
                if !reverse {
                    try cursor.seek(Self.numbered(count - 11))
                    for _ in 0..<5 { #expect(try cursor.next()) }
                }
                found.append(snapshot.reads)
            }
            costs.append(found)
        }
        #expect(costs[0] == costs[1] && costs[1] == costs[2], "\(costs)")
        #expect(costs[2].allSatisfy { $0 <= 160 }, "\(costs)")
    }

    /// The cost of a deletion in the tree below a large part of the shadow depends on the tree's records there.
    @Test func aDeletionBelowAShadowCostsTheDeletedRecords() throws {
        var costs: [Int] = []
        for count in [100, 1_000, 10_000] {
            let store = FaultyStore()
            let shadow = TreeShadow(id: 1)
            try store.write { transaction throws(Status) in
                for number in 0..<10 { try transaction.put(.entries, Self.numbered(number) + [7], [1]) }
                for number in 0..<count { try shadow.put(.entries, Self.numbered(number), [2], transaction) }
                try shadow.delete(.entries, Self.numbered(3) + [7], transaction)
            }
            store.fail(at: nil)
            try store.write { transaction throws(Status) in
                try shadow.keep(.entries, KeyRange(prefix: [1]), transaction)
                try transaction.delete(.entries, KeyRange(lower: [1], upper: [2]), limit: .max)
            }
            costs.append(store.operations)
            let snapshot = try store.snapshot()
            defer { snapshot.close() }
            #expect(try shadow.map.count(snapshot, .entries, KeyRange(prefix: [1]), limit: .max) == count + 9)
        }
        #expect(costs[0] == costs[1] && costs[1] == costs[2] && costs[2] < 60, "\(costs)")
    }

    private static func numbered(_ number: Int) -> [UInt8] { [1, 2, UInt8(number >> 8), UInt8(number & 0xFF), 9] }
}

/// A snapshot that counts its reads.
private final class CountingSnapshot: Snapshot {
    private final class Cursor: KeyCursor {
        private let inner: any KeyCursor
        private let counts: CountingSnapshot

        init(_ inner: any KeyCursor, _ counts: CountingSnapshot) {
            self.inner = inner
            self.counts = counts
        }

        var key: [UInt8] { inner.key }
        var value: [UInt8] { inner.value }

        func next() throws(Status) -> Bool {
            counts.reads += 1
            return try inner.next()
        }

        func seek(_ key: [UInt8]) throws(Status) {
            counts.reads += 1
            try inner.seek(key)
        }

        func close() { inner.close() }
    }

    private let inner: any Snapshot
    var reads = 0

    init(_ inner: any Snapshot) { self.inner = inner }

    func get(_ keyspace: Keyspace, _ key: [UInt8]) throws(Status) -> [UInt8]? {
        reads += 1
        return try inner.get(keyspace, key)
    }

    func scan(
        _ keyspace: Keyspace, _ range: KeyRange, reverse: Bool, values: Bool, dropping: Int
    ) throws(Status) -> any KeyCursor {
        reads += 1
        return Cursor(
            try inner.scan(keyspace, range, reverse: reverse, values: values, dropping: dropping), self)
    }

    func count(_ keyspace: Keyspace, _ range: KeyRange, limit: Int) throws(Status) -> Int {
        reads += 1
        return try inner.count(keyspace, range, limit: limit)
    }

    func close() { inner.close() }
}
