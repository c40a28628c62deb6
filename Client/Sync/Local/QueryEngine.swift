import HearthModel

/// Finds a query's documents in the cache by the first applicable method: indexes, the keys that the server sent for
/// the target, or a scan of the whole collection. Each of them matches and is there once, in any order. It may return more
/// documents than the limit: the view truncates.
final class QueryEngine {
    /// Indexes are created automatically when a scan reads at least this many documents, and this many times the
    /// result.
    static let automaticIndexDocumentsMin = 100
    static let automaticIndexFactor = 3.4

    var view: LocalDocumentsView
    var isAutomaticIndexingEnabled = false

    init(_ view: LocalDocumentsView) { self.view = view }

    /// - Parameters:
    ///   - lastLimboFreeVersion: the last version at which the target's keys were complete.
    ///   - remoteKeys: the keys that the server sent for the target.
    func documents(
        matching query: ClientQuery, lastLimboFreeVersion: Timestamp, remoteKeys: Set<ResourcePath>
    ) throws(Status) -> [ClientDocument] {
        if let found = try fromIndexes(query) { return found }
        if let found = try fromRemoteKeys(query, lastLimboFreeVersion, remoteKeys) { return found }
        var readCount = 0
        let found = try view.documents(matching: query, after: .none) { readCount += $0 }
        if isAutomaticIndexingEnabled, !query.matchesAllDocuments { try createIndexes(query, readCount, found.count) }
        return found
    }

    private func fromIndexes(_ query: ClientQuery) throws(Status) -> [ClientDocument]? {
        if query.matchesAllDocuments || query.isDocumentQuery { return nil }
        let target = query.target
        let coverage = try view.indexManager.coverage(of: target)
        if coverage == .none { return nil }
        if query.limit != nil, coverage == .partial { return try fromIndexes(query.withoutLimit) }
        guard let keys = try view.indexManager.documents(matching: target) else { return nil }
        let offset = try view.indexManager.lowestOffset(for: target)
        let keySet = Set(keys)
        let matching = sorted(try view.documents(keySet), query)
        if needsRefill(query, matching, keySet.count, offset.readTime) { return try fromIndexes(query.withoutLimit) }
        return try adding(matching, query, after: offset)
    }

    private func fromRemoteKeys(
        _ query: ClientQuery, _ lastLimboFreeVersion: Timestamp, _ remoteKeys: Set<ResourcePath>
    ) throws(Status) -> [ClientDocument]? {
        if query.matchesAllDocuments || lastLimboFreeVersion == .none { return nil }
        let matching = sorted(try view.documents(remoteKeys), query)
        if needsRefill(query, matching, remoteKeys.count, lastLimboFreeVersion) { return nil }
        // Documents that were read later than the first, and all overlays.
        let offset = IndexOffset(
            readTime: Timestamp(microseconds: lastLimboFreeVersion.microseconds + 1), key: ResourcePath(),
            largestBatchID: MutationBatch.unknownID)
        return try adding(matching, query, after: offset)
    }

    private func adding(
        _ matching: [ClientDocument], _ query: ClientQuery, after offset: IndexOffset
    ) throws(Status) -> [ClientDocument] {
        let later = try view.documents(matching: query, after: offset) { _ in }
        if later.isEmpty { return matching }
        let keys = Set(later.map(\.key))
        return later + matching.filter { !keys.contains($0.key) }
    }

    /// Sorted only when a limit makes the order matter.
    private func sorted(_ documents: [ResourcePath: ClientDocument], _ query: ClientQuery) -> [ClientDocument] {
        let matcher = ClientQueryMatcher(query)
        let matching = documents.values.filter { matcher.matches($0) }
        if query.limit == nil { return matching }
        let comparator = query.comparator
        return matching.sorted { comparator.compare($0, $1) < 0 }
    }

    /// Whether documents from beyond the limit may have moved into it.
    private func needsRefill(
        _ query: ClientQuery, _ matching: [ClientDocument], _ keyCount: Int, _ version: Timestamp
    ) -> Bool {
        if query.limit == nil { return false }
        if matching.count != keyCount { return true }
        guard let edge = query.limitType == .first ? matching.last : matching.first else { return false }
        return edge.hasPendingWrites || edge.version > version
    }

    private func createIndexes(_ query: ClientQuery, _ readCount: Int, _ resultCount: Int) throws(Status) {
        guard readCount >= Self.automaticIndexDocumentsMin,
            Double(readCount) > Self.automaticIndexFactor * Double(resultCount)
        else { return }
        let target = query.target
        if try view.indexManager.coverage(of: target) != .full { try view.indexManager.createIndexes(for: target) }
    }
}

extension ClientQuery {
    fileprivate var withoutLimit: ClientQuery {
        var query = self
        query.limit = nil
        query.limitType = .first
        return query
    }
}
