import HearthConcurrency
import HearthDocuments
import HearthHost
import HearthModel
import Synchronization

/// Opens databases for the events that they have, one after the other, in the background. One that can't be opened is tried
/// again after a pause that doubles, and logged once.
final class DatabaseOpener: Sendable {
    enum Item: Hashable, Sendable {
        case database(DatabaseName)
        /// Of the Realtime Database.
        case namespace(String)
        /// Those in which an earlier run of the process may have left events.
        case all

        var name: String {
            switch self {
            case .database(let name): name.string
            case .namespace(let name): name
            case .all: "*"
            }
        }
    }

    private struct Failure {
        var pauseNanoseconds: UInt64
        /// Monotonic.
        var retryAt: UInt64
    }

    private struct State {
        var directory: TriggerDirectory?
        weak var owner: (any DatabaseOpenerOwner)?
        /// Those that are to be opened, or are being opened.
        var opening: Set<Item> = []
        var failures: [Item: Failure] = [:]
        /// Only what is asked for from now on is opened.
        var isDraining = false
        var isStopped = false
    }

    private let state = Mutex(State())
    private let threads = LifecycleThreads(threadsMax: 1, name: "hearth-trigger-open")
    private let log: Log
    private let clock: any Clock
    /// Set when all were tried once.
    private let wereOpened = Awaited<Void>()

    private static let firstPause: UInt64 = 1_000_000_000
    private static let lastPause: UInt64 = 300_000_000_000

    init(log: Log, clock: any Clock) {
        self.log = log
        self.clock = clock
    }

    func attach(_ owner: any DatabaseOpenerOwner) { state.withLock { $0.owner = owner } }

    /// - Parameter opensAll: whether there may be events that an earlier run of the process has left.
    func start(_ directory: TriggerDirectory, opensAll: Bool) {
        state.withLock { $0.directory = directory }
        if opensAll { open(.all) } else { wereOpened.set(.success(())) }
    }

    /// Waits until those were tried that an earlier run has left. Must not run on an event loop.
    func waitUntilOpened() { _ = try? wereOpened.wait() }

    /// Has one opened, unless that is under way, or has failed and is tried again later.
    func open(_ item: Item) {
        let isNew = state.withLock { state in
            state.directory != nil && !state.isStopped && state.failures[item] == nil
                && state.opening.insert(item).inserted
        }
        if isNew { run(item) }
    }

    /// Tries again what has failed, and is due. To be called about once a second.
    func poll() {
        let now = clock.monotonicNanoseconds()
        let due = state.withLock { state -> [Item] in
            if state.isDraining || state.failures.isEmpty { return [] }
            let due = state.failures.filter { $0.value.retryAt <= now }.map(\.key)
            return due.filter { state.opening.insert($0).inserted }
        }
        for item in due { run(item) }
    }

    /// Forgets what waits to be opened.
    func drain() {
        state.withLock { state in
            state.isDraining = true
            state.opening = []
            state.failures = [:]
        }
    }

    /// Opens nothing any more, and waits for what is being opened.
    func stop() {
        state.withLock { state in
            state.isStopped = true
            state.opening = []
        }
        threads.stop()
        wereOpened.set(.success(()))
    }

    // MARK: On the thread

    private func run(_ item: Item) {
        threads.run { [weak self] in self?.attempt(item) }
    }

    private func attempt(_ item: Item) {
        let (isWanted, directory, owner) = state.withLock { state in
            (state.opening.contains(item), state.directory, state.owner)
        }
        guard isWanted, let directory, let owner else { return }
        do throws(Status) {
            switch item {
            case .database(let name): try open(name, directory, owner)
            case .namespace(let name): try directory.openNamespace(name)
            case .all: try openAll(directory, owner)
            }
            succeeded(item)
        } catch {
            failed(item, error)
        }
        if item == .all { wereOpened.set(.success(())) }
    }

    private func open(
        _ name: DatabaseName, _ directory: TriggerDirectory, _ owner: any DatabaseOpenerOwner
    ) throws(Status) {
        // Opening a database that is gone would be the first use of another one.
        guard try directory.exists(name) else { return owner.isGone(name) }
        let answer = Awaited<Void>()
        directory.open(name) { result in answer.set(result.map { _ in }) }
        try answer.wait()
    }

    private func openAll(_ directory: TriggerDirectory, _ owner: any DatabaseOpenerOwner) throws(Status) {
        for name in try directory.names() where owner.wantsOpen(.database(name)) {
            if !openNext(.database(name)) { return }
        }
        for name in try directory.namespaces() where owner.wantsOpen(.namespace(name)) {
            if !openNext(.namespace(name)) { return }
        }
    }

    /// - Returns: false when no more are to be opened.
    private func openNext(_ item: Item) -> Bool {
        let (goesOn, isNew) = state.withLock { state in
            if state.isDraining || state.isStopped { return (false, false) }
            return (true, state.failures[item] == nil && state.opening.insert(item).inserted)
        }
        if isNew { attempt(item) }
        return goesOn
    }

    private func succeeded(_ item: Item) {
        let wasFailing = state.withLock { state in
            state.opening.remove(item)
            return state.failures.removeValue(forKey: item) != nil
        }
        if wasFailing {
            log.info("a database of triggers can be opened again", ("database", .string(item.name)))
        }
    }

    private func failed(_ item: Item, _ status: Status) {
        let now = clock.monotonicNanoseconds()
        let isNews = state.withLock { state in
            state.opening.remove(item)
            let former = state.failures[item]
            let pause = min(Self.lastPause, former.map { $0.pauseNanoseconds * 2 } ?? Self.firstPause)
            if !state.isDraining { state.failures[item] = Failure(pauseNanoseconds: pause, retryAt: now + pause) }
            return former == nil
        }
        if !isNews { return }
        log.error(
            "a database that may have events of triggers can't be opened", ("database", .string(item.name)),
            ("reason", .string(status.message)))
    }
}

/// What knows the databases that an opener opens.
protocol DatabaseOpenerOwner: AnyObject, Sendable {
    /// Whether one that exists may have events that are not known yet.
    func wantsOpen(_ item: DatabaseOpener.Item) -> Bool
    /// It was deleted.
    func isGone(_ name: DatabaseName)
}
