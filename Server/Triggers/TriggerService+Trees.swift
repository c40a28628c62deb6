import HearthConcurrency
import HearthEngine
import HearthEvents
import HearthModel
import HearthTreeStorage
import Synchronization

/// Dead letters of triggers of the Realtime Database. All of it waits for disks.
extension TriggerService {
    private typealias Namespace = (tree: TreeDatabase, owner: any AnyObject & Sendable, events: TreeEvents)

    private static let stepLetters = 500
    private static let stepBytes = 4 << 20
    private static let pageBytesMax = 8 << 20

    private func namespaces(withDeadLettersOf trigger: String) throws(Status) -> [Namespace] {
        guard let directory = state.withLock({ $0.directory }) else { return [] }
        return try trees.those(
            { $0.ledger.deadLetterCount(trigger) > 0 },
            open: { name throws(Status) in try directory.openNamespace(name) })
    }

    func treeDeadLetters(
        _ definition: TriggerDefinition, after: String?, limit: Int
    ) throws(Status) -> [DeadLetterItem] {
        let name = definition.name
        var items: [DeadLetterItem] = []
        var sizeBytes = 0
        var isBehind = after == nil
        for namespace in try namespaces(withDeadLettersOf: name) {
            guard let letters = namespace.events.ledger.deadLetters(of: name) else { continue }
            let view = try namespace.tree.view()
            defer { view.close() }
            for entry in try letters.entries(after: nil, countMax: .max, in: view.records) {
                if items.count == limit || sizeBytes >= Self.pageBytesMax { return items }
                let id = TreeEventRequest.id(entry.event, namespace.events.namespace, name).string
                if !isBehind {
                    isBehind = id == after
                    continue
                }
                guard let letter = try letters.letter(entry, in: view.records) else { continue }
                let item = item(id, entry, letter, namespace.events.namespace, definition)
                sizeBytes += item.event?.count ?? 0
                items.append(item)
            }
        }
        if !isBehind { throw Self.unknownLetter(after) }
        return items
    }

    private func item(
        _ id: String, _ entry: DeadLetters.Entry, _ letter: DeadLetter, _ namespace: String,
        _ definition: TriggerDefinition
    ) -> DeadLetterItem {
        var event: [UInt8]?
        if let stored = try? TreeDeadLetter(letter.record) {
            event =
                try? TreeEventRequest.make(
                    entry.event, stored.record, by: EventAuthor(stored: stored.author), in: namespace,
                    for: definition.structured, location: location
                ).body
        }
        return DeadLetterItem(
            id: id, time: Timestamp(microseconds: entry.time),
            document: "\(namespace)/\(String(decoding: entry.event.key, as: UTF8.self))", attempts: letter.attempts,
            failure: letter.failure, event: event)
    }

    func deleteTreeDeadLetters(_ name: String) throws(Status) -> Int {
        var count = 0
        for (tree, owner, events) in try namespaces(withDeadLettersOf: name) {
            defer { withExtendedLifetime(owner) {} }
            while true {
                let deleted = try edit(tree) { transaction throws(Status) in
                    try events.deleteDeadLetters(name, before: nil, in: transaction, limit: Self.stepLetters)
                }
                count += deleted
                if deleted < Self.stepLetters { break }
            }
        }
        return count
    }

    func replayTreeDeadLetters(_ name: String) throws(Status) -> Int {
        var count = 0
        for (tree, owner, events) in try namespaces(withDeadLettersOf: name) {
            defer { withExtendedLifetime(owner) {} }
            while true {
                let moved = try edit(tree) { transaction throws(Status) in
                    try events.replay(name, in: transaction, limit: Self.stepLetters, bytesMax: Self.stepBytes)
                }
                if moved == 0 { break }
                count += moved
            }
            trees.notify(name, events.namespace, isEarlier: true)
        }
        return count
    }

    private func edit(
        _ tree: TreeDatabase, _ body: @escaping @Sendable (any StoreTransaction) throws(Status) -> Int
    ) throws(Status) -> Int {
        let answer = Awaited<Int>()
        let count = SharedValue(Mutex(0))
        tree.edit(
            { transaction throws(Status) in
                let result = try body(transaction)
                count.value.withLock { $0 = result }
            }, completion: { result in answer.set(result.map { count.value.withLock { $0 } }) })
        return try answer.wait()
    }
}
