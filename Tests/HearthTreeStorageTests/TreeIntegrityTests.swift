@testable import HearthConcurrency
import HearthModel
import HearthEngine
import HearthTree
import Testing

@testable import HearthTreeStorage

/// Every kind of damage is found.
@Suite struct TreeIntegrityTests {
    let store = MemoryStore()
    let database: TreeDatabase

    init() throws {
        database = try TreeDatabase(name: "test", store: store, clock: SystemClock())
        try database.define([
            TreeIndexDefinition(pattern: ["users"], index: .child("age")),
            TreeIndexDefinition(pattern: ["users", "$user"], index: .value),
        ])
        database.finishBuilding()
        let users = tree(
            """
            {"ann":{"age":7,"name":"Ann",".priority":3},"bob":{"age":{"of":"stone"},"x":{".value":1,".priority":"p"}},"c":5}
            """)
        try database.write(
            TreeWrite(("users", users), ("string", .init(.string(String(repeating: "x", count: 600))))))
    }

    private func findings() throws -> [String] { try database.read { try TreeIntegrityCheck.run($0, max: 5) } }

    private func damage(_ body: (any StoreTransaction) throws(Status) -> Void) throws -> [String] {
        #expect(try findings() == [])
        try store.write { transaction throws(Status) in try body(transaction) }
        return try findings()
    }

    private func keys(_ prefix: [UInt8]) throws -> [[UInt8]] {
        let snapshot = try store.snapshot()
        let cursor = try snapshot.scan(.entries, KeyRange(prefix: prefix), reverse: false, values: false)
        var keys: [[UInt8]] = []
        while try cursor.next() { keys.append(cursor.key) }
        return keys
    }

    @Test func recordsBelowALeaf() throws {
        let found = try damage { transaction throws(Status) in
            try transaction.put(.entries, PathCode.location("string/below"), TreeRecord(1, priority: nil).bytes)
        }
        #expect(found == ["There is something below a leaf: /string/below."])
    }

    @Test func prioritiesOfNothing() throws {
        let found = try damage { transaction throws(Status) in
            try transaction.put(.entries, PathCode.location("zzz"), TreeRecord(nil, priority: 1).bytes)
        }
        #expect(found.contains("A priority has no entry: /zzz."))
        #expect(found.contains("A node without children has a priority: /zzz."))
    }

    @Test(arguments: [Int64.max, .min, -1]) func aDamagedVersionIsNotOpened(_ version: Int64) throws {
        let store = MemoryStore()
        try store.write { transaction throws(Status) in
            try transaction.put(.meta, TreeMeta.version, TreeMeta.encode(version))
        }
        let status = #expect(throws: Status.self) {
            try TreeDatabase(name: "test", store: store, clock: SystemClock())
        }
        #expect(status?.code == .dataLoss)
    }

    @Test func damagedRecords() throws {
        let found = try damage { transaction throws(Status) in
            try transaction.put(.entries, [1, 9, 9], TreeRecord(1, priority: nil).bytes)
            try transaction.put(.entries, PathCode.location("users/c"), [0xFF])
        }
        #expect(found.filter { $0.hasPrefix("A record is damaged") }.count == 2)
    }

    @Test func missingStrings() throws {
        let found = try damage { transaction throws(Status) in
            try transaction.delete(.documents, PathCode.location("string"))
        }
        #expect(found.first == "A long string is missing or has another length: /string.")
    }

    @Test func strayStrings() throws {
        let found = try damage { transaction throws(Status) in
            try transaction.put(.documents, PathCode.location("other"), [1])
        }
        #expect(found == ["There are 2 long strings, there should be 1."])
    }

    @Test(arguments: [PathCode.Space.index, PathCode.Space.priorities])
    func missingEntries(space: UInt8) throws {
        let all = try keys([space])
        #expect(all.count == (space == PathCode.Space.index ? 3 + 4 : 2))
        for key in all {
            let found = try damage { transaction throws(Status) in try transaction.delete(.entries, key) }
            #expect(found.count == 2, "\(found)")
            try store.write { transaction throws(Status) in try transaction.put(.entries, key, []) }
        }
    }

    @Test(arguments: [PathCode.Space.index, PathCode.Space.priorities])
    func strayEntries(space: UInt8) throws {
        for key in try keys([space]) {
            let found = try damage { transaction throws(Status) in
                try transaction.put(.entries, key.dropLast() + [0x62, 0], [])
            }
            #expect(found.count == 1, "\(found)")
            try store.write { transaction throws(Status) in
                try transaction.delete(.entries, key.dropLast() + [0x62, 0])
            }
        }
    }

    /// A query reads the key of a child from an entry: what is cut or has more behind it is an error, and no trap.
    @Test(arguments: [TreeQuery.Index.child("age"), .priority])
    func damagedEntriesAreErrors(_ index: TreeQuery.Index) throws {
        let space = index == .priority ? PathCode.Space.priorities : PathCode.Space.index
        var query = TreeQuery()
        query.index = index
        // Without a limit all children are walked.
        query.limit = 100
        let entries = try keys([space])
        // Behind the prefix of a location.
        let start = try #require(entries.first?.firstRange(of: PathCode.location("users")[1...])).upperBound + 1
        for entry in entries where entry.count > start && entry.starts(with: entries[0][..<start]) {
            let damaged = (start..<entry.count).map { Array(entry[..<$0]) } + [entry + [1], entry + entry]
            for key in damaged {
                try store.write { transaction throws(Status) in
                    try transaction.delete(.entries, entry)
                    try transaction.put(.entries, key, [])
                }
                let status = #expect(throws: Status.self, "\(key)") {
                    try database.read { _ = try $0.keys(of: query, at: "users") }
                }
                #expect(status?.code == .dataLoss)
                try store.write { transaction throws(Status) in
                    try transaction.delete(.entries, key)
                    try transaction.put(.entries, entry, [])
                }
            }
        }
        #expect(try findings() == [])
    }

    /// The priority of a record is longer than the record: its value would have a negative size.
    @Test(arguments: [[0x36], [0x45], [0x33, 1, 2], [0x56, 0, 0, 0, 9], [0x56]] as [[UInt8]])
    func recordsThatEndWithinTheirPriority(_ bytes: [UInt8]) throws {
        let record = try TreeRecord(stored: bytes)
        #expect(throws: TreeRecord.damaged) { try record.valueSizeBytes }
        #expect(throws: TreeRecord.damaged) { try record.priority }
    }
}
