import HearthModel
import HearthNetwork
import HearthStorage
import Synchronization

/// The targets of one event loop in one database. `@unchecked Sendable`: belongs to the loop, but for `receive`.
final class LoopListeners: ChangeReceiver, @unchecked Sendable {
    let database: Database
    let loop: EventLoop
    /// All commits up to this version that concern the loop's targets have been worked in.
    private(set) var seen: Int64 = 0 {
        didSet { if seen != oldValue { encodings = ListenEncodings() } }
    }
    /// Messages that many streams send about one version.
    var encodings = ListenEncodings()
    private var documents: [[UInt8]: [ObjectIdentifier: ListenTarget]] = [:]
    private var queries: [WatchScope: QueryIndex<SharedQuery>] = [:]
    private var queriesByText: [[UInt8]: SharedQuery] = [:]
    private var streams: [ObjectIdentifier: ListenStream] = [:]

    init(_ database: Database, _ loop: EventLoop) {
        self.database = database
        self.loop = loop
    }

    func receive(_ event: ChangeEvent) {
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
        guard database.changes.add(target.scopes, for: self) else { throw .unavailable("The database is closed.") }
        switch target.kind {
        case .documents(let keys):
            for key in keys { documents[key, default: [:]][ObjectIdentifier(target)] = target }
        case .query(let shared):
            if shared.targets.isEmpty {
                queriesByText[shared.text] = shared
                queries[shared.live.scope, default: QueryIndex()].insert(shared, for: shared.live)
            }
            shared.add(target)
        }
    }

    func remove(_ target: ListenTarget) {
        database.changes.remove(target.scopes, for: self)
        switch target.kind {
        case .documents(let keys):
            for key in keys {
                documents[key]?[ObjectIdentifier(target)] = nil
                if documents[key]?.isEmpty == true { documents[key] = nil }
            }
        case .query(let shared):
            shared.remove(target)
            guard shared.targets.isEmpty else { return }
            queriesByText[shared.text] = nil
            queries[shared.live.scope]?.remove(shared, for: shared.live)
            if queries[shared.live.scope]?.isEmpty == true { queries[shared.live.scope] = nil }
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
        case .committed(let set): take(set)
        case .cleared(let version):
            seen = max(seen, version)
            for stream in streams.values {
                stream.startOver()
                stream.proceed()
            }
        case .closed:
            for stream in streams.values { stream.end(.unavailable("The database is closed.")) }
        }
    }

    private func take(_ set: ChangeSet) {
        seen = max(seen, set.version)
        var touched: [ObjectIdentifier: ListenStream] = [:]
        for change in set.changes {
            do throws(Status) {
                try take(change, set.version, &touched)
            } catch {
                // What is stored can't be read: nobody can be told the truth.
                for stream in streams.values { stream.end(error) }
                return
            }
        }
        for stream in touched.values { stream.proceed() }
    }

    private func take(
        _ change: Change, _ version: Int64, _ touched: inout [ObjectIdentifier: ListenStream]
    ) throws(Status) {
        for scope in ChangeHub.scopes(of: change.key) {
            if case .document(let key) = scope {
                guard let watching = documents[key] else { continue }
                let was = change.before != nil
                let now = change.after != nil
                for target in watching.values where version > target.since {
                    target.stream.note(key, target, was: was, now: now, change.after)
                    touched[ObjectIdentifier(target.stream)] = target.stream
                }
            } else if let index = queries[scope] {
                for shared in try index.candidates(for: change) { try take(change, version, shared, &touched) }
            }
        }
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

    /// On the stream's loop.
    func leave(_ stream: ListenStream, _ listeners: LoopListeners, _ loop: EventLoop) {
        listeners.remove(stream)
        guard listeners.isUnused else { return }
        let key = Key(database: ObjectIdentifier(listeners.database), loop: loop.index)
        all.withLock { all in if all[key] === listeners { all[key] = nil } }
    }
}
