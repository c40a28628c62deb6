import HearthModel
import HearthNetwork
import HearthStorage
import Synchronization

/// The targets of one event loop in one database. `@unchecked Sendable`: belongs to the loop, but for `receive` and the tables
/// that it looks into.
final class LoopListeners: ChangeReceiver, @unchecked Sendable {
    let database: Database
    let loop: EventLoop
    /// All commits up to this version that concern the loop's targets have been worked in.
    private(set) var seen: Int64 = 0 {
        didSet { if seen != oldValue { encodings = ListenEncodings() } }
    }
    /// Messages that many streams send about one version.
    var encodings = ListenEncodings()
    private let tables = Mutex(Tables())
    private var queriesByText: [[UInt8]: SharedQuery] = [:]
    private var streams: [ObjectIdentifier: ListenStream] = [:]

    init(_ database: Database, _ loop: EventLoop) {
        self.database = database
        self.loop = loop
    }

    /// Whom watches what. The loop changes it; the writer's thread looks into it, so that a commit which concerns nobody wakes
    /// nobody.
    private struct Tables {
        var documents: [[UInt8]: [ObjectIdentifier: ListenTarget]] = [:]
        /// Targets by the documents that decide who may see them.
        var dependents: [[UInt8]: [ObjectIdentifier: ListenTarget]] = [:]
        var queries: [WatchScope: QueryIndex<SharedQuery>] = [:]

        func concerns(_ change: Change, _ scopes: [WatchScope]) throws(Status) -> Bool {
            if documents[change.key] != nil || dependents[change.key] != nil { return true }
            for scope in scopes {
                if let index = queries[scope], try !index.candidates(for: change).isEmpty { return true }
            }
            return false
        }
    }

    func receive(_ event: ChangeEvent) {
        if case .committed(let set, let scopes) = event {
            let isOfConcern = tables.withLock { tables in
                do throws(Status) {
                    for (change, scopes) in zip(set.changes, scopes) where try tables.concerns(change, scopes) {
                        return true
                    }
                    return false
                } catch {
                    // The loop finds the same, and tells its streams.
                    return true
                }
            }
            if !isOfConcern { return }
        }
        loop.execute { [self] in take(event) }
    }

    func add(_ stream: ListenStream) { streams[ObjectIdentifier(stream)] = stream }

    func remove(_ stream: ListenStream) { streams[ObjectIdentifier(stream)] = nil }

    var isUnused: Bool { streams.isEmpty }

    /// The query with a text, made when nobody watches it yet.
    func query(_ text: [UInt8], _ make: () throws(Status) -> LiveQuery) throws(Status) -> SharedQuery {
        if let known = queriesByText[text] { return known }
        return SharedQuery(text: text, try make())
    }

    /// - Throws: UNAVAILABLE when the database is closed.
    func add(_ target: ListenTarget) throws(Status) {
        tables.withLock { tables in
            switch target.kind {
            case .documents(let keys):
                for key in keys { tables.documents[key, default: [:]][ObjectIdentifier(target)] = target }
            case .query(let shared):
                if shared.targets.isEmpty {
                    tables.queries[shared.live.scope, default: QueryIndex()].insert(shared, for: shared.live)
                }
            }
        }
        if case .query(let shared) = target.kind {
            if shared.targets.isEmpty { queriesByText[shared.text] = shared }
            shared.add(target)
        }
        // Last: what the hub hands on from here finds the target.
        if database.changes.add(target.scopes, for: self) { return }
        forget(target)
        throw database.closedStatus ?? .unavailable("The database is closed.")
    }

    /// Has a target judged again when one of some documents changes, in place of those before.
    /// - Returns: the version after which it will be.
    /// - Throws: UNAVAILABLE when the database is closed.
    func depend(_ target: ListenTarget, on keys: [[UInt8]]) throws(Status) -> Int64 {
        forgetDependencies(of: target)
        target.dependencies = keys
        tables.withLock { tables in
            for key in keys { tables.dependents[key, default: [:]][ObjectIdentifier(target)] = target }
        }
        guard database.changes.add(keys.map { .document($0) }, for: self) else {
            throw database.closedStatus ?? .unavailable("The database is closed.")
        }
        var since: Int64 = 0
        database.changes.withVersion { since = $0 }
        return since
    }

    private func forgetDependencies(of target: ListenTarget) {
        if target.dependencies.isEmpty { return }
        database.changes.remove(target.dependencies.map { .document($0) }, for: self)
        tables.withLock { Self.remove(target, target.dependencies, from: &$0.dependents) }
        target.dependencies = []
    }

    private static func remove(
        _ target: ListenTarget, _ keys: [[UInt8]], from table: inout [[UInt8]: [ObjectIdentifier: ListenTarget]]
    ) {
        for key in keys {
            table[key]?[ObjectIdentifier(target)] = nil
            if table[key]?.isEmpty == true { table[key] = nil }
        }
    }

    /// The rules have changed.
    func judgeAll() {
        for stream in streams.values { stream.judgeAll() }
    }

