import HearthConcurrency
import HearthDocuments
import HearthEngine
import HearthEvents
import HearthHost
import HearthModel
import Synchronization

/// Dead letters and replay, for administrators. All of it waits for disks: on a thread of the service.
extension TriggerService {
    /// A dead letter, as administrators see it.
    package struct DeadLetterItem: Sendable {
        package let id: String
        /// When the event was given up.
        package let time: Timestamp
        /// The full name.
        package let document: String
        package let attempts: Int
        package let failure: DeliveryFailure
        /// The event in structured mode; nil when it can't be made any more.
        package let event: [UInt8]?
    }

    /// What one transaction moves or deletes.
    private static let stepEvents = 500
    private static let stepBytes = 4 << 20
    /// A page of dead letters ends behind the one that reaches this.
    private static let pageBytesMax = 8 << 20

    /// The databases that have events or dead letters of a trigger, open, by name.
    private func databases(
        _ trigger: String, _ isWanted: (DatabaseEvents) -> Bool
    ) throws(Status) -> [(Database, DatabaseEvents)] {
        let (directory, names) = state.withLock { state in
            (state.directory, state.databases.filter { isWanted($0.value.events) }.map(\.key))
        }
        guard let directory else { return [] }
        var found: [(Database, DatabaseEvents)] = []
        for name in names.sorted(by: { UTF8Order.compare($0.string, $1.string) < 0 }) {
            if let open = try opened(name, directory) { found.append(open) }
        }
        return found
    }

    func opened(
        _ name: DatabaseName, _ directory: TriggerDirectory
    ) throws(Status) -> (Database, DatabaseEvents)? {
        try checkRunning()
        let answer = Awaited<Database>()
        directory.open(name) { answer.set($0) }
        let database = try answer.wait()
        guard let events = state.withLock({ $0.databases[name]?.events }) else { return nil }
        return (database, events)
    }

    func existing(_ name: String) throws(Status) -> TriggerDefinition {
        try checkRunning()
        guard let definition = definition(name) else { throw .notFound("There is no trigger \"\(name)\".") }
        return definition
    }

    func reading<Result>(
        _ database: Database, _ body: (any Snapshot) throws(Status) -> Result
    ) throws(Status) -> Result {
        let snapshot = try database.store.snapshot()
        defer { snapshot.close() }
        return try body(snapshot)
    }

    // MARK: Reading

    /// When the oldest event was committed that is not settled; nil when all are.
    package func oldestPending(_ trigger: String) -> Timestamp? {
        let oldest = state.withLock { state in
            state.databases.values.compactMap { $0.events.oldestPending(trigger) }.min()
        }
        return [oldest, trees.oldestPending(trigger)].compactMap { $0 }.min().map { Timestamp(microseconds: $0) }
    }

    /// Dead letters of a trigger, by database and in the order in which they were given up.
    /// - Parameters:
    ///   - after: the id of the one behind which the page begins.
    ///   - limit: at most so many.
    /// - Throws: NOT_FOUND for an unknown trigger, INVALID_ARGUMENT for an id that no dead letter has.
    package func deadLetters(_ name: String, after: String?, limit: Int) throws(Status) -> [DeadLetterItem] {
        let definition = try existing(name)
        if definition.type.product == .database {
            return try treeDeadLetters(definition, after: after, limit: limit)
        }
        var items: [DeadLetterItem] = []
        var sizeBytes = 0
        var isBehind = after == nil
        for (database, events) in try databases(name, { $0.deadLetterCount(name) > 0 }) {
            guard let letters = events.deadLetters(of: name) else { continue }
            try reading(database) { snapshot throws(Status) in
                for entry in try letters.entries(after: nil, countMax: .max, in: snapshot) {
                    if items.count == limit || sizeBytes >= Self.pageBytesMax { return }
                    let id = DocumentEventRequest.id(entry.event, database, name)?.string ?? ""
                    if !isBehind {
                        isBehind = id == after
                        continue
                    }
                    guard let letter = try letters.letter(entry, in: snapshot) else { continue }
                    let item = item(id, entry, letter, database, definition)
                    sizeBytes += item.event?.count ?? 0
                    items.append(item)
                }
            }
        }
        if !isBehind { throw Self.unknownLetter(after) }
        return items
    }

