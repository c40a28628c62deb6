import HearthModel
import HearthWire

@testable import HearthEngine
@testable import HearthDocuments

/// Follows documents like a listener: a state read at a version up to which the hub has delivered everything, then the
/// commits after it. Delivered events wait in its inbox, as in an event loop's queue, until its `step` is called.
///
/// `@unchecked Sendable`: one thread uses all of it.
final class InterleavedWatcher: ChangeReceiver, @unchecked Sendable {
    /// The watcher's report of a version.
    struct Observation {
        var version: Int64
        var numbers: [String: Int64]
    }

    private enum Job {
        case event(ChangeEvent)
        case settled(Int64)
    }

    private struct Load {
        var view: ReadView
        var unread: ArraySlice<String>
        var numbers: [String: Int64] = [:]
    }

    let names: [String]
    private(set) var observations: [Observation] = []
    private(set) var faults: [String] = []
    private(set) var hasStopped = false
    private(set) var isClosed = false
    private let database: Database
    private let scopes: [WatchScope]
    private var inbox: [Job] = []
    private var load: Load?
    /// Commits of versions after that of the load, which wait for its end.
    private var waiting: [ChangeSet] = []
    private var numbers: [String: Int64] = [:]
    private var seen: Int64?
    /// A step lets others continue where it reads; those don't run a step of this watcher.
    private var isStepping = false

    init(_ names: [String], of database: Database, isCollection: Bool) {
        self.names = names
        self.database = database
        let keys = names.map { DocumentKey.encode(resource($0).path) }
        scopes = isCollection ? [.collection(DocumentKey.collectionPrefix(of: keys[0])!)] : keys.map { .document($0) }
        if database.changes.add(scopes, for: self) { settle() } else { hasStopped = true }
    }

    var isIdle: Bool { hasStopped || isClosed || (inbox.isEmpty && load == nil) }

    func receive(_ event: ChangeEvent) {
        if hasStopped { faults.append("received an event after its stop") }
        if isClosed, case .committed = event { faults.append("received an event after the end") }
        inbox.append(.event(event))
    }

    /// Requests a version for the next report.
    func settle() {
        if hasStopped { return }
        database.changes.withVersion { inbox.append(.settled($0)) }
    }

    func stop() {
        if hasStopped || isStepping { return }
        hasStopped = true
        database.changes.remove(scopes, for: self)
        load = nil
    }

    /// Reads a document of a load, or processes the delivered events.
    func step(readsFirst: Bool) {
        if isIdle || isStepping { return }
        isStepping = true
        defer { isStepping = false }
        do throws(Status) {
            if load != nil, readsFirst || inbox.isEmpty { return try read() }
            switch inbox.removeFirst() {
            case .settled(let version): try settled(version)
            case .event(.committed(let set, _)): try committed(set)
            case .event(.cleared(let version)):
                load = nil
                waiting = []
                numbers = [:]
                // A watcher that was never loaded is at the version that it requested.
                if seen != nil { observe(version) }
            case .event(.closed):
                load = nil
                isClosed = true
            }
        } catch {
            // It was cleared, or closed, since that version was named: the event shows it.
            if error.code != .unavailable { faults.append("\(error)") }
            load = nil
            isClosed = error != Database.cleared
            seen = nil
        }
    }

    private func settled(_ version: Int64) throws(Status) {
        if seen == nil {
            seen = version
            load = Load(view: try database.view(atVersion: version), unread: names[...])
        } else if load == nil {
            observe(version)
        }
    }

    private func read() throws(Status) {
        guard var reading = load else { return }
        if let name = reading.unread.popFirst() {
            let document = try reading.view.document(resource(name).path)
            reading.numbers[name] = try document.map(number)
            load = reading
            return
        }
        let version = reading.view.version
        load = nil
        numbers = reading.numbers
        observe(version)
        let sets = waiting
        waiting = []
        for set in sets { try apply(set) }
    }

    private func committed(_ set: ChangeSet) throws(Status) {
        guard let seen else { return }
        if load != nil {
            if set.version > seen { waiting.append(set) }
        } else if set.version > seen {
            try apply(set)
        }
    }

    private func apply(_ set: ChangeSet) throws(Status) {
        for change in set.changes {
            guard let name = DocumentKey.decode(change.key)?.string, names.contains(name) else { continue }
            if try change.before.map(number) != numbers[name] {
                faults.append("\(name) before the commit at \(set.version)")
            }
            numbers[name] = try change.after.map(number)
        }
        observe(set.version)
    }

    private func observe(_ version: Int64) {
        if let last = observations.last, last.version > version { faults.append("back to \(version)") }
        seen = version
        observations.append(Observation(version: version, numbers: numbers))
    }

    private func number(_ document: StoredDocument) throws(Status) -> Int64 {
        guard case .integer(let number)? = try FieldsCodec.decode(document.fields)["n"] else { return -1 }
        return number
    }
}
