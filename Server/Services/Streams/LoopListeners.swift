import HearthModel
import HearthNetwork
import HearthStorage
import Synchronization

/// The targets of one event loop in one database. `@unchecked Sendable`: belongs to the loop, but for `receive`.
final class LoopListeners: ChangeReceiver, @unchecked Sendable {
    let database: Database
    private let loop: EventLoop
    /// All commits up to this version that concern the loop's targets have been worked in.
    private(set) var seen: Int64 = 0
    private var targets: [WatchScope: [ObjectIdentifier: ListenTarget]] = [:]
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

    /// - Throws: UNAVAILABLE when the database is closed.
    func add(_ target: ListenTarget) throws(Status) {
        guard database.changes.add(target.scopes, for: self) else { throw .unavailable("The database is closed.") }
        for scope in target.scopes { targets[scope, default: [:]][ObjectIdentifier(target)] = target }
    }

    func remove(_ target: ListenTarget) {
        database.changes.remove(target.scopes, for: self)
        for scope in target.scopes {
            targets[scope]?[ObjectIdentifier(target)] = nil
            if targets[scope]?.isEmpty == true { targets[scope] = nil }
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
            for scope in ChangeHub.scopes(of: change.key) {
                guard let watching = targets[scope] else { continue }
                for target in watching.values {
                    do throws(Status) {
                        if try target.take(change, at: set.version) {
                            touched[ObjectIdentifier(target.stream)] = target.stream
                        }
                    } catch {
                        target.stream.end(error)
                    }
                }
            }
        }
        for stream in touched.values { stream.proceed() }
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
