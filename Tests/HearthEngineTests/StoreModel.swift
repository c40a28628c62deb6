import HearthModel
import HearthEngine
import HearthTestStores
import HearthTestSupport
import Testing

/// The expected contents of a store, as simply as possible: a dictionary per keyspace, sorted on demand.
struct StoreModel: Equatable {
    private var maps: [[[UInt8]: [UInt8]]] = Array(repeating: [:], count: Keyspace.allCases.count)

    subscript(keyspace: Keyspace, key: [UInt8]) -> [UInt8]? {
        get { maps[keyspace.rawValue][key] }
        set { maps[keyspace.rawValue][key] = newValue }
    }

    func rows(_ keyspace: Keyspace, _ range: KeyRange, reverse: Bool = false) -> [Row] {
        let found = maps[keyspace.rawValue].filter { key, _ in
            !key.precedes(range.lower)
                && (range.upper.map { key.precedes($0) } ?? true)
        }
        let sorted = found.sorted { $0.key.precedes($1.key) }.map { Row(key: $0.key, value: $0.value) }
        return reverse ? sorted.reversed() : sorted
    }

    mutating func delete(_ keyspace: Keyspace, _ range: KeyRange, limit: Int) -> Int {
        let doomed = rows(keyspace, range).prefix(limit)
        for row in doomed { self[keyspace, row.key] = nil }
        return doomed.count
    }
}

/// Random keys, ranges and operations on a store and its model.
struct StoreExercise {
    var random: SeededGenerator

    init(seed: UInt64) { random = SeededGenerator(seed: seed) }

    mutating func keyspace() -> Keyspace { Keyspace(rawValue: random.below(4)) ?? .meta }

    /// Short keys of few bytes, so that they are equal often and are prefixes of each other.
    mutating func key() -> [UInt8] {
        let alphabet: [UInt8] = [0, 1, 0x41, 0xFE, 0xFF]
        if random.isOne(in: 20) { return random.bytes(random.below(2000)) }
        return (0..<random.below(6)).map { _ in alphabet[random.below(alphabet.count)] }
    }

    mutating func value() -> [UInt8] {
        if random.isOne(in: 50) { return random.bytes(random.below(20_000)) }
        return random.bytes(random.below(40))
    }

    mutating func range() -> KeyRange {
        switch random.below(5) {
        case 0: .all
        case 1: KeyRange(prefix: key())
        case 2: KeyRange(lower: key(), upper: nil)
        default: KeyRange(lower: key(), upper: key())
        }
    }

    /// Changes both, at random, and compares the reads of the transaction.
    mutating func change(_ transaction: any StoreTransaction, _ model: inout StoreModel) throws(Status) {
        for _ in 0..<random.number(1..<40) {
            let keyspace = keyspace()
            switch random.below(12) {
            case 0..<7:
                let (key, value) = (key(), value())
                try transaction.put(keyspace, key, value)
                model[keyspace, key] = value
            case 7..<9:
                let key = key()
                try transaction.delete(keyspace, key)
                model[keyspace, key] = nil
            case 9:
                let range = range()
                let limit = random.isOne(in: 4) ? Int.max : random.below(8)
                #expect(
                    try transaction.delete(keyspace, range, limit: limit)
                        == model.delete(keyspace, range, limit: limit))
            default:
                try compare(transaction, model)
            }
        }
    }

    /// Compares one read of a random kind.
    mutating func compare(_ snapshot: any Snapshot, _ model: StoreModel) throws(Status) {
        let keyspace = keyspace()
        switch random.below(4) {
        case 0:
            let key = key()
            #expect(try snapshot.get(keyspace, key) == model[keyspace, key])
        case 1:
            let range = range()
            let limit = random.isOne(in: 2) ? Int.max : random.below(8)
            #expect(
                try snapshot.count(keyspace, range, limit: limit) == min(limit, model.rows(keyspace, range).count))
        default:
            try compareWalk(snapshot, model, keyspace)
        }
    }

    /// Compares a walk with seeks here and there.
    private mutating func compareWalk(
        _ snapshot: any Snapshot, _ model: StoreModel, _ keyspace: Keyspace
    ) throws(Status) {
        let range = range()
        let reverse = random.isOne(in: 2)
        let values = random.isOne(in: 2)
        let seekChance = [2, 5, 1_000_000][random.below(3)]
        var expected = model.rows(keyspace, range, reverse: reverse)[...]
        let cursor = try snapshot.scan(keyspace, range, reverse: reverse, values: values)
        while true {
            while random.isOne(in: seekChance) {
                let target = key()
                try cursor.seek(target)
                expected = expected.drop {
                    reverse ? target.precedes($0.key) : $0.key.precedes(target)
                }
            }
            guard try cursor.next() else { break }
            guard let row = expected.popFirst() else {
                Issue.record("the walk goes on with \(cursor.key)")
                return
            }
            #expect(cursor.key == row.key)
            #expect(cursor.value == (values ? row.value : []))
        }
        #expect(expected.isEmpty)
        #expect(try !cursor.next())
        if random.isOne(in: 2) { cursor.close() }
    }

    func compareAll(_ snapshot: any Snapshot, _ model: StoreModel) throws(Status) {
        for keyspace in Keyspace.allCases {
            let cursor = try snapshot.scan(keyspace, .all, reverse: false, values: true)
            #expect(try rows(cursor) == model.rows(keyspace, .all))
        }
    }
}
