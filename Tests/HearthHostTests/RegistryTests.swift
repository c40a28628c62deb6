@testable import HearthConcurrency
import HearthModel
import HearthEngine
import HearthTestSupport
import Synchronization
import Testing

@testable import HearthHost

/// The registry over fake values that record what was done to them. Jobs run on this thread in a random order. A step
/// that waits for a disk lets other steps run first, so that a seed determines an interleaving.
@Suite struct RegistryTests {
    @Test func everyInterleavingHasOneValuePerNameAndAnswersEveryRequest() throws {
        for seed in 1...4000 as ClosedRange<UInt64> {
            let failure = RegistryRun(seed: seed).run()
            #expect(failure == nil, "seed \(seed): \(failure ?? "")")
            if failure != nil { return }
        }
    }

    @Test func aValueInUseIsNotClosed() {
        let run = RegistryRun(seed: 1)
        let value = Slot<FakeStored>()
        run.registry.use("a") { value.value = $0.success }
        run.runJobs()
        run.openStores.closeUnused(existing: true)
        #expect(value.value?.isClosed == false)
        value.value = nil
        run.openStores.closeUnused(existing: true)
        #expect(run.registry.values.isEmpty && run.open == 0)
    }

    @Test func aBusyValueIsNotClosed() {
        let run = RegistryRun(seed: 1)
        run.registry.use("a") { $0.success?.isBusy = true }
        run.runJobs()
        run.openStores.closeUnused(existing: true)
        #expect(run.registry.values.count == 1)
    }

    @Test func anOpeningBeyondTheLimitClosesTheLongestUnusedValue() throws {
        let run = RegistryRun(seed: 1, openMax: 3)
        for name in ["a", "b", "c", "a", "d"] {
            run.registry.use(name) { _ in }
            run.runJobs()
        }
        #expect(run.openStores.openCount <= 3)
        #expect(run.registry.opened("b") == nil)
        #expect(run.registry.opened("a") != nil && run.registry.opened("d") != nil)
    }

    @Test func whenAllAreInUseAnOpeningFails() {
        let run = RegistryRun(seed: 1, openMax: 2, usedMax: 4)
        var held: [FakeStored] = []
        var refused: [Status] = []
        for number in 0..<6 {
            let result = Slot<Result<FakeStored, Status>>()
            run.registry.use("\(number)") { result.value = $0 }
            run.runJobs()
            switch result.value {
            case .success(let value): held.append(value)
            case .failure(let status): refused.append(status)
            case nil: Issue.record("nobody answered")
            }
        }
        #expect(held.count == 4 && refused.allSatisfy { $0.code == .resourceExhausted } && refused.count == 2)
    }

    /// The search for unused values reads all open ones; one search serves many openings.
    @Test func openingCostsTheSameHoweverManyAreOpen() {
        func searches(_ count: Int) -> Double {
            let run = RegistryRun(seed: 1, openMax: count)
            for number in 0..<(3 * count) {
                run.registry.use("\(number)") { _ in }
                run.runJobs()
            }
            return Double(run.searches) / Double(3 * count) / Double(count)
        }
        // Each search reads `count` values; there is one for ten openings.
        #expect(searches(160) < 0.3)
    }

    @Test func closingWaitsForWorkInProgressAndClosesValuesInUse() {
        let threads = LifecycleThreads()
        let opened = Atomic(0)
        let closed = Atomic(0)
        let openStores = OpenStores(threads: threads)
        let registry = Registry<Int, FakeStored>(
            threads: threads, openStores: openStores, clock: SystemClock(),
            open: { _ in
                opened.add(1, ordering: .relaxed)
                return FakeStored(exists: false) { closed.add(1, ordering: .relaxed) }
            }, remove: { _ in })
        let answers = Atomic(0)
        let held = Mutex<[FakeStored]>([])
        for number in 0..<100 {
            registry.use(number) { result in
                if let value = result.success { held.withLock { $0.append(value) } }
                answers.add(1, ordering: .relaxed)
            }
        }
        registry.close()
        threads.stop()
        #expect(answers.load(ordering: .relaxed) == 100)
        // A value that was being opened is closed although nobody gets it.
        #expect(closed.load(ordering: .relaxed) == opened.load(ordering: .relaxed))
        #expect(held.withLock { $0.allSatisfy(\.isClosed) })
        #expect(throws: Status.unavailable("The server is shutting down.")) { try registry.wait(1) }
    }

