import HearthModel
import HearthWire

/// Checks a bundle's elements in sequence and converts them to values of the model: names, times, queries, and the
/// consistency of the elements.
///
/// A rejected element changes nothing: a tool that collects all errors may continue.
package struct BundleCheck: Sendable {
    /// The database of all names. When it is not given, the first name decides.
    package private(set) var database: DatabaseName?
    /// The first element; nil before it was taken.
    package private(set) var metadata: BundleMetadata?
    /// The number of distinct complete documents.
    package var documentCount: Int { documents.count }

    /// The bytes of the names, which identify documents: `String` compares by canonical equivalence.
    private var documents: Set<[UInt8]> = []
    /// The metadata of an existing document, whose document must follow.
    private var open: BundledDocumentMetadataMessage?

    /// A check without elements.
    /// - Parameter database: the database of all names; nil takes that of the first name.
    package init(database: DatabaseName?) {
        self.database = database
    }

    /// Checks the next element.
    /// - Parameter message: the element.
    /// - Returns: nil for the metadata of an existing document, which is returned with its document.
    /// - Throws: `DATA_LOSS` when something is missing or malformed; `INVALID_ARGUMENT` when the element contradicts
    ///   earlier ones.
    package mutating func take(_ message: BundleElementMessage) throws(Status) -> BundleElement? {
        if let message = message.metadata {
            if metadata != nil { throw .invalidArgument("The bundle has metadata twice.") }
            let metadata = try Self.metadata(message)
            self.metadata = metadata
            return .metadata(metadata)
        }
        if metadata == nil { throw Self.damaged("The bundle does not begin with its metadata.") }
        if let message = message.namedQuery { return .namedQuery(try namedQuery(message)) }
        if let message = message.documentMetadata { return try documentMetadata(message).map { .document($0) } }
        if let message = message.document { return .document(try document(message)) }
        throw Self.damaged("A bundle's element is none of metadata, namedQuery, documentMetadata and document.")
    }

    /// Checks the end of the bundle.
    /// - Throws: `DATA_LOSS` when the bundle is empty; `INVALID_ARGUMENT` when documents are missing.
    package func finish() throws(Status) {
        guard let metadata else { throw Self.damaged("The bundle is empty: it has no metadata.") }
        if let open {
            throw .invalidArgument("The bundle ends with the metadata of document \(open.name), which does not follow.")
        }
        if documentCount != metadata.totalDocuments {
            throw .invalidArgument(
                "The bundle has \(documentCount) documents, but its metadata promises \(metadata.totalDocuments).")
        }
    }

    // MARK: Metadata

    private static func metadata(_ message: BundleMetadataMessage) throws(Status) -> BundleMetadata {
        if message.id.isEmpty { throw damaged("The bundle's metadata has no id.") }
        if message.version == 0 { throw damaged("The bundle's metadata has no version.") }
        if message.version != UInt32(BundleMetadata.currentVersion) {
            throw .invalidArgument(
                "The bundle has version \(message.version); only version \(BundleMetadata.currentVersion) is known.")
        }
        return BundleMetadata(
            id: message.id, createTime: try time(message.createTime, "createTime", of: "The bundle's metadata"),
            version: Int(message.version), totalDocuments: Int(message.totalDocuments),
            totalBytes: Int64(clamping: message.totalBytes))
    }

    // MARK: Documents

    private mutating func documentMetadata(
        _ message: BundledDocumentMetadataMessage
    ) throws(Status) -> BundleDocument? {
        let name = try documentName(message.name)
        let readTime = try Self.time(message.readTime, "readTime", of: "The metadata of document \(message.name)")
        if message.exists {
            open = message
            return nil
        }
        open = nil
        return BundleDocument(
            name: name, readTime: readTime, queries: message.queries, contents: nil, isRepeated: note(message.name))
    }

    private mutating func document(_ message: DocumentMessage) throws(Status) -> BundleDocument {
        guard let open, UTF8Order.equal(open.name, message.name) else {
            throw .invalidArgument("The bundle's document \(message.name) does not follow its own metadata.")
        }
        let name = try documentName(message.name)
        let label = "Document \(message.name)"
        let contents = BundleDocument.Contents(
            fields: message.fields,
            createTime: try message.createTime.map { time throws(Status) in
                try Self.time(time, "createTime", of: label)
            },
            updateTime: try Self.time(message.updateTime, "updateTime", of: label))
        try checkReferences(in: message.fields)
        let readTime = try Self.time(open.readTime, "readTime", of: label)
        self.open = nil
        return BundleDocument(
            name: name, readTime: readTime, queries: open.queries, contents: contents, isRepeated: note(message.name))
    }

    /// Counts a document; true when it was counted before.
    private mutating func note(_ name: String) -> Bool { !documents.insert(Array(name.utf8)).inserted }

    // MARK: Queries

    private mutating func namedQuery(_ message: NamedQueryMessage) throws(Status) -> BundleQuery {
        if message.name.isEmpty { throw Self.damaged("A named query of the bundle has no name.") }
        let label = "The named query \"\(message.name)\""
        let readTime = try Self.time(message.readTime, "readTime", of: label)
        guard let bundled = message.bundledQuery, let structured = bundled.structuredQuery else {
            throw Self.damaged("\(label) has no query.")
        }
        let limitType = try Self.limitType(bundled.limitType, of: label)
        do throws(Status) {
            let parent = try name(bundled.parent) { string throws(Status) in try ResourceName(parent: string) }
            let query = try BundleQueryCheck.query(structured, parent: parent)
            try checkReferences(in: structured)
            return BundleQuery(
                name: message.name, query: query, limitType: query.limit == nil ? .first : limitType,
                readTime: readTime)
        } catch {
            throw Self.damaged("\(label) cannot be used: \(error.message)")
        }
    }

    private static func limitType(
        _ type: BundledQueryMessage.LimitType, of label: String
    ) throws(Status) -> BundleQuery.LimitType {
        switch type {
        case .first: .first
        case .last: .last
        default: throw damaged("\(label) has the unknown limit type \(type.rawValue).")
        }
    }

    // MARK: Names and times

    private mutating func documentName(_ string: String) throws(Status) -> ResourceName {
        try name(string) { string throws(Status) in try ResourceName(document: string) }
    }

    private mutating func name(
        _ string: String, _ parse: (String) throws(Status) -> ResourceName
    ) throws(Status) -> ResourceName {
        let name: ResourceName
        do throws(Status) { name = try parse(string) } catch { throw Self.damaged(error.message) }
        guard let database else {
            database = name.database
            return name
        }
        if name.database != database {
            throw Self.damaged("The bundle names \(string), which is not in \(database).")
        }
        return name
    }

    private static func time(
        _ message: TimestampMessage?, _ member: String, of label: String
    ) throws(Status) -> Timestamp {
        guard let message else { throw damaged("\(label) has no \(member).") }
        do throws(Status) { return try message.timestamp() } catch {
            throw damaged("\(label) has a \(member) out of range.")
        }
    }

    private static func damaged(_ message: String) -> Status { Status(.dataLoss, message) }
}

// MARK: References

/// References in a bundle must name documents of its database.
extension BundleCheck {
    private mutating func checkReferences(in map: MapValue) throws(Status) {
        for field in map.fields { try checkReferences(in: field.value) }
    }

    private mutating func checkReferences(in value: Value) throws(Status) {
        switch value {
        case .reference(let string):
            _ = try name(string) { string throws(Status) in try ResourceName(reference: string) }
        case .array(let elements): for element in elements { try checkReferences(in: element) }
        case .map(let map): try checkReferences(in: map)
        default: break
        }
    }

    private mutating func checkReferences(in query: StructuredQueryMessage) throws(Status) {
        for value in query.startAt?.values ?? [] { try checkReferences(in: value) }
        for value in query.endAt?.values ?? [] { try checkReferences(in: value) }
        if let filter = query.where { try checkReferences(in: filter) }
    }

    private mutating func checkReferences(in filter: StructuredQueryMessage.Filter) throws(Status) {
        for member in filter.compositeFilter?.filters ?? [] { try checkReferences(in: member) }
        if let value = filter.fieldFilter?.value { try checkReferences(in: value) }
    }
}
