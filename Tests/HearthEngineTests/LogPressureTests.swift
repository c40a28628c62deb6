import HearthModel
import HearthTestStores
import HearthTestSupport
import Synchronization
import Testing

@testable import HearthEngine

/// What happens when the writes are faster than the base.
struct LogPressureTests {
    /// The writes are delayed more and more, at most by the bound, and none waits for the applier while the table is
    /// below its hard bound.
    @Test func writesAreDelayedGraduallyWhileTheBaseIsSlow() throws {
        let pauses = Mutex<[Int]>([])
        // Nothing is applied before the end.
        let manual = try ManualStore { options in
            options.tableBytes = 10_000
            options.tablesMax = 4
            options.pause = { microseconds in pauses.withLock { $0.append(microseconds) } }
        }
        let store = manual.store
        defer { store.close() }
        var number = 0
        while !store.present.layers.hasFrozen || store.activeBytes < 39_000 {
            try put(store, number..<number + 5)
            number += 5
            #expect(!store.present.layers.hasFrozen || store.excess < 1)
        }
        let first = pauses.withLock { $0 }
        #expect(first.count > 20)
        #expect(first == first.sorted())
        #expect(first.allSatisfy { $0 <= manual.options.delayMicrosecondsMax })
        #expect(try #require(first.first) < manual.options.delayMicrosecondsMax / 10)
        #expect(store.statistics.stalledWrites == 0)
        #expect(store.statistics.delayedWrites == first.count)
        manual.options.appliers.runAll()
        pauses.withLock { $0 = [] }
        for _ in 0..<5 { try put(store, 0..<5) }
        #expect(pauses.withLock { $0 }.isEmpty)
    }

    @Test func writesWaitAtTheHardBound() throws {
        let base = HeldStore()
        var options = LoggedStoreOptions.short
        options.appliers = LogAppliers(threads: 1)
        options.tableBytes = 5000
        options.tablesMax = 2
        options.pause = { _ in }
        let folder = TemporaryFolder()
        let store = try LoggedStore(base: base, logFolder: folder.path + "/log", name: "test", options: options)
        defer { store.close() }
        // The first write gives the base its identity.
        try put(store, 0..<1)
        base.hold()
        var number = 0
        while store.activeBytes < 2 * options.tableBytes || !store.present.layers.hasFrozen {
            try put(store, number..<number + 5)
            number += 5
        }
        let isWritten = Atomic(false)
        let end = number
        inThreads(2) { thread in
            if thread == 0 {
                do throws(Status) { try put(store, end..<end + 1) } catch { Issue.record("\(error)") }
                isWritten.store(true, ordering: .releasing)
            } else {
                let waits = eventually { store.statistics.stalledWrites == 1 }
                let wasWritten = isWritten.load(ordering: .acquiring)
                #expect(waits && !wasWritten)
                base.release()
            }
        }
        #expect(try store.entryCount() == number + 1)
    }

    @Test func aBaseThatFailsStopsWritesAtTheHardBoundOnly() throws {
        let observer = RecordingObserver()
        let manual = try ManualStore { options in
            options.tableBytes = 5000
            options.tablesMax = 2
            options.observer = observer
        }
        let store = manual.store
        defer { store.close() }
        try put(store, 0..<1)
        manual.machine.baseFails = true
        var status: Status?
        for number in 0..<1000 where status == nil {
            do throws(Status) { try put(store, number..<number + 5) } catch { status = error }
            manual.options.appliers.runOne()
        }
        #expect(status?.code == .unavailable)
        #expect(store.activeBytes >= 2 * manual.options.tableBytes)
        manual.machine.baseFails = false
        manual.options.appliers.runAll()
        try put(store, 0..<5)
        let events = observer.events
        #expect(events.contains { if case .checkpointsFail = $0 { true } else { false } })
        #expect(events.contains { if case .checkpointsRecovered = $0 { true } else { false } })
        #expect(!events.contains { if case .commitsFail = $0 { true } else { false } })
    }

    @Test func theLargestTableIsFrozenWhenTheBudgetIsUsedUp() throws {
        let budget = TableBudget(bytesMax: 30_000)
        let stores = try (0..<3).map { _ in
            try ManualStore { options in
                options.tableBytes = 1 << 20
                options.budget = budget
            }
        }
        defer { for manual in stores { manual.store.close() } }
        try put(stores[0].store, 0..<50)
        try put(stores[1].store, 0..<160)
        try put(stores[2].store, 0..<50)
        #expect(stores.allSatisfy { !$0.store.present.layers.hasFrozen })
        var number = 50
        while !stores[1].store.present.layers.hasFrozen, number < 1000 {
            try put(stores[2].store, number..<number + 5)
            number += 5
        }
        #expect(stores.map { $0.store.present.layers.hasFrozen } == [false, true, false])
        stores[1].options.appliers.runAll()
        #expect(budget.bytes < 15_000)
        for manual in stores { manual.store.close() }
        #expect(budget.bytes == 0)
    }
}
