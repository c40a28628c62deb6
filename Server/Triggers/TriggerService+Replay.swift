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

    /// What one transaction deletes.
    private static let expiredMax = 250
    /// A page of dead letters ends behind the one that reaches this.
    private static let pageBytesMax = 8 << 20

    /// The databases or namespaces that have dead letters of a trigger, by name.
    func storesWithDeadLetters(of definition: TriggerDefinition) -> [DatabaseOpener.Item] {
        let id = definition.id
        if definition.type.product == .database {
            return trees.names(withDeadLettersOf: id).map { .namespace($0) }
        }
        let names = state.withLock { state in
            state.databases.filter { $0.value.events.ledger.deadLetterCount(id) > 0 }.map(\.key)
        }
        return names.sorted { UTF8Order.compare($0.string, $1.string) < 0 }.map { .database($0) }
    }

    /// Opens one of these.
    /// - Returns: nil for one that was deleted.
    func opened(_ store: DatabaseOpener.Item) throws(Status) -> (any OpenEvents)? {
        guard let directory = state.withLock({ $0.directory }) else { return nil }
        switch store {
        case .all: return nil
        case .namespace(let name):
            try directory.openNamespace(name)
            guard let open = trees.open(name) else {
                throw .unavailable("The namespace \(name) was closed meanwhile; try again.")
            }
            return open
        case .database(let name):
            // One that was deleted is not made anew.
            guard try directory.exists(name) else {
                isGone(name)
                return nil
            }
            return try opened(name, directory)
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
        let oldest = state.withLock { $0.databases.oldest(id) }
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
        // The first part of an id, which needs no hash of the document's name.
        let afterVersion = after.flatMap { UInt64($0.prefix(16), radix: 16) }.map { Int64(bitPattern: $0) }
        for store in storesWithDeadLetters(of: definition) {
            guard let open = try opened(store), let letters = open.ledger.deadLetters(of: definition.id) else {
                continue
            }
            try open.reading { snapshot throws(Status) in
                try letters.forEach(in: snapshot) { entry throws(Status) in
                    if !isBehind {
                        isBehind = entry.event.version == afterVersion && open.id(of: entry.event, name) == after
                        return true
                    }
                    if items.count == limit || sizeBytes >= Self.pageBytesMax { return false }
                    let item = item(
                        open.id(of: entry.event, name), entry, try letters.readable(entry, in: snapshot), open,
                        definition)
                    sizeBytes += item.event?.count ?? 0
                    items.append(item)
                    return true
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

    /// Deletes the dead letters of a trigger; counts them.
    /// - Throws: NOT_FOUND for an unknown trigger.
    func deletion(ofDeadLetters name: String) throws(Status) -> any TriggerSteps {
        LetterSteps(.delete, of: try existing(name), self)
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
                open.expireDeadLetters(id, before: before, limit: Self.expiredMax)
            }
        }
    }

    /// Has the dead letters of a trigger sent again; they are none any more. Counts them.
    /// - Throws: NOT_FOUND for an unknown trigger.
    func replay(ofDeadLetters name: String) throws(Status) -> any TriggerSteps {
        LetterSteps(.replay, of: try existing(name), self)
    }

    /// Has a trigger's events sent again of all commits since a time, with their ids as they were; counts them. Who made them
    /// is not known any more, unless they still wait.
    /// - Parameter time: of the first commit that counts.
    /// - Throws: NOT_FOUND for an unknown trigger, INVALID_ARGUMENT for one of the Realtime Database. The steps throw
    ///   OUT_OF_RANGE for a time before the retention.
    func replay(_ name: String, since time: Timestamp) throws(Status) -> any TriggerSteps {
        let definition = try existing(name)
        if definition.type.product == .database {
            throw .invalidArgument("since: the Realtime Database has no history; its dead letters can be sent again.")
        }
        guard let directory = state.withLock({ $0.directory }) else {
            throw .unavailable("The server is being started.")
        }
        return try FeedSteps(since: time, of: definition, directory, self)
    }
}
