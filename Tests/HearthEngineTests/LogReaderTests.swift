import HearthModel
import HearthTestStores
import HearthTestSupport
import Testing

@testable import HearthEngine

/// What a start makes of files that are missing or damaged.
struct LogReaderTests {
    private static let rows = 40
    private let base: MemoryStore
    private let files: [String: [UInt8]]
    /// The names in the order of the records.
    private var names: [String] { files.keys.sorted { UInt64($0) ?? 0 < UInt64($1) ?? 0 } }

    init() throws {
        let manual = try ManualStore { options in
            options.tableBytes = 1 << 20
            options.segments.min = 4096
            options.segments.max = 4096
        }
        for number in 0..<Self.rows { try put(manual.store, number..<number + 1, [UInt8](repeating: 7, count: 300)) }
        manual.store.close()
        base = manual.machine.baseStore
        files = manual.machine.files
        try #require(files.count > 3)
    }

    private func machine(_ change: (inout [String: [UInt8]]) -> Void = { _ in }) -> SimulatedMachine {
        var files = files
        change(&files)
        let machine = SimulatedMachine(SeededGenerator(seed: 1))
        machine.replaceBase(base.reopened())
        machine.replaceFiles(files)
        return machine
    }

    private func expectDamage(_ words: String, _ change: (inout [String: [UInt8]]) -> Void) throws {
        do throws(Status) {
            try machine(change).open(.simulated).close()
            Issue.record("the damage was not found: \(words)")
        } catch {
            #expect(error.code == .dataLoss && error.message.contains(words), "\(error)")
        }
    }

    @Test func aMissingFileBeforeAnotherOneIsFound() throws {
        try expectDamage("but the database ends with 0") { $0[names[0]] = nil }
        for name in names.dropFirst().dropLast() { try expectDamage("are missing") { $0[name] = nil } }
    }

    @Test func anUnreadableBeginningIsFound() throws {
        for name in names {
            try expectDamage("its beginning is unreadable") { files in
                files[name]?.replaceSubrange(
                    0..<LogSegment.headerBytes, with: [UInt8](repeating: 0, count: LogSegment.headerBytes))
            }
        }
    }

    /// Also where the base has what the file begins with: what follows may be nowhere else.
    @Test func anUnreadableBeginningIsFoundBehindThePosition() throws {
        for name in names {
            let machine = machine { files in
                for offset in [0, 512] { files[name]?[offset + 20] ^= 1 }
            }
            var position = try LogPosition(machine.baseSnapshot())
            (position.sequence, position.begun) = (UInt64(Self.rows - 1), UInt64(Self.rows - 1))
            try machine.baseStore.write { transaction throws(Status) in
                try transaction.put(.meta, LogPosition.key, position.bytes)
            }
            let status = #expect(throws: Status.self) { try machine.open(.simulated) }
            #expect(status?.code == .dataLoss && status?.message.contains("its beginning is unreadable") == true)
        }
    }

    /// Only whole files get numbers.
    @Test func aFileThatWasCutShortIsFound() throws {
        for name in names {
            for count in [0, 100, LogSegment.headerBytes, 2000] {
                try expectDamage("it was cut short") { $0[name] = $0[name].map { Array($0.prefix(count)) } }
            }
        }
    }

    @Test func filesOfOthersStay() throws {
        let machine = machine { files in files["2.bak"] = [1, 2, 3] }
        let store = try machine.open(.simulated)
        #expect(try store.entryCount() == Self.rows)
        store.close()
        #expect(machine.files["2.bak"] == [1, 2, 3])
    }

    /// Only damage makes such numbers; counting on from them would end the process.
    @Test func numbersThatNobodyReachesAreDamage() throws {
        let whole = try LogPosition(machine().baseSnapshot())
        for change: (inout LogPosition) -> Void in [
            { $0.sequence = 1 }, { $0.segment = .max }, { $0.begun = .max },
        ] {
            var position = whole
            change(&position)
            let machine = machine()
            try machine.baseStore.write { transaction throws(Status) in
                try transaction.put(.meta, LogPosition.key, position.bytes)
            }
            let status = #expect(throws: Status.self) { try machine.open(.simulated) }
            #expect(status?.code == .dataLoss)
        }
        let segment = LogSegment(number: .max, first: 1, salt: 1, owner: 1, sizeBytes: 4096)
        let header = segment.header
        #expect(try header.withUnsafeBytes { try LogSegment(header: $0) } == nil)
    }

    /// A value can't look like the beginning of a record, whose end would be looked for: the mark depends on the salt.
    @Test func marksDependOnTheSalt() {
        let record = LogRecord()
        [1].withKey { record.delete(.entries, $0) }
        let sealed = record.seal(7, salt: 1)
        #expect(LogRecord.sequence(sealed, at: 0, salt: 1) == 7)
        #expect(LogRecord.sequence(sealed, at: 0, salt: 2) == nil)
    }

    @Test func missingRecordsBeforeAnotherFileAreFound() throws {
        for name in names.dropLast() {
            try expectDamage("are missing") { files in
                guard let count = files[name]?.count else { return }
                files[name]?.replaceSubrange(count / 2..<count, with: [UInt8](repeating: 0, count: count - count / 2))
            }
        }
    }

    @Test func aMissingRecordBeforeAnotherOneIsFound() throws {
        let offset = LogSegment.headerBytes + 40
        for name in names.dropLast() { try expectDamage("are missing") { $0[name]?[offset] ^= 1 } }
        try expectDamage("is missing, but") { $0[names[names.count - 1]]?[offset] ^= 1 }
    }

    /// Files that an earlier process has applied, of which later ones were lost.
    @Test func aBaseThatIsAheadOfItsLogGoesOn() throws {
        let machine = machine()
        var position = try LogPosition(machine.baseSnapshot())
        (position.sequence, position.segment, position.begun) = (1000, 50, 1000)
        try machine.baseStore.write { transaction throws(Status) in
            try transaction.put(.meta, LogPosition.key, position.bytes)
        }
        for round in 0..<3 {
            let store = try machine.open(.simulated)
            #expect(try store.entryCount() == round)
            try put(store, round..<round + 1)
            store.close()
            machine.restart(losesPower: true)
        }
        #expect(machine.files.keys.allSatisfy { UInt64($0) ?? 0 > 50 || names.contains($0) })
    }
}
