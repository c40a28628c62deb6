import HearthModel
import HearthWire

/// Collects documents and query results of one database and writes them as a bundle.
///
/// Of several versions of a document the one with the latest read time is stored, of equal ones the first; documents
/// are in the order in which they were first added. The same calls give the same bytes. For a consistent bundle, read
/// everything at one read time.
package struct BundleBuilder<Spool: BundleSpool> {
    /// The latest version of a document.
    private struct Entry {
        var name: String
        var readTime: TimestampMessage
        var queries: [String] = []
        /// The framed `document` element in the spool; nil for a missing document.
        var element: Range<Int64>?

        var metadata: [UInt8] {
            BundleElementWriter.framed(
                BundleElementWriter.documentMetadata(
                    name, readTime: readTime, exists: element != nil, queries: queries))
        }
    }

    /// The name of the bundle.
    package let id: String
    private var entries: [Entry] = []
    /// By the bytes of the names, which identify documents: `String` compares by canonical equivalence.
    private var positions: [[UInt8]: Int] = [:]
    private var queries: [[UInt8]] = []
    private var queryNames: Set<[UInt8]> = []
    private var latestReadTime = TimestampMessage()
    private var database: DatabaseName?
    private var spool: Spool
    private var spoolSize: Int64 = 0

    /// A builder without content.
    /// - Parameters:
    ///   - id: the name of the bundle: a client that loads a later bundle with the same id replaces this one.
    ///   - spool: stores the documents until the bundle is written.
    /// - Throws: `INVALID_ARGUMENT` for an empty id.
    package init(id: String, spool: Spool) throws(Status) {
        if id.isEmpty { throw .invalidArgument("A bundle needs an id.") }
        self.id = id
        self.spool = spool
    }

    /// The number of distinct documents so far, including missing ones.
    package var documentCount: Int { entries.count }

    // MARK: Adding

    /// Adds a document that exists.
    /// - Parameters:
    ///   - document: the document with its times.
    ///   - readTime: the time at which it was read.
    ///   - query: the name of the query whose result contains it; nil for a document of its own.
    /// - Throws: `INVALID_ARGUMENT` when it has no update time, belongs to another database, or refers to one.
    package mutating func add(
        _ document: EncodedDocument, readTime: TimestampMessage, query: String? = nil
    ) throws(Status) {
        let name = try documentName(document.name)
        guard let updateTime = document.updateTime else {
            throw .invalidArgument("Document \(document.name) has no update time.")
        }
        try Self.checkReferences(in: try FieldsCodec.decode(document.fields), of: name)
        guard let index = add(document.name, readTime: readTime, query: query) else { return }
        let element = BundleElementWriter.framed(try BundleElementWriter.document(document, updateTime: updateTime))
        try spool.append(element)
        entries[index].element = spoolSize..<spoolSize + Int64(element.count)
        spoolSize += Int64(element.count)
    }

    /// Adds a document that was read and does not exist.
    /// - Parameters:
    ///   - name: the document's full name.
    ///   - readTime: the time at which it was read.
    ///   - query: the name of the query whose result contains it; nil for a document of its own.
    /// - Throws: `INVALID_ARGUMENT` when the name is invalid or of another database.
    package mutating func add(
        missing name: String, readTime: TimestampMessage, query: String? = nil
    ) throws(Status) {
        _ = try documentName(name)
        if let index = add(name, readTime: readTime, query: query) { entries[index].element = nil }
    }

    /// Adds a named query. Its documents are added separately, with this name.
    /// - Parameters:
    ///   - name: the query's name, not empty.
    ///   - parent: the document that contains the collection, or the root of the database.
    ///   - query: the user's query; for a limit to the last results, directions and cursors are not reversed.
    ///   - limitType: which end of the ordered result the limit selects.
    ///   - readTime: the read time of the result.
    /// - Throws: `ALREADY_EXISTS` for a name that was used before; `INVALID_ARGUMENT` for a query that no client can
    ///   load.
    package mutating func add(
        query name: String, parent: ResourceName, _ query: StructuredQueryMessage,
        limitType: BundleQuery.LimitType = .first, readTime: TimestampMessage
    ) throws(Status) {
        if name.isEmpty { throw .invalidArgument("A query in a bundle needs a name.") }
        if queryNames.contains(Array(name.utf8)) {
            throw Status(.alreadyExists, "Query name conflict: \"\(name)\" was added before.")
        }
        try noteDatabase(parent.database, parent.string)
        _ = try BundleQueryCheck.query(query, parent: parent)
        queryNames.insert(Array(name.utf8))
        queries.append(
            BundleElementWriter.framed(
                BundleElementWriter.namedQuery(name, parent: parent, query, limitType, readTime: readTime)))
        note(readTime)
    }

    /// - Returns: the entry whose version must be stored; nil when the stored one stays.
    private mutating func add(_ name: String, readTime: TimestampMessage, query: String?) -> Int? {
        note(readTime)
        let index: Int
        let isNewer: Bool
        let key = Array(name.utf8)
        if let known = positions[key] {
            index = known
            isNewer = entries[index].readTime.isBefore(readTime)
            if isNewer { entries[index].readTime = readTime }
        } else {
            index = entries.count
            isNewer = true
            positions[key] = index
            entries.append(Entry(name: name, readTime: readTime))
        }
        if let query { entries[index].queries.append(query) }
        return isNewer ? index : nil
    }

    private mutating func note(_ readTime: TimestampMessage) {
        if latestReadTime.isBefore(readTime) { latestReadTime = readTime }
    }

    // MARK: Names

    private mutating func documentName(_ string: String) throws(Status) -> ResourceName {
        let name = try ResourceName(document: string)
        try noteDatabase(name.database, string)
        return name
    }

    private mutating func noteDatabase(_ other: DatabaseName, _ string: String) throws(Status) {
        guard let database else {
            database = other
            return
        }
        if database != other {
            throw .invalidArgument("A bundle holds one database only: \(string) is not in \(database).")
        }
    }

    /// A client rejects a bundle whose values refer to another database.
    private static func checkReferences(in map: MapValue, of document: ResourceName) throws(Status) {
        for field in map.fields { try checkReferences(in: field.value, of: document) }
    }

    private static func checkReferences(in value: Value, of document: ResourceName) throws(Status) {
        switch value {
        case .reference(let string):
            if try ResourceName(reference: string).database != document.database {
                throw .invalidArgument(
                    "Document \(document.string) refers to \(string) of another database, which no client can load.")
            }
        case .array(let elements): for element in elements { try checkReferences(in: element, of: document) }
        case .map(let map): try checkReferences(in: map, of: document)
        default: break
        }
    }

    // MARK: Writing

    /// The first element of a bundle, and its size.
    package struct Summary: Sendable, Equatable {
        /// The first element.
        package var metadata: BundleMetadata
        /// The size of the whole bundle.
        package var sizeBytes: Int64
    }

    /// Describes the bundle of everything added so far. It may be written again after more was added.
    /// - Returns: the metadata and the size.
    /// - Throws: `INVALID_ARGUMENT` when a read time is out of range.
    package func summary() throws(Status) -> Summary {
        let (head, metadata) = try head()
        return Summary(metadata: metadata, sizeBytes: Int64(head.count) + metadata.totalBytes)
    }

    /// Writes the bundle to a sink, in pieces of about 64 KiB.
    /// - Parameter sink: receives the pieces in their order; its error ends the writing.
    /// - Returns: the metadata and the size.
    /// - Throws: the error of the sink or of the spool; `INVALID_ARGUMENT` when a read time is out of range.
    @discardableResult
    package mutating func write(_ sink: ([UInt8]) throws(Status) -> Void) throws(Status) -> Summary {
        let (head, metadata) = try head()
        var piece = head
        for query in queries { piece += query }
        for entry in entries {
            piece += entry.metadata
            if let element = entry.element { piece += try spool.read(element) }
            if piece.count >= 65_536 {
                try sink(piece)
                piece.removeAll(keepingCapacity: true)
            }
        }
        if !piece.isEmpty { try sink(piece) }
        return Summary(metadata: metadata, sizeBytes: Int64(head.count) + metadata.totalBytes)
    }

    private func head() throws(Status) -> (bytes: [UInt8], BundleMetadata) {
        var totalBytes: Int64 = 0
        for query in queries { totalBytes += Int64(query.count) }
        for entry in entries { totalBytes += Int64(entry.metadata.count + (entry.element.map { $0.count } ?? 0)) }
        let metadata = BundleMetadata(
            id: id, createTime: try latestReadTime.timestamp(), totalDocuments: entries.count, totalBytes: totalBytes)
        let json = BundleElementWriter.metadata(
            id: id, createTime: latestReadTime, totalDocuments: entries.count, totalBytes: totalBytes)
        return (BundleElementWriter.framed(json), metadata)
    }
}

extension BundleBuilder where Spool == BundleMemorySpool {
    /// A builder that stores everything in memory.
    /// - Parameter id: the name of the bundle: a client that loads a later bundle with the same id replaces this one.
    /// - Throws: `INVALID_ARGUMENT` for an empty id.
    package init(id: String) throws(Status) {
        try self.init(id: id, spool: BundleMemorySpool())
    }

    /// Writes the bundle as one array.
    /// - Returns: the bytes.
    /// - Throws: `INVALID_ARGUMENT` when a read time is out of range.
    package mutating func build() throws(Status) -> [UInt8] {
        var bundle: [UInt8] = []
        try write { piece throws(Status) in bundle += piece }
        return bundle
    }
}

extension TimestampMessage {
    fileprivate func isBefore(_ other: TimestampMessage) -> Bool { (seconds, nanos) < (other.seconds, other.nanos) }
}
