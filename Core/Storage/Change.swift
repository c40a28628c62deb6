import HearthModel
import Synchronization

/// What a commit did to one document.
public struct Change: Sendable {
    public var key: [UInt8]
    public var before: StoredDocument?
    public var after: StoredDocument?
}

/// What a commit did.
public struct ChangeSet: Sendable {
    public var version: Int64
    public var changes: [Change]

    var sizeBytes: Int {
        changes.reduce(64) { $0 + $1.key.count + ($1.before?.fields.count ?? 0) + ($1.after?.fields.count ?? 0) + 96 }
    }
}

/// The latest commits, with the documents before and after, for those who must know what changed since a version.
final class RecentChanges: Sendable {
    private struct State {
        var sets: [ChangeSet] = []
        var first = 0
        var bytes = 0
        /// Everything after this version is held.
        var completeSince: Int64
        /// The version of the last commit that is known here; readers may have seen later ones.
        var latest: Int64
    }

    /// Bytes of documents that are held before the oldest commits are let go.
    static let sizeBytesMax = 16 << 20

    private let state: Mutex<State>

    init(since version: Int64) {
        state = Mutex(State(completeSince: version, latest: version))
    }

    func append(_ set: ChangeSet) {
        state.withLock { state in
            state.sets.append(set)
            state.latest = set.version
            state.bytes += set.sizeBytes
            while state.bytes > Self.sizeBytesMax, state.first < state.sets.count {
                state.completeSince = state.sets[state.first].version
                state.bytes -= state.sets[state.first].sizeBytes
                state.sets[state.first].changes = []
                state.first += 1
            }
            if state.first > 1024, state.first * 2 > state.sets.count {
                state.sets.removeFirst(state.first)
                state.first = 0
            }
        }
    }

    /// The commits after a version, oldest first; nil when some of them up to `last` are no longer held, or not yet.
    func changes(after version: Int64, through last: Int64) -> ArraySlice<ChangeSet>? {
        state.withLock { state in
            guard version >= state.completeSince, last <= state.latest else { return nil }
            var low = state.first
            var high = state.sets.count
            while low < high {
                let middle = (low + high) / 2
                if state.sets[middle].version <= version { low = middle + 1 } else { high = middle }
            }
            return state.sets[low...]
        }
    }

    /// Forgets everything: what happened up to `version` can't be told any more.
    func reset(to version: Int64) {
        state.withLock { $0 = State(completeSince: version, latest: version) }
    }
}
