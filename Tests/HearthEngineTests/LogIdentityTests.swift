import HearthModel
import HearthTestStores
import HearthTestSupport
import Testing

@testable import HearthEngine

/// Which log belongs to which base.
struct LogIdentityTests {
    /// A base and the files of its log.
    private struct Database {
        var base: MemoryStore
        var files: [String: [UInt8]]

        /// - Parameter value: of its only row.
        /// - Parameter isApplied: whether the base has the row, or the log.
        init(_ value: UInt8, isApplied: Bool = false) throws {
            let manual = try ManualStore { $0.emptyMilliseconds = 1_000_000 }
            try put(manual.store, 0..<1, [value])
            if isApplied {
                manual.store.freezeSoon()
                manual.options.appliers.runAll()
            }
            manual.store.close()
            files = manual.machine.files
            manual.machine.restart(losesPower: true)
            base = manual.machine.baseStore
        }

        init(_ base: MemoryStore) {
            self.base = base
            files = [:]
        }
    }

    private func machine(_ base: MemoryStore, _ files: [String: [UInt8]]) -> SimulatedMachine {
        let machine = SimulatedMachine(SeededGenerator(seed: 1))
        machine.replaceBase(base)
        machine.replaceFiles(files)
        return machine
    }

    @Test(arguments: [false, true])
    func theLogOfAnotherDatabaseIsRefused(isReadOnly: Bool) throws {
        var options = LoggedStoreOptions.simulated
        options.isReadOnly = isReadOnly
        for base in [try Database(1), try Database(1, isApplied: true), Database(MemoryStore())] {
            for other in [try Database(2), try Database(2, isApplied: true)] {
                let machine = machine(base.base.reopened(), other.files)
                let name = try #require(other.files.keys.first)
                do throws(Status) {
                    try machine.open(options).close()
                    Issue.record("opened with the log of another database")
                } catch {
                    #expect(error.code == .dataLoss)
                    #expect(error.message.contains("/disk/\(name) is damaged at byte 0: it is the log of another"), "\(error)")
                }
                #expect(machine.files == other.files)
            }
        }
    }

    /// A copy of both has the same contents.
    @Test func aCopiedPairIsTheSameDatabase() throws {
        let original = try Database(1)
        let store = try machine(original.base.reopened(), original.files).open(.simulated)
        #expect(try store.snapshot().get(.entries, key(0)) == [1])
        try put(store, 1..<2)
        store.close()
    }

    @Test func eachDatabaseHasItsOwn() throws {
        var identities: Set<UInt64> = []
        for _ in 0..<10 {
            let manual = try ManualStore()
            let position = try LogPosition(manual.machine.baseSnapshot())
            #expect(position.owner != 0 && position.sequence == 0)
            identities.insert(position.owner)
            try put(manual.store, 0..<1)
            manual.store.freezeSoon()
            manual.options.appliers.runAll()
            #expect(try LogPosition(manual.machine.baseSnapshot()).owner == position.owner)
            manual.store.close()
        }
        #expect(identities.count == 10)
    }

    /// A base that can't take the number has no log.
    @Test func withoutABaseThereIsNoLog() throws {
        let machine = SimulatedMachine(SeededGenerator(seed: 1))
        machine.baseFails = true
        #expect(throws: Status.self) { try machine.open(.simulated) }
        #expect(machine.files.isEmpty)
        machine.baseFails = false
        machine.restart(losesPower: true)
        let store = try machine.open(.simulated)
        try put(store, 0..<1)
        #expect(try store.entryCount() == 1)
        store.close()
    }
}
