import HearthDocuments
import HearthEngine
import HearthEvents
import HearthModel
import Synchronization

/// What administrators ask for and may take long. It is done in steps, between which come those of others. All of it waits for
/// disks: on a thread of the service. It goes on when the client that asked for it goes away.
protocol TriggerSteps: Sendable {
    /// - Returns: false when all is done.
    func step() throws(Status) -> Bool

    /// How many events or dead letters were moved or deleted.
    var count: Int { get }
}

extension TriggerSteps {
    /// Does all steps.
    func run() throws(Status) -> Int {
        while try step() {}
        return count
    }
}

/// What one transaction moves or deletes.
private enum StepBounds {
    static let events = 250
    static let bytes = 1 << 20
}

/// Work in one database after the other.
private struct StepQueue<Item, Current> {
    /// Those that are still to be opened, the next one last.
    var items: [Item]
    var current: Current?
    var count = 0

    /// - Parameters:
    ///   - begin: opens one; nil for one that is gone.
    ///   - go: does a part of the work in it.
    /// - Returns: false when all is done.
    mutating func step(
        _ begin: (Item) throws(Status) -> Current?, _ go: (inout Self) throws(Status) -> Void
    ) throws(Status) -> Bool {
        if current != nil {
            try go(&self)
        } else if let item = items.popLast() {
            current = try begin(item)
        } else {
            return false
        }
        return true
    }
}

/// Makes the dead letters of a trigger events again, or deletes them, in one database after the other.
final class LetterSteps: TriggerSteps {
    enum Kind: Sendable {
        case replay
        case delete
    }

    private struct Current {
        let open: any OpenEvents
        /// How many are still to be looked at. What dies again meanwhile lies behind these.
        var left: Int
        var last: DeadLetters.Entry?
    }

    private typealias State = StepQueue<DatabaseOpener.Item, Current>

    private let service: TriggerService
    private let definition: TriggerDefinition
    private let kind: Kind
    /// Locked for the whole of a step.
    private let state: Mutex<State>

    init(_ kind: Kind, of definition: TriggerDefinition, _ service: TriggerService) {
        self.kind = kind
        self.definition = definition
        self.service = service
        state = Mutex(State(items: service.storesWithDeadLetters(of: definition).reversed()))
    }

    var count: Int { state.withLock { $0.count } }

    func step() throws(Status) -> Bool {
        try state.withLock { state throws(Status) in
            try service.checkRunning()
            return try state.step(begin, go)
        }
    }

    private func begin(_ store: DatabaseOpener.Item) throws(Status) -> Current? {
        guard let open = try service.opened(store) else { return nil }
        // Before the first one, so that none is too old.
        if kind == .replay { open.notify(definition.id, service) }
        return Current(open: open, left: open.ledger.deadLetterCount(definition.id))
    }

    private func go(_ state: inout State) throws(Status) {
        guard var current = state.current else { return }
        let isDone: Bool
        do throws(Status) {
            isDone =
                switch kind {
                case .replay: try replay(&current, &state.count)
                case .delete: try delete(current, &state.count)
                }
        } catch {
            end(current)
            throw error
        }
        state.current = isDone ? nil : current
        if isDone { end(current) }
    }

    /// At the end, and after an error, for what was moved.
    private func end(_ current: Current) {
        if kind == .replay { current.open.notify(definition.id, service) }
    }

    private func replay(_ current: inout Current, _ count: inout Int) throws(Status) -> Bool {
        let (open, last, id) = (current.open, current.last, definition.id)
        let limit = min(current.left, StepBounds.events)
        let moved = try open.perform { [service] transaction throws(Status) in
            // One that is removed meanwhile gets no events any more.
            if !service.exists(id) { return (count: 0, seen: 0, last: DeadLetters.Entry?.none) }
            return try open.ledger.replay(
                id, after: last, in: transaction, limit: limit, bytesMax: StepBounds.bytes)
        }
        count += moved.count
        current.left -= moved.seen
        current.last = moved.last
        return moved.last == nil || current.left <= 0
    }

    private func delete(_ current: Current, _ count: inout Int) throws(Status) -> Bool {
        let (open, id) = (current.open, definition.id)
        let deleted = try open.perform { transaction throws(Status) in
            try open.ledger.deleteDeadLetters(id, before: nil, in: transaction, limit: StepBounds.events)
        }
        count += deleted.count
        return deleted.isDone
    }
}

/// Puts the events of a trigger into its queue that the change feeds of databases have since a time.
final class FeedSteps: TriggerSteps {
    private struct Current {
        let open: OpenDocumentEvents
        let replay: FeedReplay
        var position: FeedReplay.Position
        var dead = KnownLetters()
    }

    /// When events were given up, by a hash of the event: what is replayed is no dead letter any more.
    private struct KnownLetters {
        private var times: [Int: [Int64]] = [:]
        private var last: DeadLetters.Entry?

        func times(of event: Delivery.Event) -> [Int64] { times[event.hashValue] ?? [] }

        /// Takes up those that have come since: other replays have what they replay given up again.
        mutating func update(_ letters: DeadLetters?, in snapshot: any Snapshot) throws(Status) {
            guard let letters else { return }
            for entry in try letters.entries(after: last, countMax: .max, in: snapshot) {
                times[entry.event.hashValue, default: []].append(entry.time)
                last = entry
            }
        }
    }

    private typealias State = StepQueue<DatabaseName, Current>

    private let service: TriggerService
    private let definition: TriggerDefinition
    private let directory: TriggerDirectory
    private let time: Timestamp
    /// Locked for the whole of a step.
    private let state: Mutex<State>

    private static let record = QueuedEvent(author: EventAuthor.unknown.stored).bytes

    init(
        since time: Timestamp, of definition: TriggerDefinition, _ directory: TriggerDirectory,
        _ service: TriggerService
    ) throws(Status) {
        self.time = time
        self.definition = definition
        self.directory = directory
        self.service = service
        let names = try directory.names().filter { definition.isFor($0) }
        state = Mutex(State(items: names.reversed()))
    }

    var count: Int { state.withLock { $0.count } }

    func step() throws(Status) -> Bool {
        try state.withLock { state throws(Status) in
            try service.checkRunning()
            return try state.step(begin, go)
        }
    }

    private func begin(_ name: DatabaseName) throws(Status) -> Current? {
        guard let open = try service.opened(name, directory) else { return nil }
        let replay = FeedReplay(database: open.database, definition: definition)
        try replay.check(time)
        open.notify(definition.id, service)
        return Current(
            open: open, replay: replay, position: FeedReplay.Position(version: time.microseconds))
    }

    private func go(_ state: inout State) throws(Status) {
        guard var current = state.current.take() else { return }
        // At the end, and after an error, for what was put.
        var isDone = true
        defer { if isDone { current.open.notify(definition.id, service) } }
        guard let next = try current.replay.step(&current.position, countMax: StepBounds.events) else { return }
        let (open, id, dead) = (current.open, definition.id, current.dead)
        let made = try open.perform { [service] transaction throws(Status) in
            if !service.exists(id) { return (count: 0, dead: dead) }
            var dead = dead
            try dead.update(open.ledger.deadLetters(of: id), in: transaction)
            for event in next {
                try open.ledger.putAgain(
                    event, Self.record, insteadOf: dead.times(of: event), for: id, in: transaction)
            }
            return (next.count, dead)
        }
        state.count += made.count
        current.dead = made.dead
        isDone = false
        state.current = current
    }
}
