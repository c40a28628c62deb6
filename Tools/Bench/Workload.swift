import HearthHost
import HearthToolSupport

/// A named load with a fixed shape, so that figures of different days can be compared.
struct Workload: Sendable, Equatable {
    enum Kind: Sendable, Equatable {
        /// Durable commits of one document.
        case commit(inFlight: Int, fields: CommitFields, on: CommitTarget)
        case get(GetConnections)
        case getConstant
        case getREST
        case query(QueryShape, CollectionSize, inFlight: Int)
        case count(CollectionSize)
        case bulk
        case startup
        case idleMemory
        case memoryAfterLoad
        case connections
        /// From a commit to the snapshots of so many listeners.
        case listen(listeners: Int, on: CommitTarget)
        /// Commits of a client that rules evaluate.
        case commitRules
        /// One evaluation of rules, without a server.
        case rules(RulesSpeed.Rule)
        case listenHot
        case listenIdle
        case listenResume
        /// Writes of one leaf over WebSocket in a tree of so many.
        case databaseWrites(inFlight: Int, in: TreeSize)
        case databaseLatency
        case databaseFanOut
        case databaseIdle
        case triggers(TriggerLoad)
    }

    enum TriggerLoad: Sendable {
        /// Commits on a server with ten triggers, of which none or one matches.
        case without
        case none
        case one
        /// From the answer of a commit to the request at the endpoint, one at a time.
        case latency
        /// Events that wait, to an endpoint that answers at once: of many documents, or of one.
        case events
        case sequence
        /// Memory that events cost while they wait.
        case pending
    }

    enum TreeSize: Sendable {
        case small
        case large
    }

    enum CommitFields: Sendable {
        case all
        case one
    }

    /// The target of commits.
    enum CommitTarget: Sendable {
        case server
        /// A collection with more documents and index entries than any cache holds.
        case manyDocuments
        /// A server that stores everything in memory, as Google's emulator does.
        case memory
    }

    enum GetConnections: Sendable {
        /// With 16 streams each.
        case eight
        /// With 8 streams each.
        case four
    }

    enum QueryShape: Sendable {
        case range
        case equality
    }

    /// Of the collections that are queried.
    enum CollectionSize: Sendable {
        case small
        case large
        case huge
    }

    let name: String
    let summary: String
    let kind: Kind

    /// Whether the disk is a part of its figures.
    var isDurable: Bool {
        switch kind {
        case .commit(_, _, .memory), .listen(_, .memory): false
        case .commit, .bulk, .listen, .commitRules, .listenHot, .databaseWrites, .databaseLatency: true
        case .triggers: true
        default: false
        }
    }
    /// The workload that this one is compared with; selecting this one selects that one, too.
    var base: String?
    /// Whether its runs alternate with those of its base: the requirement is close to the noise of a machine, whose speed
    /// changes within minutes.
    var alternates = false

    static func == (lhs: Workload, rhs: Workload) -> Bool { lhs.name == rhs.name }