    static func unknownLetter(_ id: String?) -> Status {
        .invalidArgument("after: the trigger has no dead letter \"\(id ?? "")\".")
    }

    private func item(
        _ id: String, _ entry: DeadLetters.Entry, _ letter: DeadLetter, _ database: Database,
        _ definition: TriggerDefinition
    ) -> DeadLetterItem {
        var event: [UInt8]?
        if let record = try? QueuedEvent(letter.record), let states = record.states {
            event =
                try? DocumentEventRequest.make(
                    entry.event, states, author: record.author, of: database, for: definition.structured,
                    location: location
                ).body
        }
        let path = DocumentKey.decode(entry.event.key)
        return DeadLetterItem(
            id: id, time: Timestamp(microseconds: entry.time),
            document: path.map { ResourceName(database: database.name, path: $0).string } ?? "",
            attempts: letter.attempts, failure: letter.failure, event: event)
    }

    // MARK: Changing

    /// Deletes the dead letters of a trigger.
    /// - Returns: how many there were.
    /// - Throws: NOT_FOUND for an unknown trigger.
    package func deleteDeadLetters(_ name: String) throws(Status) -> Int {
        if try existing(name).type.product == .database { return try deleteTreeDeadLetters(name) }
        var count = 0
        for (database, events) in try databases(name, { $0.deadLetterCount(name) > 0 }) {
            guard let letters = events.deadLetters(of: name) else { continue }
            while true {
                let deleted = try perform(database) { transaction throws(Status) in
                    try letters.deleteAll(in: transaction, limit: Self.stepEvents)
                }
                events.changeDeadLetters(name, by: -deleted)
                count += deleted
                if deleted < Self.stepEvents { break }
            }
        }
        return count
    }

    /// Deletes dead letters that were kept long enough.
    package func expireDeadLetters() {
        let names = state.withLock { Array($0.definitions.keys) }
        let before = clock.now().microseconds - DeadLetters.keptMicroseconds
        trees.expireDeadLetters(before: before)
        for name in names {
            // Those of databases that are closed are deleted when they are open.
            let open = state.withLock { state in
                state.databases.values.compactMap { open in
                    open.events.deadLetterCount(name) > 0 ? open.database.map { ($0, open.events) } : nil
                }
            }
            for (database, events) in open { expireDeadLetters(name, before, database, events) }
        }
    }

    private func expireDeadLetters(_ name: String, _ time: Int64, _ database: Database, _ events: DatabaseEvents) {
        guard let letters = events.deadLetters(of: name) else { return }
        let deleted = SharedValue(Mutex(0))
        database.perform(
            { transaction throws(Status) in
                let count = try letters.delete(before: time, in: transaction, limit: Self.stepEvents)
                deleted.value.withLock { $0 = count }
            },
            completion: { [weak self, weak database] result in
                guard case .success = result else { return }
                let count = deleted.value.withLock { $0 }
                events.changeDeadLetters(name, by: -count)
                if count == Self.stepEvents, let self, let database {
                    expireDeadLetters(name, time, database, events)
                }
            })
    }

    /// Has the dead letters of a trigger sent again; they are none any more.
    /// - Returns: how many.
    /// - Throws: NOT_FOUND for an unknown trigger.
    package func replayDeadLetters(_ name: String) throws(Status) -> Int {
        if try existing(name).type.product == .database { return try replayTreeDeadLetters(name) }
        var count = 0
        for (database, events) in try databases(name, { $0.deadLetterCount(name) > 0 }) {
            guard let letters = events.deadLetters(of: name) else { continue }
            while case let moved = try move(letters, name, database, events), moved > 0 { count += moved }
            notify(name, database.name, isEarlier: true)
        }
        return count
    }

