import HearthModel
import HearthDocuments
import Synchronization

/// Result counts of queries at some version. A later count is computed from the feed, without counting all results
/// again.
///
/// A client that resumes states how many documents it holds, and the server compares that with the number of results.
/// Counting a large collection would cost far more than its changes.
final class ResultCounts: Sendable {
    struct Entry {
        var version: Int64
        var count: Int
    }

    private struct Key: Hashable {
        var incarnation: Int64
        var query: ByteDigest
    }

    private struct State {
        var entries: [Key: (entry: Entry, use: UInt64)] = [:]
        var uses: UInt64 = 0
    }

    private static let entriesMax = 1000
    /// Smaller results are counted as quickly.
    private static let countMin = 1000

    private let state = Mutex(State())

    /// - Parameter query: equal for equal queries.
    func entry(_ database: Database, _ query: ByteDigest) -> Entry? {
        state.withLock { state in
            state.uses += 1
            let key = Key(incarnation: database.incarnation, query: query)
            state.entries[key]?.use = state.uses
            return state.entries[key]?.entry
        }
    }

    func note(_ entry: Entry, _ database: Database, _ query: ByteDigest) {
        if entry.count < Self.countMin { return }
        state.withLock { state in
            let key = Key(incarnation: database.incarnation, query: query)
            if let known = state.entries[key], known.entry.version > entry.version { return }
            state.uses += 1
            state.entries[key] = (entry, state.uses)
            guard state.entries.count > Self.entriesMax else { return }
            // Removes half of them at a time, the least recently used.
            let uses = state.entries.values.map(\.use).sorted()
            let bound = uses[uses.count / 2]
            state.entries = state.entries.filter { $0.value.use >= bound }
        }
    }
}
