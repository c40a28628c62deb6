import HearthConcurrency
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
        // Whoever takes the delay makes others wait, and the next write waits for its own only.
        try put(store, 0..<1, [UInt8](repeating: 1, count: 200_000))
        let delay = store.takeDelay()
        #expect(delay > 10_000)
        #expect(store.takeDelay() == 0)
        manual.options.appliers.runAll()
        #expect(store.takeDelay() == 0)
        pauses.withLock { $0 = [] }
        for _ in 0..<5 { try put(store, 0..<5) }
        #expect(pauses.withLock { $0 }.isEmpty)
    }

    /// What large writes fill, others do not wait for; without them, they do again.
    @Test func writesBesideLargeOnesWaitForTheirPart() throws {
        let pauses = Mutex<[Int]>([])
        let manual = try ManualStore { options in
            options.tableBytes = 10_000
            options.tablesMax = 1000
            options.pause = { microseconds in pauses.withLock { $0.append(microseconds) } }
        }
        let store = manual.store
        defer { store.close() }
        var delays: [Int] = []
        var number = 0
        while delays.count < 50 || delays.last == 0 {
            try put(store, number..<number + 100)
            delays.append(store.takeDelay())
            number += 100
        }
        let delay = try #require(delays.last)
        #expect(delays.filter { $0 > 0 } == delays.filter { $0 > 0 }.sorted())
        pauses.withLock { $0 = [] }
        // The first one is not delayed, as its like have written nothing; the next for the few bytes of that one.
        for _ in 0..<500 {
            try put(store, number..<number + 1)
            number += 1
        }
        let found = pauses.withLock { $0 }
        #expect(found.count == 499)
        #expect(found == found.sorted())
        #expect(found[0] < delay / 10 && found[498] > delay * 9 / 10)
        #expect(store.statistics.delayedWrites == delays.count { $0 > 0 } + 499)
    }

    @Test func writesWaitAtTheHardBound() throws {
        let base = HeldStore()
        var options = LoggedStoreOptions.short
        options.appliers = LogAppliers(threads: 1)
        options.tableBytes = 5000
        options.tablesMax = 2
        options.idleMilliseconds = 1_000_000
        options.pause = { _ in }
        let folder = TemporaryFolder()
        let store = try LoggedStore(base: base, logFolder: folder.path + "/log", name: "test", options: options)
        defer { store.close() }
        // The base has the mark of the log.
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
        let failure = Status.unavailable("The base fails.")
        let events = observer.events
        #expect(events.count == 4)
        #expect(events.prefix(2) == [.applicationsFail(failure), .commitsFail(failure)])
        #expect(events.contains { if case .applicationsRecovered = $0 { true } else { false } })
        #expect(events.last == .commitsRecovered(failures: 1))
    }

    /// While the base fails and there is no capacity, no success is reported.
    @Test func commitsAreNotReportedToSucceedBeforeTheBaseDoes() throws {
        let observer = RecordingObserver()
        let manual = try ManualStore { options in
            options.tableBytes = 5000
            options.tablesMax = 2
            options.retryMilliseconds = 0
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
        for _ in 0..<20 { manual.options.appliers.runOne() }
        #expect(observer.events.count == 2)
        manual.machine.baseFails = false
        // Nobody writes, and it is found out none the less.
        while manual.options.appliers.runOne() {}
        #expect(observer.events.count == 4 && observer.events.last == .commitsRecovered(failures: 1))
    }

    @Test func writesThatWaitAreReportedOnceAndWhenThatIsOver() throws {
        let observer = RecordingObserver()
        let base = HeldStore()
        var options = LoggedStoreOptions.short
        options.appliers = LogAppliers(threads: 1)
        options.tableBytes = 5000
        options.tablesMax = 2
        options.idleMilliseconds = 1_000_000
        options.observer = observer
        options.pause = { _ in }
        let folder = TemporaryFolder()
        let store = try LoggedStore(base: base, logFolder: folder.path + "/log", name: "test", options: options)
        // The base has the mark of the log.
        try put(store, 0..<1)
        base.hold()
        inThreads(2) { thread in
            if thread == 0 {
                do throws(Status) {
                    for number in 0..<400 { try put(store, number..<number + 5) }
                } catch {
                    Issue.record("\(error)")
                }
            } else {
                #expect(eventually { store.statistics.stalledWrites > 0 })
                base.release()
            }
        }
        #expect(eventually { observer.events.last == .writesFlow })
        let events = observer.events
        #expect(events.first == .writesStall)
        #expect(zip(events, events.dropFirst()).allSatisfy { $0 != $1 })
        store.close()
    }

    /// The writes of one store wait for the tables of others, once its own is more than its part of what small ones have.
    @Test func noTableGrowsAtTheBoundOfAll() throws {
        let budget = TableBudget(bytesMax: 30_000)
        let stores = try (0..<2).map { number in
            try ManualStore { options in
                options.tableBytes = 1 << 20
                options.budget = budget
                options.retryMilliseconds = 0
                options.pause = { _ in }
                // A writer that waits needs another thread.
                options.appliers = LogAppliers(threads: number)
            }
        }
        defer { for manual in stores { manual.store.close() } }
        try put(stores[0].store, 0..<1)
        stores[0].machine.baseFails = true
        var number = 0
        while !budget.isFull(.max) {
            try put(stores[0].store, number..<number + 5)
            number += 5
            stores[0].options.appliers.runOne()
        }
        #expect(budget.bytes < 24_000)
        var other = 0
        #expect(stores[1].store.excess == 0)
        // Its own changes can be applied, so it goes on, however often it has to wait.
        while other < 1000 {
            try put(stores[1].store, other..<other + 5)
            other += 5
            #expect(budget.bytes < 30_000)
        }
        stores[0].machine.baseFails = false
        stores[0].options.appliers.runAll()
        try put(stores[1].store, 0..<5)
        #expect(budget.bytes < 15_000)
    }

    @Test func tablesAreSmallWhileMemoryIsTight() throws {
        let budget = TableBudget(bytesMax: 40_000)
        let manual = try ManualStore { options in
            options.tableBytes = 1 << 20
            options.budget = budget
        }
        let store = manual.store
        defer { store.close() }
        var number = 0
        func fill(until isEnough: () -> Bool) throws {
            while !isEnough(), number < 2000 {
                try put(store, number..<number + 5)
                number += 5
            }
        }
        try fill { budget.bytes > 20_000 }
        #expect(!store.present.layers.hasFrozen && store.excess == 0)
        budget.setTight(true)
        #expect(store.present.layers.hasFrozen && store.excess == 1 && budget.isFull(.max))
        manual.options.appliers.runAll()
        try fill { store.present.layers.hasFrozen }
        #expect(budget.bytes < 9_000)
    }

    /// Long snapshots that keep many tables lose them, the oldest first; short ones and young ones don't.
    @Test func oldVersionsAreTakenAwayFromLongSnapshots() throws {
        let budget = TableBudget(bytesMax: 80_000)
        let observer = RecordingObserver()
        let manual = try ManualStore { options in
            options.tableBytes = 10_000
            options.budget = budget
            options.observer = observer
        }
        let store = manual.store
        defer { store.close() }
        var number = 0
        func writeATable() throws {
            for _ in 0..<20 {
                try put(store, number..<number + 5)
                number += 5
            }
            manual.options.appliers.runAll()
        }
        try writeATable()
        let oldest = try store.snapshot(.long)
        let short = try store.snapshot(.short)
        try writeATable()
        let became = try store.snapshot(.short)
        became.becomeLong()
        #expect(try oldest.get(.entries, key(1)) == [1])
        var others: [any Snapshot] = []
        while store.statistics.revokedSnapshots == 0, number < 10_000 {
            others.append(try store.snapshot(.long))
            try writeATable()
        }
        #expect(budget.keptBytes > 30_000)
        for other in others {
            #expect(try other.get(.entries, key(1)) == [1])
            other.close()
        }
        let failure = #expect(throws: Status.self) { try oldest.get(.entries, key(1)) }
        #expect(failure?.code == .unavailable)
        #expect(throws: Status.self) { try oldest.scan(.entries, .all, reverse: false, values: false) }
        #expect(try became.get(.entries, key(1)) == [1])
        #expect(observer.events.contains(.snapshotsRevoked(1)))
        oldest.close()
        try writeATable()
        #expect(budget.keptBytes < 20_000)
        // The newest of them stays, and there is a pause before another one is taken away.
        let later = { (seconds: Int) in MonotonicTime.now.advanced(milliseconds: 1000 * seconds) }
        #expect(store.held.revokeOldest(keeping: 0.5, before: .max, now: later(1)) == 0)
        let second = try store.snapshot(.long)
        try writeATable()
        let third = try store.snapshot(.long)
        #expect(store.held.revokeOldest(keeping: 0.7, before: .max, now: later(1)) == 1)
        #expect(store.held.revokeOldest(keeping: 0.5, before: .max, now: later(1)) == 0)
        #expect(store.held.finishRevocations())
        #expect(throws: Status.self) { try became.get(.entries, key(1)) }
        #expect(store.held.revokeOldest(keeping: 0.7, before: .max, now: later(5)) == 0)
        #expect(store.held.revokeOldest(keeping: 0.4, before: .max, now: later(5)) == 1)
        #expect(throws: Status.self) { try second.get(.entries, key(1)) }
        #expect(try third.get(.entries, key(1)) == [1])
        for snapshot in [became, second, third] { snapshot.close() }
        #expect(try short.get(.entries, key(1)) == [1])
        short.close()
        let present = try store.snapshot(.long)
        for _ in 0..<3 { try writeATable() }
        #expect(try present.get(.entries, key(number - 1)) == nil)
        present.close()
    }

    @Test func theLargestTableIsFrozenWhenTheBudgetIsUsedUp() throws {
        let budget = TableBudget(bytesMax: 40_000)
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