    /// In the order of the run: workloads that share a server or a collection are adjacent.
    static let all: [Workload] = [
        Workload(name: "startup", summary: "From the start of the process to the first answer.", kind: .startup),
        Workload(
            name: "idle-memory", summary: "Resident memory of a server that has nothing to do.", kind: .idleMemory),
        Workload(
            name: "connections", summary: "Resident memory that an idle HTTP/2 connection costs.", kind: .connections),
        Workload(
            name: "commit-1", summary: "Commits of one document (500 B, five indexed fields change), one in flight.",
            kind: .commit(inFlight: 1, fields: .all, on: .server)),
        Workload(
            name: "commit-32", summary: "The same, 32 in flight over four connections.",
            kind: .commit(inFlight: 32, fields: .all, on: .server)),
        Workload(
            name: "commit-32-one", summary: "32 in flight, one of six indexed fields changes.",
            kind: .commit(inFlight: 32, fields: .one, on: .server)),
        Workload(
            name: "get", summary: "GetDocument, 8 connections with 16 streams each; Redis: GET, 16 in flight.",
            kind: .get(.eight)),
        Workload(
            name: "get-32", summary: "GetDocument, 4 connections with 8 streams each.", kind: .get(.four)),
        Workload(
            name: "get-constant", summary: "The same answer from the same network engine, without a database.",
            kind: .getConstant, base: "get"),
        Workload(
            name: "get-rest", summary: "GET of a document over HTTP/1.1, 128 connections; nginx: a file.",
            kind: .getREST),
        Workload(
            name: "query-range-small", summary: "Range on an indexed field, 100 of 1,000 documents.",
            kind: .query(.range, .small, inFlight: 16)),
        Workload(
            name: "query-range-8", summary: "query-range-small with 8 in flight instead of 16.",
            kind: .query(.range, .small, inFlight: 8)),
        Workload(
            name: "query-equal-small", summary: "Equality on an indexed field, 100 of 1,000 documents.",
            kind: .query(.equality, .small, inFlight: 16)),
        Workload(
            name: "query-range-large", summary: "Range on an indexed field, 100 documents of the large collection.",
            kind: .query(.range, .large, inFlight: 16), base: "query-range-small"),
        Workload(
            name: "query-equal-large", summary: "Equality on an indexed field, 100 documents of the large collection.",
            kind: .query(.equality, .large, inFlight: 16), base: "query-equal-small"),
        Workload(name: "count", summary: "count() over the large collection.", kind: .count(.large)),
        Workload(
            name: "bulk",
            summary: "Load of the large collection by BatchWrite into a new server.",
            kind: .bulk),
        Workload(
            name: "memory-after-load", summary: "Resident memory of a server that has just taken the large collection.",
            kind: .memoryAfterLoad),
        Workload(
            name: "commit-32-memory", summary: "commit-32 on a server of its own that is started with --memory.",
            kind: .commit(inFlight: 32, fields: .all, on: .memory)),
        Workload(
            name: "commit-32-many", summary: "commit-32 on a server of its own with many documents.",
            kind: .commit(inFlight: 32, fields: .all, on: .manyDocuments), base: "commit-32"),
        Workload(
            name: "query-range-huge", summary: "Range on an indexed field, 100 documents of the huge collection.",
            kind: .query(.range, .huge, inFlight: 16), base: "query-range-small"),
        Workload(
            name: "query-equal-huge", summary: "Equality on an indexed field, 100 documents of the huge collection.",
            kind: .query(.equality, .huge, inFlight: 16), base: "query-equal-small"),
        Workload(
            name: "commit-32-rules", summary: "commit-32 by a client under rules with twenty conditions.",
            kind: .commitRules, base: "commit-32"),
        Workload(
            name: "rules-owner", summary: "A rule that compares the caller with a field, in this process.",
            kind: .rules(.owner)),
        Workload(
            name: "rules-validator", summary: "A rule of twenty conditions, in this process.", kind: .rules(.validator)),
        Workload(
            name: "listen-1", summary: "From sending a commit to the snapshot of one listener; Redis: PUBLISH.",
            kind: .listen(listeners: 1, on: .server)),
        Workload(
            name: "listen-100", summary: "The same for each of a hundred listeners.",
            kind: .listen(listeners: 100, on: .server)),
        Workload(
            name: "listen-1-memory", summary: "listen-1 on a server of its own that is started with --memory.",
            kind: .listen(listeners: 1, on: .memory)),
        Workload(
            name: "listen-100-memory", summary: "listen-100 on a server of its own that is started with --memory.",
            kind: .listen(listeners: 100, on: .memory)),
        Workload(
            name: "listen-hot", summary: "Snapshots that reach 1,000 listeners of one document that always changes.",
            kind: .listenHot),
        Workload(
            name: "listen-idle",
            summary: "10,000 listeners with a query each, on 1,000 connections, and commits that concern none.",
            kind: .listenIdle),
        Workload(
            name: "listen-resume", summary: "A listener of the large collection comes back after ten changes.",
            kind: .listenResume),
        Workload(
            name: "database-1", summary: "From sending a write over WebSocket to the event of one listener.",
            kind: .databaseLatency),
        Workload(
            name: "database-32",
            summary: "Realtime Database: writes of one leaf over four WebSockets, 32 in flight, in a small tree.",
            kind: .databaseWrites(inFlight: 32, in: .small), base: "commit-32-one"),
        Workload(
            name: "database-fan-out", summary: "Events that reach 1,000 sockets that listen to one location.",
            kind: .databaseFanOut),
        Workload(
            name: "database-idle", summary: "Resident memory that an idle WebSocket with a listener costs.",
            kind: .databaseIdle),
        Workload(
            name: "database-32-large", summary: "database-32 in a large tree.",
            kind: .databaseWrites(inFlight: 32, in: .large), base: "database-32"),
        Workload(
            name: "triggers-without", summary: "commit-32 on a new server without triggers.", kind: .triggers(.without)),
        Workload(
            name: "triggers-none", summary: "The same with ten triggers, none of which matches.",
            kind: .triggers(.none), base: "triggers-without", alternates: true),
        Workload(
            name: "triggers-one", summary: "The same with ten triggers, one of which gets every commit.",
            kind: .triggers(.one), base: "triggers-without", alternates: true),
        Workload(
            name: "triggers-latency",
            summary: "From the answer of a commit to its event at the endpoint, one at a time.",
            kind: .triggers(.latency)),
        Workload(
            name: "triggers-events", summary: "Events of many documents to an endpoint that answers at once.",
            kind: .triggers(.events)),
        Workload(
            name: "triggers-sequence", summary: "Events of one document, one after the other.",
            kind: .triggers(.sequence)),
        Workload(
            name: "triggers-pending", summary: "Memory and start with 1,000,000 events that wait.",
            kind: .triggers(.pending)),
        Workload(name: "count-huge", summary: "count() over the huge collection.", kind: .count(.huge)),
    ]

    /// - Parameter names: the selected workloads; `database` selects all whose names begin with `database-`.
    /// - Returns: these and the workloads that they are compared with, in the order of the run.
    static func chosen(_ names: [String]) throws(ToolFailure) -> [Workload] {
        var wanted: Set<String> = []
        for name in names {
            let group = all.filter { $0.name.hasPrefix(name + "-") }
            if !all.contains(where: { $0.name == name }), !group.isEmpty {
                wanted.formUnion(group.flatMap { workload in [workload.name] + (workload.base.map { [$0] } ?? []) })
                continue
            }
            guard let workload = all.first(where: { $0.name == name }) else {
                throw .usage("There is no workload \"\(name)\"\(Spelling.hint(for: name, among: all.map(\.name)))")
            }
            wanted.insert(name)
            if let base = workload.base { wanted.insert(base) }
        }
        return all.filter { wanted.contains($0.name) }
    }
    /// - Returns: the same workloads; those of one element are run one after the other, again and again.
    static func rounds(of workloads: [Workload]) -> [[Workload]] {
        var rounds: [[Workload]] = []
        for workload in workloads {
            if workload.alternates, let index = rounds.firstIndex(where: { $0[0].name == workload.base }) {
                rounds[index].append(workload)
            } else {
                rounds.append([workload])
            }
        }
        return rounds
    }
}
