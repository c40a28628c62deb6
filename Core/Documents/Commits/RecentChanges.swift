import Synchronization

/// The latest commits, with the documents before and after, for readers that need the changes since a version.
///
/// The commits are kept in chunks. A reader holds the chunks, and only the last chunk is copied when the writer appends
/// to it in the meantime.
final class RecentChanges: Sendable {
    struct Chunk: Sendable {
        fileprivate(set) var sets: [ChangeSet] = []
        fileprivate var bytes = 0
    }

    private struct State {
        var chunks: [Chunk] = []
        var bytes = 0
        /// Everything after this version is held.
        var completeSince: Int64
        /// The version of the last commit that is known here; readers may have seen later ones.
        var latest: Int64
    }

    /// Bytes of documents that are held; beyond them the oldest commits are dropped.
    static let sizeBytesMax = 16 << 20
    /// The bytes that each database may hold even when all together hold too much.
    static let sharedBytesMin = 256 << 10
    static let chunkSetsMax = 128
    private static let chunkBytesMax = sizeBytesMax / 16

    private let state: Mutex<State>
    /// The total of all databases of the process.
    private let shared: SharedCacheBytes

    init(since version: Int64, shared: SharedCacheBytes = SharedCacheBytes(max: .max)) {
        state = Mutex(State(completeSince: version, latest: version))
        self.shared = shared
    }

    deinit { shared.used.subtract(state.withLock { $0.bytes }, ordering: .relaxed) }

    func append(_ set: ChangeSet) {
        let bytes = set.sizeBytes
        state.withLock { state in
            let last = state.chunks.count - 1
            if last >= 0, state.chunks[last].sets.count < Self.chunkSetsMax,
                state.chunks[last].bytes < Self.chunkBytesMax
            {
                state.chunks[last].sets.append(set)
                state.chunks[last].bytes += bytes
            } else {
                state.chunks.append(Chunk(sets: [set], bytes: bytes))
            }
            state.latest = set.version
            state.bytes += bytes
            shared.used.add(bytes, ordering: .relaxed)
            fit(&state)
        }
    }

    /// Drops what is now too much: because other databases hold more, or memory is tight.
    func fit() { state.withLock { fit(&$0) } }

    private func fit(_ state: inout State) {
        while isTooLarge(state.bytes), let first = state.chunks.first {
            state.completeSince = first.sets[first.sets.count - 1].version
            state.bytes -= first.bytes
            shared.used.subtract(first.bytes, ordering: .relaxed)
            state.chunks.removeFirst()
        }
    }

    private func isTooLarge(_ bytes: Int) -> Bool {
        bytes > Self.sizeBytesMax || shared.isCrowded && bytes > shared.littleBytes(Self.sharedBytesMin)
    }

    /// Whether all commits after a version are held.
    func reaches(_ version: Int64) -> Bool { state.withLock { version >= $0.completeSince } }

    /// The commits after a version, oldest first; nil when some of them up to `last` are no longer held, or not yet.
    func changes(after version: Int64, through last: Int64) -> RecentSets? {
        state.withLock { state in
            guard version >= state.completeSince, last <= state.latest else { return nil }
            var low = 0
            var high = state.chunks.count
            while low < high {
                let middle = (low + high) / 2
                let sets = state.chunks[middle].sets
                if sets[sets.count - 1].version <= version { low = middle + 1 } else { high = middle }
            }
            return RecentSets(chunks: state.chunks[low...], after: version)
        }
    }

    /// Forgets everything: changes up to `version` are no longer known.
    func reset(to version: Int64) {
        state.withLock { state in
            shared.used.subtract(state.bytes, ordering: .relaxed)
            state = State(completeSince: version, latest: version)
        }
    }
}

/// Commits after a version, oldest first.
struct RecentSets: Sequence {
    fileprivate let chunks: [RecentChanges.Chunk]
    fileprivate let version: Int64

    fileprivate init(chunks: ArraySlice<RecentChanges.Chunk>, after version: Int64) {
        self.chunks = Array(chunks)
        self.version = version
    }

    func makeIterator() -> some IteratorProtocol<ChangeSet> {
        let version = version
        return chunks.lazy.flatMap(\.sets).drop { $0.version <= version }.makeIterator()
    }
}
