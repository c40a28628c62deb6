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

    /// A base of a former format has no mark that it has a log: it gets one when it is opened.
    @Test func aLogWithoutAMarkIsMarkedWhenItIsOpened() throws {
        let manual = try ManualStore()
        try put(manual.store, 0..<5)
        manual.store.close()
        let (machine, log) = (manual.machine, manual.machine.files)
        try machine.baseStore.reopened().write { transaction throws(Status) in
            let former = Array(try LogPosition(transaction).bytes.prefix(32))
            try transaction.put(.meta, LogPosition.key, former)
        }
        // In that format nobody knows that there was one.
        machine.replaceFiles([:])
        var readOnly = manual.options
        readOnly.isReadOnly = true
        let former = try machine.open(readOnly)
        #expect(try former.entryCount() == 0)
        former.close()
        machine.replaceFiles(log)
        let store = try machine.open(manual.options)
        #expect(try store.entryCount() == 5)
        store.close()
        machine.replaceFiles([:])
        let status = #expect(throws: Status.self) { try machine.open(manual.options) }
        #expect(status?.code == .dataLoss && status?.message.hasPrefix("The log /disk/ is missing") == true)
    }

    /// Files that come back after their loss was accepted are those of another base.
    @Test func aLossThatWasAcceptedIsFinal() throws {
        let manual = try ManualStore()
        try put(manual.store, 0..<5)
        manual.store.close()
        let log = manual.machine.files
        manual.machine.replaceFiles([:])
        var accepting = manual.options
        accepting.acceptsLostLog = true
        var store = try manual.machine.open(accepting)
        #expect(try store.lossNotice?.hasPrefix("The log was missing") == true && store.entryCount() == 0)
        store.close()
        store = try manual.machine.open(manual.options)
        #expect(store.lossNotice == nil)
        try put(store, 0..<3)
        store.close()
        store = try manual.machine.open(manual.options)
        #expect(try store.entryCount() == 3)
        store.close()
        manual.machine.replaceFiles(log)
        let status = #expect(throws: Status.self) { try manual.machine.open(accepting) }
        #expect(status?.message.contains("it is the log of another database's file") == true)
    }

    /// While the base can't have the mark, a log is not begun.
    @Test func noRecordIsAcknowledgedBeforeTheMark() throws {
        let manual = try ManualStore()
        manual.machine.baseFails = true
        let status = #expect(throws: Status.self) { try put(manual.store, 0..<5) }
        #expect(status?.code == .unavailable)
        #expect(try !LogPosition(try manual.machine.baseSnapshot()).hasLog)
        manual.machine.baseFails = false
        try put(manual.store, 5..<8)
        #expect(try manual.store.entryCount() == 3)
        #expect(try LogPosition(try manual.machine.baseSnapshot()).hasLog)
        // Later commits need the base no more.
        manual.machine.baseFails = true
        try put(manual.store, 8..<9)
        manual.store.close()
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
