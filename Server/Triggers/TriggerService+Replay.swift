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

    /// Opens the databases that have dead letters of a trigger, one after the other, by name.
    private func withDeadLetters(
        of definition: TriggerDefinition, _ body: (any OpenEvents) throws(Status) -> Void
    ) throws(Status) {
        guard let directory = state.withLock({ $0.directory }) else { return }
        let id = definition.id
        if definition.type.product == .database {
            for name in trees.names(withDeadLettersOf: id) {
                try directory.openNamespace(name)
                guard let open = trees.open(name) else {
                    throw .unavailable("The namespace \(name) was closed meanwhile; try again.")
                }
                try body(open)
            }
            return
        }
        let names = state.withLock { state in
            state.databases.filter { $0.value.events.ledger.deadLetterCount(id) > 0 }.map(\.key)
        }
        for name in names.sorted(by: { UTF8Order.compare($0.string, $1.string) < 0 }) {
            // One that was deleted is not made anew.
            guard try directory.exists(name) else {
                isGone(name)
                continue
            }
            if let open = try opened(name, directory) { try body(open) }
        }
    }

    func opened(_ name: DatabaseName, _ directory: TriggerDirectory) throws(Status) -> OpenDocumentEvents? {
        try checkRunning()
        let answer = Awaited<Database>()
        directory.open(name) { answer.set($0) }
        let database = try answer.wait()
        guard let events = state.withLock({ $0.databases[name]?.events }) else { return nil }
        return OpenDocumentEvents(database: database, events: events)
    }

    func existing(_ name: String) throws(Status) -> TriggerDefinition {
        try checkRunning()
        guard let definition = definition(name) else { throw .notFound("There is no trigger \"\(name)\".") }
        return definition
    }

    // MARK: Reading

    /// When the oldest event was committed that is not settled; nil when all are.
    package func oldestPending(_ trigger: String) -> Timestamp? {
        guard let id = definition(trigger)?.id else { return nil }
        let oldest = state.withLock { state in
            state.databases.values.compactMap { $0.events.ledger.oldest(id) }.min()
        }
        return [oldest, trees.oldestPending(id)].compactMap { $0 }.min().map { Timestamp(microseconds: $0) }
    }

    /// Dead letters of a trigger, by database and in the order in which they were given up.
    /// - Parameters:
    ///   - after: the id of the one behind which the page begins.
    ///   - limit: at most so many.
    /// - Throws: NOT_FOUND for an unknown trigger, INVALID_ARGUMENT for an id that no dead letter has.
    package func deadLetters(_ name: String, after: String?, limit: Int) throws(Status) -> [DeadLetterItem] {
        let definition = try existing(name)
        var items: [DeadLetterItem] = []
        var sizeBytes = 0
        var isBehind = after == nil
        try withDeadLetters(of: definition) { open throws(Status) in
            guard let letters = open.ledger.deadLetters(of: definition.id) else { return }
            try open.reading { snapshot throws(Status) in
                for entry in try letters.entries(after: nil, countMax: .max, in: snapshot) {
                    if items.count == limit || sizeBytes >= Self.pageBytesMax { return }
                    let id = open.id(of: entry.event, name)
                    if !isBehind {
                        isBehind = id == after
                        continue
                    }
                    let item = item(id, entry, try letters.readable(entry, in: snapshot), open, definition)
                    sizeBytes += item.event?.count ?? 0
                    items.append(item)
                }
            }
        }
        if !isBehind { throw .invalidArgument("after: the trigger has no dead letter \"\(after ?? "")\".") }
        return items
    }

    /// - Parameter letter: nil for one that is damaged.
    private func item(
        _ id: String, _ entry: DeadLetters.Entry, _ letter: DeadLetter?, _ open: any OpenEvents,
        _ definition: TriggerDefinition
    ) -> DeadLetterItem {
        var event: [UInt8]?
        if let letter {
            do throws(Status) {
                event = try open.structured(entry.event, letter, definition, location: location)
            } catch {
                // The letter shows at least what was lost.
            }
        }
        return DeadLetterItem(
            id: id, time: Timestamp(microseconds: entry.time), document: open.name(of: entry.event),
            attempts: letter?.attempts ?? 0,
            failure: letter?.failure ?? DeliveryFailure(.cut, "The record of the dead letter is damaged."),
            event: event)
    }

    // MARK: Changing

    /// Deletes the dead letters of a trigger.
    /// - Returns: how many there were.
    /// - Throws: NOT_FOUND for an unknown trigger.
    package func deleteDeadLetters(_ name: String) throws(Status) -> Int {
        let definition = try existing(name)
        var count = 0
        try withDeadLetters(of: definition) { open throws(Status) in
            while true {
                let deleted = try open.perform { transaction throws(Status) in
                    try open.ledger.deleteDeadLetters(
                        definition.id, before: nil, in: transaction, limit: Self.stepEvents)
                }
                count += deleted
                if deleted < Self.stepEvents { break }
            }
        }
        return count
    }

    /// Deletes dead letters that were kept long enough. Those of databases that are closed are deleted when they are open.
    package func expireDeadLetters() {
        let documents = state.withLock { state in
            state.databases.values.compactMap { open in
                open.database.map { OpenDocumentEvents(database: $0, events: open.events) }
            }
        }
        for open in documents as [any OpenEvents] + trees.open {
            let before = open.elapsedMicroseconds - DeadLetters.keptMicroseconds
            for id in open.ledger.ids where open.ledger.deadLetterCount(id) > 0 {
                open.expireDeadLetters(id, before: before, limit: Self.stepEvents)
            }
        }
    }

    /// Has the dead letters of a trigger sent again; they are none any more.
    /// - Returns: how many.
    /// - Throws: NOT_FOUND for an unknown trigger.
    package func replayDeadLetters(_ name: String) throws(Status) -> Int {
        let definition = try existing(name)
        var count = 0
        try withDeadLetters(of: definition) { open throws(Status) in
            // Before the first one, so that none is too old; at the end, and after an error, for what was moved.
            open.notify(definition.id, self)
            defer { open.notify(definition.id, self) }
            // What dies again meanwhile lies behind these.
            var left = open.ledger.deadLetterCount(definition.id)
            var last: DeadLetters.Entry?
            repeat {
                try checkRunning()
                let limit = min(left, Self.stepEvents)
                let moved = try open.perform { [self, last] transaction throws(Status) in
                    // One that is removed meanwhile gets no events any more.
                    if !exists(definition.id) { return (count: 0, seen: 0, last: DeadLetters.Entry?.none) }
                    return try open.ledger.replay(
                        definition.id, after: last, in: transaction, limit: limit, bytesMax: Self.stepBytes)
                }
                count += moved.count
                left -= moved.seen
                last = moved.last
            } while last != nil && left > 0
        }
        return count
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
            guard let open = try opened(databaseName, directory) else { continue }
            let replay = FeedReplay(database: open.database, definition: definition)
            try replay.check(time)
            open.notify(definition.id, self)
            defer { open.notify(definition.id, self) }
            var position = FeedReplay.Position(version: time.microseconds)
            let dead = try deadLetters(of: definition.id, open)
            let record = QueuedEvent(author: EventAuthor.unknown.stored).bytes
            while let next = try replay.step(&position, countMax: Self.stepEvents) {
                try checkRunning()
                count += try open.perform { [self] transaction throws(Status) in
                    if !exists(definition.id) { return 0 }
                    for event in next {
                        try open.ledger.putAgain(
                            event, record, insteadOf: dead[event], for: definition.id, in: transaction)
                    }
                    return next.count
                }
            }
        }
        return count
    }

    /// What is a dead letter in a database: replayed, it is none any more.
    private func deadLetters(
        of id: TriggerID, _ open: OpenDocumentEvents
    ) throws(Status) -> [Delivery.Event: DeadLetters.Entry] {
        guard let letters = open.ledger.deadLetters(of: id) else { return [:] }
        return try open.reading { snapshot throws(Status) in
            var dead: [Delivery.Event: DeadLetters.Entry] = [:]
            for entry in try letters.entries(after: nil, countMax: .max, in: snapshot) { dead[entry.event] = entry }
            return dead
        }
    }
}
