import HearthEngine
import HearthHost
import HearthModel
import Synchronization

/// A database, or a namespace, whose events are known: it is open, or was and has events or dead letters.
protocol KnownEvents {
    var isOpen: Bool { get }
    var ledger: TriggerLedger { get }
    /// What reads its events, by trigger, while there is a route.
    var sources: [String: WeakSource] { get set }
}

struct WeakSource {
    weak var definition: SourceDefinition?
}

extension Dictionary where Value: KnownEvents {
    /// Forgets those that are closed and have nothing: now and then, so that opening many costs each the same.
    /// - Parameter count: with how many it does so; changed when it has.
    mutating func forgetClosed(at count: inout Int) {
        if self.count < count { return }
        self = filter { $0.value.isOpen || $0.value.ledger.hasAny }
        count = Swift.max(64, self.count * 2)
    }

    /// How many events of a trigger are not settled.
    func pending(_ id: TriggerID) -> Int { values.reduce(0) { $0 + $1.ledger.pending(id) } }

    func deadLetterCount(_ id: TriggerID) -> Int { values.reduce(0) { $0 + $1.ledger.deadLetterCount(id) } }

    /// The version of the oldest event that is not settled.
    func oldest(_ id: TriggerID) -> Int64? { values.compactMap { $0.ledger.oldest(id) }.min() }

    /// Those that are closed and have something of one of some triggers.
    func closed(with ids: Set<TriggerID>) -> [Key] {
        filter { _, known in
            !known.isOpen && known.ledger.ids.contains { ids.contains($0) && known.ledger.hasAny(of: $0) }
        }.map(\.key)
    }

    /// Where events of some triggers wait.
    func waiting(for ids: Set<TriggerID>) -> [(name: Key, id: TriggerID)] {
        flatMap { name, known in
            known.ledger.ids.filter { ids.contains($0) && known.ledger.pending($0) > 0 }.map { (name, $0) }
        }
    }

    /// The sources of some triggers, with the definitions that these have now.
    func sources(of definitions: [String: TriggerDefinition]) -> [(SourceDefinition, TriggerDefinition)] {
        values.flatMap { known in
            known.sources.compactMap { name, source in
                guard let new = definitions[name], let definition = source.definition else { return nil }
                return (definition, new)
            }
        }
    }

    /// Forgets the sources of triggers that are gone.
    mutating func removeSources(of ids: [TriggerID]) {
        for name in keys where self[name]?.sources.isEmpty == false {
            for id in ids { self[name]?.sources[id.name] = nil }
        }
    }
}

/// Definitions, by what databases they are for. Databases that the same ones are for share what is made of these.
struct TriggerScopes<Made> {
    private struct Scope: Hashable {
        let project: [UInt8]?
        let database: [UInt8]?
        let instance: InstancePattern

        init(_ definition: TriggerDefinition) {
            project = definition.project.map { Array($0.utf8) }
            database = definition.database.map { Array($0.utf8) }
            instance = definition.instance
        }
    }

    private var groups: [[TriggerDefinition]] = []
    /// By the indices of groups.
    private var results: [[Int]: Made] = [:]
    private let make: @Sendable ([TriggerDefinition]) -> Made

    /// Of how many combinations what was made is kept.
    private static var resultsMax: Int { 1024 }

    init(_ definitions: some Sequence<TriggerDefinition>, _ make: @escaping @Sendable ([TriggerDefinition]) -> Made) {
        self.make = make
        var indices: [Scope: Int] = [:]
        for definition in definitions {
            let index = indices[Scope(definition)] ?? groups.count
            if index == groups.count {
                indices[Scope(definition)] = index
                groups.append([])
            }
            groups[index].append(definition)
        }
    }

    /// What is made of the definitions that are for one database.
    mutating func made(for isFor: (TriggerDefinition) -> Bool) -> Made {
        let those = groups.indices.filter { index in groups[index].first.map(isFor) ?? false }
        if let known = results[those] { return known }
        if results.count >= Self.resultsMax { results = [:] }
        let new = make(those.flatMap { groups[$0] })
        results[those] = new
        return new
    }
}

/// Deletes what triggers that are gone have left in an open database, a part at a time.
struct EventRemoval: Sendable {
    typealias Edit =
        @Sendable (
            _ body: @escaping @Sendable (any StoreTransaction) throws(Status) -> Void,
            _ completion: @escaping @Sendable (Result<Void, Status>) -> Void
        ) -> Void

    let ledger: TriggerLedger
    let database: String
    let log: Log
    /// Changes the ledger. Of a database that is closed the rest is deleted when it is opened again.
    let edit: Edit

    private struct Progress {
        /// Triggers of which nothing is left.
        var done = 0
        /// Events deleted, by trigger.
        var counts: [Int]
    }

    /// Events that one transaction deletes, and as many dead letters.
    private static let recordsMax = 2000

    func run(_ ids: [TriggerID]) {
        if !ids.isEmpty { run(ids, Progress(counts: ids.map { _ in 0 })) }
    }

    private func run(_ ids: [TriggerID], _ former: Progress) {
        let progress = SharedValue(Mutex(former))
        edit(
            { transaction throws(Status) in
                let new = try step(ids, former, in: transaction)
                progress.value.withLock { $0 = new }
            },
            { result in
                guard case .success = result else { return }
                let progress = progress.value.withLock { $0 }
                if progress.done < ids.count { return run(ids, progress) }
                for (id, count) in zip(ids, progress.counts) where count > 0 { report(id, count) }
            })
    }

    private func step(
        _ ids: [TriggerID], _ former: Progress, in transaction: any StoreTransaction
    ) throws(Status) -> Progress {
        var progress = former
        while progress.done < ids.count {
            let id = ids[progress.done]
            let hasAny = ledger.hasAny(of: id)
            let (count, isDone) = try ledger.forget(id, in: transaction, limit: Self.recordsMax)
            progress.counts[progress.done] += count
            if isDone { progress.done += 1 }
            // What all triggers have is too much for one transaction.
            if hasAny || count > 0 || !isDone { break }
        }
        return progress
    }

    private func report(_ id: TriggerID, _ count: Int) {
        log.warning(
            "events of a trigger that is gone were dropped", ("trigger", .string(id.name)),
            ("database", .string(database)), ("events", .integer(count)))
    }
}
