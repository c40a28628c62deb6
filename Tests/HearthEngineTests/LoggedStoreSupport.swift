import Glibc
import HearthModel
import HearthTestStores
import HearthTestSupport
import Synchronization

@testable import HearthEngine

/// A store on a simulated machine whose appliers' work is done by the test.
struct ManualStore {
    let machine: SimulatedMachine
    var options = LoggedStoreOptions.simulated
    let store: LoggedStore

    init(
        _ machine: SimulatedMachine = SimulatedMachine(SeededGenerator(seed: 1)),
        _ change: (inout LoggedStoreOptions) -> Void = { _ in }
    ) throws(Status) {
        self.machine = machine
        options.idleMilliseconds = 1_000_000
        change(&options)
        store = try machine.open(options)
    }

    /// As if it were idle for long; the options must have no idle time.
    func applyAll() {
        store.maintain()
        options.appliers.runAll()
    }
}

func put(_ store: any Store, _ numbers: Range<Int>, _ value: [UInt8] = [1]) throws(Status) {
    try store.write { transaction throws(Status) in
        for number in numbers { try transaction.put(.entries, key(number), value) }
    }
}

extension Store {
    func entryCount() throws(Status) -> Int {
        let snapshot = try snapshot()
        defer { snapshot.close() }
        return try snapshot.count(.entries, .all, limit: .max)
    }
}

/// A store whose writes wait while it is held.
final class HeldStore: Store {
    private let inner = MemoryStore()
    private let isHeld = Mutex(false)

    func hold() { isHeld.withLock { $0 = true } }
    func release() { isHeld.withLock { $0 = false } }

    func snapshot() throws(Status) -> any Snapshot { try inner.snapshot() }
    func write<Result>(_ body: (any StoreTransaction) throws(Status) -> Result) throws(Status) -> Result {
        while isHeld.withLock({ $0 }) { sched_yield() }
        return try inner.write(body)
    }
    func maintain() {}
    func close() { inner.close() }
}

final class RecordingObserver: StoreObserver {
    private let recorded = Mutex<[StoreEvent]>([])
    var events: [StoreEvent] { recorded.withLock { $0 } }
    func store(_ name: String, reports event: StoreEvent) { recorded.withLock { $0.append(event) } }
}
