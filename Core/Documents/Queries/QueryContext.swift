import HearthEngine
import HearthModel

/// State that the streams of one query share.
final class QueryContext {
    let query: NormalizedQuery
    let view: ReadView
    let matcher: QueryMatcher
    let meter: WorkMeter
    let overlay: PastOverlay?
    /// Whether only the keys of the results are wanted.
    let keysOnly: Bool
    /// Whether order keys are needed for candidates that arrive in order anyway.
    let needsOrderKeys: Bool
    private let fetcher: DocumentFetcher
    /// The memory of the overlay, counted while the query uses it.
    private let overlayBytes: Int

    /// - Parameter isMerged: the results come from several streams.
    init(
        _ query: NormalizedQuery, view: ReadView, meter: WorkMeter, keysOnly: Bool = false, isMerged: Bool = false
    ) throws(Status) {
        self.query = query
        self.keysOnly = keysOnly
        self.view = view
        self.meter = meter
        matcher = QueryMatcher(query)
        overlay = try view.overlay(of: ScopeChanges.Scope(query.query), meter)
        overlayBytes = overlay?.heldBytes ?? 0
        fetcher = DocumentFetcher(view.snapshot, reverse: query.nameDescending)
        needsOrderKeys = isMerged || query.hasBounds || overlay != nil
        try meter.hold(overlayBytes)
    }

    deinit { meter.release(overlayBytes) }

    /// Results beyond this many are never requested; nil when there is no limit.
    var resultsMax: Int? {
        query.query.findNearest == nil ? query.query.limit.map { $0 + query.query.offset } : nil
    }

    /// The content of a candidate, read now if it was not read before.
    func document(of candidate: Candidate) throws(Status) -> StoredDocument? {
        if let document = candidate.document { return document }
        return try load(candidate.key)
    }

    /// Reads a document as the view shows it.
    func load(_ key: [UInt8]) throws(Status) -> StoredDocument? {
        let document =
            if let overlay, overlay.replaces(key) { try overlay.document(key) } else { try fetcher.document(key) }
        meter.chargeDocument(document?.fields.count ?? 0)
        return document
    }
}
