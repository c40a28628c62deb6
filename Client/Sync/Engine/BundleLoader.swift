import Dispatch
import HearthBundle
import HearthModel

/// Loads one bundle into the cache. It reads on its own thread, which may block on the source. Only the work that uses
/// the cache runs on the worker queue.
///
/// Its state belongs to the reading thread.
final class BundleLoader: @unchecked Sendable {
    private static let pieceSizeBytes = 65_536

    private let core: SyncCore
    private let read: @Sendable (Int) throws -> [UInt8]
    private let onProgress: @Sendable (SyncClient.BundleProgress, Status?) -> Void
    private var reader: BundleReader
    private var queries: [BundleQuery] = []
    private var documents: [ResourcePath: ClientDocument] = [:]
    /// By the bytes of the queries' names, as in the cache: `String` compares by canonical equivalence.
    private var keysOfQuery: [[UInt8]: Set<ResourcePath>] = [:]
    private var progress = SyncClient.BundleProgress(
        documentsLoaded: 0, totalDocuments: 0, bytesLoaded: 0, totalBytes: 0, state: .inProgress)

    init(
        _ core: SyncCore, read: @escaping @Sendable (Int) throws -> [UInt8],
        onProgress: @escaping @Sendable (SyncClient.BundleProgress, Status?) -> Void
    ) {
        self.core = core
        self.read = read
        self.onProgress = onProgress
        reader = BundleReader(database: core.database)
    }

    func start() {
        DispatchQueue(label: "hearth.bundle").async { [self] in
            do throws(Status) { try load() } catch {
                progress.state = .error
                onProgress(progress, error)
            }
        }
    }

    private func load() throws(Status) {
        guard case .metadata(let metadata)? = try nextElement() else {
            throw Status(.dataLoss, "A bundle begins with its metadata.")
        }
        progress.totalDocuments = metadata.totalDocuments
        progress.totalBytes = metadata.totalBytes
        let isKnown = try core.perform { engine throws(Status) in try engine.localStore.hasNewerBundle(metadata) }
        if isKnown { return succeed(metadata) }
        onProgress(progress, nil)
        while let element = try nextElement() { take(element) }
        let contents = Contents(
            metadata: metadata, queries: try queries.mapQueries(core.serializer), documents: Array(documents.values),
            keysOfQuery: keysOfQuery)
        try core.perform { engine throws(Status) in try contents.apply(to: engine) }
        succeed(metadata)
    }

    private func succeed(_ metadata: BundleMetadata) {
        progress.documentsLoaded = metadata.totalDocuments
        progress.bytesLoaded = metadata.totalBytes
        progress.state = .success
        onProgress(progress, nil)
    }

    private func nextElement() throws(Status) -> BundleElement? {
        while true {
            if let element = try reader.next() { return element }
            if reader.isAtEnd { return nil }
            let piece: [UInt8]
            do { piece = try read(Self.pieceSizeBytes) } catch {
                throw error as? Status ?? Status(.unavailable, "The bundle's source failed: \(error)")
            }
            if piece.isEmpty { reader.finish() } else { reader.feed(piece) }
        }
    }

    private func take(_ element: BundleElement) {
        switch element {
        case .metadata: break
        case .namedQuery(let query): queries.append(query)
        case .document(let document):
            let key = document.name.path
            documents[key] = ClientDocument(document)
            if !document.isRepeated {
                for query in document.queries { keysOfQuery[Array(query.utf8), default: []].insert(key) }
            }
            progress.documentsLoaded = reader.documentCount
            progress.bytesLoaded = reader.bytesRead
            onProgress(progress, nil)
        }
    }

    /// The complete contents of a bundle, after all of it was read and validated.
    private struct Contents: Sendable {
        var metadata: BundleMetadata
        var queries: [NamedQuery]
        var documents: [ClientDocument]
        var keysOfQuery: [[UInt8]: Set<ResourcePath>]

        func apply(to engine: SyncEngine) throws(Status) {
            // Documents that are already in the cache are shown, also when a later step fails.
            try engine.emit(try engine.localStore.store(documents, ofBundle: metadata.id))
            for query in queries {
                try engine.localStore.store(query, keys: keysOfQuery[Array(query.name.utf8)] ?? [])
            }
            try engine.localStore.store(metadata)
        }
    }
}

extension ClientDocument {
    fileprivate init(_ document: BundleDocument) {
        self.init(
            key: document.name.path, kind: document.exists ? .found : .missing, version: document.version,
            createTime: document.contents?.createTime ?? .none, fields: document.contents?.fields ?? MapValue())
    }
}

extension [BundleQuery] {
    fileprivate func mapQueries(_ serializer: TargetSerializer) throws(Status) -> [NamedQuery] {
        var result: [NamedQuery] = []
        for query in self {
            var user = try serializer.query(query.query, limitType: query.limitType == .last ? .last : .first)
            // With its implied orders, in the form in which the cache returns it.
            user.orders = user.normalizedOrders
            result.append(NamedQuery(name: query.name, query: user, readTime: query.readTime))
        }
        return result
    }
}
