import HearthModel
import HearthStorage
import HearthWire

/// What one target of a Listen stream watches. `@unchecked Sendable`: belongs to the stream's loop.
final class ListenTarget: @unchecked Sendable {
    enum Kind {
        case query(SharedQuery)
        /// Keys of documents, each once.
        case documents([[UInt8]])
    }

    let id: Int32
    let kind: Kind
    let once: Bool
    let projection: Projection?
    unowned let stream: ListenStream
    /// Commits up to this version are in what was sent; no commit counts before that was begun.
    var since = Int64.max
    /// Of a query with a limit or an offset: the documents that the client has, with their update versions.
    var window: [[UInt8]: Int64] = [:]

    init(id: Int32, kind: Kind, once: Bool, stream: ListenStream) {
        self.id = id
        self.kind = kind
        self.once = once
        self.stream = stream
        if case .query(let shared) = kind {
            projection = shared.live.query.query.projection.map { Projection($0) }
        } else {
            projection = nil
        }
    }

    var scopes: [WatchScope] {
        switch kind {
        case .query(let shared): [shared.live.scope]
        case .documents(let keys): keys.map { .document($0) }
        }
    }
}

/// A query that one or more targets of a loop watch: what a commit does to it is worked out once for all of them.
/// `@unchecked Sendable`: belongs to the loop.
final class SharedQuery: @unchecked Sendable {
    /// What is the same for the same query.
    let text: [UInt8]
    let live: LiveQuery
    fileprivate(set) var targets: [ObjectIdentifier: ListenTarget] = [:]

    init(text: [UInt8], _ live: LiveQuery) {
        self.text = text
        self.live = live
    }

    func add(_ target: ListenTarget) { targets[ObjectIdentifier(target)] = target }

    func remove(_ target: ListenTarget) { targets[ObjectIdentifier(target)] = nil }
}
