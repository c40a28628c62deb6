import HearthConcurrency
import HearthModel
import HearthEngine
import HearthDocuments

/// The result of a query with a limit or an offset at a version. `@unchecked Sendable`: used by one thread at a time.
final class WindowResult: @unchecked Sendable {
    struct Entry {
        var key: [UInt8]
        var updateVersion: Int64
        /// Nil when it is read again at its use.
        var document: StoredDocument?
    }

    let version: Int64
    let documents: [Entry]
    /// The documents' update versions.
    let versions: [[UInt8]: Int64]
    let last: QueryResult?
    /// The memory that a target needs to record them.
    let sizeBytes: Int
    let view: ReadView
    /// Accounts for the memory of this result.
    private let meter: WorkMeter
    /// Whether more results were found for the cache, as far as memory allowed.
    let isCaching: Bool
    private var cached: (window: CachedWindow, memory: MemoryReservation)?
    /// Results of the query that were found in the store.
    let resultsFound: Int

    init(
        _ documents: [Entry], last: QueryResult?, _ view: ReadView, _ meter: WorkMeter, isCaching: Bool,
        cached: (window: CachedWindow, memory: MemoryReservation)?, resultsFound: Int
    ) {
        version = view.version
        self.documents = documents
        self.last = last
        self.view = view
        self.meter = meter
        self.isCaching = isCaching
        self.cached = cached
        self.resultsFound = resultsFound
        sizeBytes = ListenWindow.sizeBytes(of: documents.lazy.map(\.key))
        versions = Dictionary(documents.map { ($0.key, $0.updateVersion) }) { $1 }
    }

    /// A known result, at the version of a view.
    convenience init(
        _ documents: [(key: [UInt8], updateVersion: Int64)], _ view: ReadView, _ memory: MemoryReservation
    ) throws(Status) {
        let meter = WorkMeter(memory: memory) { () throws(Status) in }
        try meter.hold(documents.reduce(0) { $0 + $1.key.count + Self.entryBytes })
        self.init(
            documents.map { Entry(key: $0.key, updateVersion: $0.updateVersion, document: nil) }, last: nil, view,
            meter,
            isCaching: false, cached: nil, resultsFound: 0)
    }

    /// Memory of an entry in two tables, in addition to its key.
    static let entryBytes = 192

    /// Results that were examined.
    var workCount: Int { max(resultsFound, documents.count) }

    /// The results for the cache, once; nil when there was no memory for them.
    func takeCache() -> (window: CachedWindow, memory: MemoryReservation)? {
        defer { cached = nil }
        return cached
    }

    func document(_ entry: Entry) throws(Status) -> StoredDocument? {
        if let document = entry.document { return document }
        return try view.document(key: entry.key)
    }
}