    func remove(_ target: ListenTarget) {
        forgetDependencies(of: target)
        database.changes.remove(target.scopes, for: self)
        forget(target)
    }

    private func forget(_ target: ListenTarget) {
        switch target.kind {
        case .documents(let keys): tables.withLock { Self.remove(target, keys, from: &$0.documents) }
        case .query(let shared):
            shared.remove(target)
            guard shared.targets.isEmpty else { return }
            queriesByText[shared.text] = nil
            tables.withLock { tables in
                tables.queries[shared.live.scope]?.remove(shared, for: shared.live)
                if tables.queries[shared.live.scope]?.isEmpty == true { tables.queries[shared.live.scope] = nil }
            }
        }
    }

    /// Runs `body` on the loop with a version up to which all commits that concern the loop have been worked in.
    func settle(_ body: @escaping @Sendable (Int64) -> Void) {
        // What was handed on before is in the loop's queue before this job.
        database.changes.withVersion { version in
            loop.execute { [self] in
                seen = max(seen, version)
                body(seen)
            }
        }
    }

    private func take(_ event: ChangeEvent) {
        switch event {
        case .committed(let set, let scopes): take(set, scopes)
        case .cleared(let version):
            seen = max(seen, version)
            for stream in streams.values {
                stream.startOver()
                stream.proceed()
            }
        case .closed(let reason):
            for stream in streams.values { stream.end(reason) }
        }
    }

    private func take(_ set: ChangeSet, _ scopes: [[WatchScope]]) {
        seen = max(seen, set.version)
        var touched: [ObjectIdentifier: ListenStream] = [:]
        var toBeJudged: [ListenTarget] = []
        for (change, scopes) in zip(set.changes, scopes) {
            do throws(Status) {
                toBeJudged += try take(change, scopes, set.version, &touched)
            } catch {
                // What is stored can't be read: nobody can be told the truth.
                for stream in streams.values { stream.end(error) }
                return
            }
        }
        // Before anything of the new state is told.
        for target in toBeJudged {
            target.stream.judgeAgain(target)
            touched[ObjectIdentifier(target.stream)] = target.stream
        }
        for stream in touched.values { stream.proceed() }
    }

    /// - Returns: targets of which the change may decide who may see them.
    private func take(
        _ change: Change, _ scopes: [WatchScope], _ version: Int64, _ touched: inout [ObjectIdentifier: ListenStream]
    ) throws(Status) -> [ListenTarget] {
        let (watching, dependents, queries) = try tables.withLock { tables throws(Status) in
            var queries: [SharedQuery] = []
            for scope in scopes {
                if let index = tables.queries[scope] { queries += try index.candidates(for: change) }
            }
            return (tables.documents[change.key], tables.dependents[change.key], queries)
        }
        let was = change.before != nil
        let now = change.after != nil
        for target in (watching ?? [:]).values where version > target.since {
            target.stream.note(change.key, target, was: was, now: now, change.after)
            touched[ObjectIdentifier(target.stream)] = target.stream
        }
        for shared in queries { try take(change, version, shared, &touched) }
        return dependents.map { Array($0.values) } ?? []
    }

    private func take(
        _ change: Change, _ version: Int64, _ shared: SharedQuery, _ touched: inout [ObjectIdentifier: ListenStream]
    ) throws(Status) {
        let was = try shared.live.matches(change.before, key: change.key)
        let now = try shared.live.matches(change.after, key: change.key)
        guard was || now else { return }
        for target in shared.targets.values where version > target.since {
            if shared.live.isWindow {
                target.stream.noteWindow(target)
            } else {
                target.stream.note(change.key, target, was: was, now: now, change.after)
            }
            touched[ObjectIdentifier(target.stream)] = target.stream
        }
    }
}

/// The listeners of all loops and databases.
final class Listeners: Sendable {
    private struct Key: Hashable {
        var database: ObjectIdentifier
        var loop: Int
    }

    private let all = Mutex<[Key: LoopListeners]>([:])

    /// On the stream's loop.
    func join(_ stream: ListenStream, _ database: Database, _ loop: EventLoop) -> LoopListeners {
        let key = Key(database: ObjectIdentifier(database), loop: loop.index)
        let listeners = all.withLock { all in
            let found = all[key] ?? LoopListeners(database, loop)
            all[key] = found
            return found
        }
        listeners.add(stream)
        return listeners
    }

    /// The rules have changed. From any thread.
    func judgeAll() {
        for listeners in all.withLock({ Array($0.values) }) { listeners.loop.execute { listeners.judgeAll() } }
    }

    /// On the stream's loop.
    func leave(_ stream: ListenStream, _ listeners: LoopListeners, _ loop: EventLoop) {
        listeners.remove(stream)
        guard listeners.isUnused else { return }
        let key = Key(database: ObjectIdentifier(listeners.database), loop: loop.index)
        all.withLock { all in if all[key] === listeners { all[key] = nil } }
    }
}
