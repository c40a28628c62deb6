import HearthModel
import HearthTestStores
import HearthTestSupport
import Testing

@testable import HearthEngine

/// A log and its base belong together.
struct LogOwnershipTests {
    /// A base that has a part of the log's changes is torn without it.
    @Test func aBaseWithoutTheLogThatItHasAPartOfIsRefused() throws {
        let machine = SimulatedMachine(SeededGenerator(seed: 1))
        let manual = try ManualStore(machine) { options in options.tableBytes = 3000 }
        let first = machine.files
        var number = 0
        while !manual.store.present.layers.hasFrozen {
            try put(manual.store, number..<number + 5)
            number += 5
        }
        let log = machine.files
        // One slice of several.
        manual.options.appliers.runOne()
        #expect(manual.store.statistics.applications == 0)
        manual.store.close()
        for (files, isWhole) in [(first, false), ([:], false), (log, true)] {
            machine.replaceFiles(files)
            if isWhole {
                let store = try machine.open(manual.options)
                #expect(try store.entryCount() == number)
                store.close()
            } else {
                let status = #expect(throws: Status.self) { try machine.open(manual.options) }
                #expect(status?.code == .dataLoss)
                #expect(status?.message.contains("The log /disk/ ends with the record 0") == true)
            }
        }
    }

    @Test func theLogOfAnotherBaseIsRefused() throws {
        let stores = try (0..<2).map { _ throws(Status) in try ManualStore() }
        for manual in stores {
            try put(manual.store, 0..<5)
            manual.store.close()
        }
        stores[0].machine.replaceFiles(stores[1].machine.files)
        let status = #expect(throws: Status.self) { try stores[0].machine.open(stores[0].options) }
        #expect(
            status
                == Status(
                    .dataLoss, "The log /disk/1 is damaged at byte 0: it is the log of another database's file."))
    }

    /// The one that was about to be written when the process ended is no damage, but a reader may want to know.
    @Test func aTornRecordIsNoticed() throws {
        let manual = try ManualStore()
        for number in 0..<3 { try put(manual.store, number..<number + 1) }
        manual.store.close()
        let bytes = try #require(manual.machine.files["1"])
        let last = try #require(bytes.lastIndex { $0 != 0 && $0 != 0xFF })
        manual.machine.flip("1", last, mask: 1)
        var options = manual.options
        options.isReadOnly = true
        let store = try manual.machine.open(options)
        defer { store.close() }
        #expect(try store.damage(max: 3) == [])
        #expect(try store.entryCount() == 2)
        #expect(store.notice?.hasPrefix("The log /disk/1 ends at byte ") == true)
    }
}