    /// - Returns: how many dead letters became events.
    private func move(
        _ letters: DeadLetters, _ name: String, _ database: Database, _ events: DatabaseEvents
    ) throws(Status) -> Int {
        try checkRunning()
        let (moved, added, oldest) = try perform(database) { transaction throws(Status) -> (Int, Int, Int64?) in
            var (moved, added, sizeBytes) = (0, 0, 0)
            for entry in try letters.entries(after: nil, countMax: Self.stepEvents, in: transaction) {
                guard let letter = try letters.letter(entry, in: transaction) else { continue }
                if try events.put(entry.event, letter.record, for: name, in: transaction) { added += 1 }
                try letters.delete(entry, in: transaction)
                moved += 1
                sizeBytes += letter.record.count
                if sizeBytes >= Self.stepBytes { break }
            }
            return (moved, added, try events.queue(of: name)?.first(in: transaction))
        }
        events.changePending(name, by: added, oldest: oldest)
        events.changeDeadLetters(name, by: -moved)
        return moved
    }

    /// Has a trigger's events sent again of all commits since a time, with their ids as they were. Who made them is not
    /// known any more, unless they still wait.
    /// - Parameter time: of the first commit that counts.
    /// - Returns: how many.
    /// - Throws: NOT_FOUND for an unknown trigger, OUT_OF_RANGE for a time before the retention, INVALID_ARGUMENT for a
    ///   trigger of the Realtime Database.
    package func replay(_ name: String, since time: Timestamp) throws(Status) -> Int {
        let definition = try existing(name)
        if definition.type.product == .database {
            throw .invalidArgument("since: the Realtime Database has no history; its dead letters can be sent again.")
        }
        guard let directory = state.withLock({ $0.directory }) else { return 0 }
        var count = 0
        for databaseName in try directory.names() where definition.isFor(databaseName) {
            guard let (database, events) = try opened(databaseName, directory) else { continue }
            let replay = FeedReplay(database: database, definition: definition)
            try replay.check(time)
            var position = FeedReplay.Position(version: time.microseconds)
            let dead = try deadLetters(of: name, database, events)
            while let next = try replay.step(&position, countMax: Self.stepEvents) {
                try checkRunning()
                let record = QueuedEvent(author: EventAuthor.unknown.stored).bytes
                let (added, revived) = try perform(database) { transaction throws(Status) -> (Int, Int) in
                    var (added, revived) = (0, 0)
                    for event in next {
                        if try events.put(event, record, for: name, in: transaction) { added += 1 }
                        guard let (letters, entry) = dead[event], try letters.letter(entry, in: transaction) != nil
                        else { continue }
                        try letters.delete(entry, in: transaction)
                        revived += 1
                    }
                    return (added, revived)
                }
                events.changeDeadLetters(name, by: -revived)
                try reading(database) { snapshot throws(Status) in
                    try events.havePut(added, for: name, in: snapshot)
                }
                count += next.count
            }
            if events.pending(name) > 0 { notify(name, databaseName, isEarlier: true) }
        }
        return count
    }

    /// What is a dead letter in a database: replayed, it is none any more.
    private func deadLetters(
        of name: String, _ database: Database, _ events: DatabaseEvents
    ) throws(Status) -> [Delivery.Event: (DeadLetters, DeadLetters.Entry)] {
        guard let letters = events.deadLetters(of: name) else { return [:] }
        return try reading(database) { snapshot throws(Status) in
            var dead: [Delivery.Event: (DeadLetters, DeadLetters.Entry)] = [:]
            for entry in try letters.entries(after: nil, countMax: .max, in: snapshot) {
                dead[entry.event] = (letters, entry)
            }
            return dead
        }
    }

    private func perform<Result: Sendable>(
        _ database: Database, _ body: @escaping @Sendable (any StoreTransaction) throws(Status) -> Result
    ) throws(Status) -> Result {
        let answer = Awaited<Result>()
        let value = SharedValue(Mutex<Result?>(nil))
        database.perform(
            { transaction throws(Status) in
                let result = try body(transaction)
                value.value.withLock { $0 = result }
            },
            completion: { result in
                switch result {
                case .failure(let status): answer.set(.failure(status))
                case .success:
                    if let result = value.value.withLock({ $0 }) { answer.set(.success(result)) }
                }
            })
        return try answer.wait()
    }
}