    /// Real threads that use, delete and forget the same few names.
    @Test func manyThreadsAtOnce() {
        let threads = LifecycleThreads()
        let openStores = OpenStores(threads: threads)
        let open = Mutex<[Int: Int]>([:])
        let broken = Atomic(0)
        let registry = Registry<Int, FakeStored>(
            threads: threads, openStores: openStores, clock: SystemClock(),
            open: { name in
                let isSecond = open.withLock { open in
                    defer { open[name, default: 0] += 1 }
                    return open[name, default: 0] > 0
                }
                if isSecond { broken.add(1, ordering: .relaxed) }
                return FakeStored(exists: false) { open.withLock { $0[name]! -= 1 } }
            }, remove: { name in if open.withLock({ $0[name, default: 0] }) > 0 { broken.add(1, ordering: .relaxed) } })
        let users = (0..<4).map { user in
            Periodic("user", everyMilliseconds: 0) { count in
                if count >= 500 { return }
                let name = (count * 7 + user) % 3
                switch count % 11 {
                case 5: registry.delete(name, because: .notFound("")) { _ in }
                case 7: openStores.closeUnused(existing: false)
                default:
                    let value = try? registry.wait(name)
                    // In this order: another thread may delete it now, which marks it as deleted before it is closed.
                    let isClosed = value?.isClosed != false
                    let isDeleted = value?.isDeleted == true
                    if value == nil || isClosed && !isDeleted { broken.add(1, ordering: .relaxed) }
                }
            }
        }
        for user in users { user?.stop() }
        registry.close()
        threads.stop()
        #expect(broken.load(ordering: .relaxed) == 0)
        #expect(open.withLock { $0.values.allSatisfy { $0 == 0 } })
    }
}

extension Result {
    fileprivate var success: Success? { if case .success(let value) = self { value } else { nil } }
}

/// `@unchecked Sendable`: in the runs on one thread nothing else uses it; elsewhere only the atomics are used.
private final class FakeStored: Registered, @unchecked Sendable {
    private let existence: Atomic<Bool>
    private let busy = Atomic(false)
    private let closed = Atomic(false)
    private let deleted = Atomic(false)
    private let onClose: @Sendable () -> Void
    let onSearch: @Sendable () -> Void

    init(exists: Bool, onSearch: @escaping @Sendable () -> Void = {}, onClose: @escaping @Sendable () -> Void) {
        existence = Atomic(exists)
        self.onSearch = onSearch
        self.onClose = onClose
    }

    var exists: Bool {
        get { existence.load(ordering: .relaxed) }
        set { existence.store(newValue, ordering: .relaxed) }
    }
    var isBusy: Bool {
        get {
            onSearch()
            return busy.load(ordering: .relaxed)
        }
        set { busy.store(newValue, ordering: .relaxed) }
    }
    var isClosed: Bool { closed.load(ordering: .relaxed) }
    var isDeleted: Bool { deleted.load(ordering: .relaxed) }

    func close(because reason: Status) {
        if reason.code == .notFound { deleted.store(true, ordering: .relaxed) }
        if !closed.exchange(true, ordering: .relaxed) { onClose() }
    }
}

/// A clock that advances with each read, so that no two uses have the same time.
private final class CountingClock: Clock, Sendable {
    private let count = Atomic<UInt64>(0)
    func now() -> Timestamp { Timestamp(microseconds: 1) }
    func monotonicNanoseconds() -> UInt64 { count.add(1, ordering: .relaxed).newValue }
}

/// One interleaving. `@unchecked Sendable`: everything happens on one thread.
private final class RegistryRun: @unchecked Sendable {
    private var generator: SeededGenerator
    private let jobs = JobList()
    private(set) var openStores: OpenStores! = nil
    private(set) var registry: Registry<String, FakeStored>! = nil
    private(set) var open = 0
    private(set) var searches = 0
    private var openByName: [String: Int] = [:]
    private var stored: Set<String> = []
    private var held: [(name: String, value: FakeStored)] = []
    private var asked = 0
    private var answered = 0
    private var failure: String?
    private var depth = 0
    private var busyNames: Set<String> = []
    private var isRandom = false

