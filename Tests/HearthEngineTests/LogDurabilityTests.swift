import HearthModel
import HearthTestStores
import HearthTestSupport
import Testing

@testable import HearthEngine

/// Steps of the log whose order on the disk matters.
struct LogDurabilityTests {
    /// A record whose write failed, and that is on the disk nevertheless, is void because of the file that follows. That
    /// file must not be removed before the removal of the first one is durable.
    @Test func aVoidRecordStaysVoidWhileTheLogIsRemoved() throws {
        for seed in 0..<200 as Range<UInt64> {
            var options = LoggedStoreOptions.simulated
            options.appliers = LogAppliers(threads: 0)
            options.idleMilliseconds = 0
            let machine = SimulatedMachine(SeededGenerator(seed: seed))
            let store = try machine.open(options)
            try put(store, 0..<1)
            // The write, and then the synchronization.
            machine.failingOperation = machine.operations + 2
            #expect(throws: Status.self) { try put(store, 1..<2) }
            // From here on it is void.
            #expect(!store.log.mustRoll)
            machine.lastOperation = machine.operations + 1 + Int(seed % 12)
            store.maintain()
            // A machine that is off is tried again and again.
            for _ in 0..<50 { options.appliers.runOne() }
            store.close()
            machine.restart(losesPower: true)
            let again = try machine.open(options)
            #expect(try again.entryCount() == 1, "seed \(seed)")
            again.close()
        }
    }

    /// The same when a file could not be removed: the last one stays until it is.
    @Test func aVoidRecordStaysVoidWhenItsFileCannotBeRemoved() throws {
        for operation in 1..<16 {
            var options = LoggedStoreOptions.simulated
            options.appliers = LogAppliers(threads: 0)
            options.idleMilliseconds = 0
            let machine = SimulatedMachine(SeededGenerator(seed: UInt64(operation)))
            let store = try machine.open(options)
            try put(store, 0..<1)
            machine.failingOperation = machine.operations + 2
            #expect(throws: Status.self) { try put(store, 1..<2) }
            machine.failingOperation = machine.operations + operation
            store.maintain()
            for _ in 0..<50 { options.appliers.runOne() }
            store.close()
            machine.restart(losesPower: false)
            let again = try machine.open(options)
            #expect(try again.entryCount() == 1, "operation \(operation)")
            again.close()
        }
    }

    /// What a start shows stays, although the process before it ended before its last step was durable.
    @Test func whatAStartShowsStays() throws {
        for seed in 0..<600 as Range<UInt64> {
            let machine = SimulatedMachine(SeededGenerator(seed: seed))
            var options = LoggedStoreOptions.simulated
            options.appliers = LogAppliers(threads: 0)
            let first = try machine.open(options)
            for number in 0..<Int(seed % 3) { try put(first, number..<number + 1) }
            machine.lastOperation = machine.operations + 1 + Int(seed / 3 % 9)
            do throws(Status) { try put(first, 5..<6) } catch { #expect(error.code == .unavailable) }
            first.close()
            machine.restart(losesPower: false)
            let second = try machine.open(options)
            if seed.isMultiple(of: 2) { try put(second, 10..<11) }
            let count = try second.entryCount()
            second.close()
            machine.restart(losesPower: true)
            let third = try machine.open(options)
            #expect(try third.entryCount() == count, "seed \(seed)")
            third.close()
        }
    }

    /// A commit comes between the decision that the log is no longer needed and the removal of its files.
    @Test func aLogThatIsNeededAgainIsNotRemoved() throws {
        let manual = try ManualStore { options in
            options.idleMilliseconds = 0
            options.emptyMilliseconds = 0
        }
        let store = manual.store
        try put(store, 0..<1)
        store.maintain()
        while store.activeBytes > 0 || store.present.layers.hasFrozen { manual.options.appliers.runOne() }
        #expect(store.log.hasFiles)
        try store.write { transaction throws(Status) in
            try transaction.put(.entries, key(1), [1])
            // The writer has the store, so that what is to be done now is done after its commit.
            while manual.options.appliers.runOne() {}
        }
        #expect(store.log.hasFiles)
        manual.machine.restart(losesPower: true)
        let again = try manual.machine.open(.simulated)
        #expect(try again.entryCount() == 2)
        again.close()
        store.close()
    }
}