    init(seed: UInt64, openMax: Int = 4, usedMax: Int = 64) {
        generator = SeededGenerator(seed: seed)
        let threads = LifecycleThreads(runner: { [jobs] in jobs.list.append($0) })
        var bounds = OpenStores.Bounds()
        bounds.openMax = openMax
        bounds.usedMax = usedMax
        openStores = OpenStores(bounds, threads: threads)
        registry = Registry(
            threads: threads, openStores: openStores, clock: CountingClock(),
            open: { [self] name throws(Status) in try openValue(name) },
            remove: { [self] name throws(Status) in try remove(name) })
    }

    private final class JobList: @unchecked Sendable {
        var list: [@Sendable () -> Void] = []
    }

    private func pick(_ bound: Int) -> Int { Int.random(in: 0..<bound, using: &generator) }

    // MARK: The fake provider

    private func openValue(_ name: String) throws(Status) -> FakeStored {
        begin(name)
        defer { busyNames.remove(name) }
        somethingElse()
        if isRandom, pick(8) == 0 { throw .unavailable("The disk is tired.") }
        if openByName[name, default: 0] > 0 { failure = "\(name) is opened twice" }
        let isMade = !isRandom || pick(2) == 0
        if isMade { _ = try openStores.enter { () throws(Status) in MemoryStore() } }
        openByName[name, default: 0] += 1
        open += 1
        return FakeStored(
            exists: isMade, onSearch: { [self] in searches += 1 },
            onClose: { [self] in
                begin(name)
                somethingElse()
                openByName[name]! -= 1
                open -= 1
                busyNames.remove(name)
            })
    }

    private func remove(_ name: String) throws(Status) {
        begin(name)
        defer { busyNames.remove(name) }
        if openByName[name, default: 0] > 0 { failure = "\(name) is deleted while it is open" }
        somethingElse()
        if isRandom, pick(4) == 0 { throw .notFound("There is no \(name).") }
    }

    private func begin(_ name: String) {
        if !busyNames.insert(name).inserted { failure = "two threads are at \(name)" }
    }

    // MARK: The run

    /// Steps of other threads while one waits for the disk.
    private func somethingElse() {
        guard isRandom, depth < 3 else { return }
        depth += 1
        for _ in 0..<pick(4) { step() }
        depth -= 1
    }

    func runJobs() {
        while !jobs.list.isEmpty {
            let job = jobs.list.remove(at: isRandom ? pick(jobs.list.count) : 0)
            job()
        }
    }

    private func step() {
        let name = ["a", "b", "c", "d", "e", "f"][pick(6)]
        switch pick(9) {
        case 0, 1, 2:
            asked += 1
            registry.use(name) { [self] result in
                answered += 1
                if case .success(let value) = result {
                    if value.isClosed { failure = "\(name) is handed out closed" }
                    held.append((name, value))
                }
            }
        case 3:
            asked += 1
            registry.delete(name, because: .notFound("gone")) { [self] _ in answered += 1 }
        case 4: openStores.closeUnused(existing: pick(2) == 0, max: 1 + pick(3))
        case 5, 6:
            guard !held.isEmpty else { return }
            held.remove(at: pick(held.count))
        case 7:
            guard !held.isEmpty else { return }
            held[pick(held.count)].value.isBusy = pick(2) == 0
        default: if !jobs.list.isEmpty { jobs.list.remove(at: pick(jobs.list.count))() }
        }
        for (name, value) in held where value.isClosed && !value.isDeleted {
            failure = "\(name) is closed under its user"
        }
    }

    /// The first error; nil for none.
    func run() -> String? {
        isRandom = true
        for _ in 0..<40 where failure == nil { step() }
        isRandom = false
        runJobs()
        if failure == nil, asked != answered { failure = "\(asked) asked, \(answered) were answered" }
        // Afterwards all names work.
        held = []
        for name in ["a", "b", "c", "d", "e", "f"] where failure == nil {
            let value = Slot<FakeStored>()
            registry.use(name) { value.value = $0.success }
            runJobs()
            if value.value?.isClosed != false { failure = "\(name) can't be opened any more" }
        }
        for value in registry.values { value.isBusy = false }
        openStores.closeUnused(existing: true)
        openStores.closeUnused(existing: false)
        runJobs()
        if failure == nil, open != 0 || openStores.openCount != 0 {
            failure = "\(open) values and \(openStores.openCount) stores are left open"
        }
        registry.close()
        return failure
    }
}
