internal import HearthBundle
internal import HearthModel
internal import HearthSync
internal import HearthWire

/// What a public `BundleBuilder` holds: documents and queries in the bundle's form.
struct BundleContent {
    /// A document in the form of a bundle.
    private enum Entry {
        case found(EncodedDocument, TimestampMessage)
        case missing(name: String, TimestampMessage)
    }

    let id: String
    private let database: DatabaseName
    private var builder: HearthBundle.BundleBuilder<BundleMemorySpool>
    /// A snapshot was added in part: every later call fails with the reason.
    private var failure: Status?

    init(id: String, database: DatabaseName) throws(Status) {
        self.id = id
        self.database = database
        builder = try HearthBundle.BundleBuilder(id: id)
    }

    mutating func add(_ snapshot: DocumentSnapshot) throws(Status) {
        try requireValid()
        let entry = try entry(snapshot)
        try add([entry], query: nil)
    }

    mutating func add(_ name: String, _ snapshot: QuerySnapshot) throws(Status) {
        try requireValid()
        try requireOwn(snapshot.query.firestore, snapshot.query.model.path.string)
        if snapshot.metadata.isFromCache {
            throw .failedPrecondition(
                "The result for the query \"\(name)\" is from the cache and may be incomplete: read it with the source "
                    + ".server.")
        }
        var entries: [Entry] = []
        for document in snapshot.documents { entries.append(try entry(document)) }
        let serializer = TargetSerializer(database: database)
        // A limit to the last results is reversed only for servers.
        var query = snapshot.query.model
        let limitType: BundleQuery.LimitType = query.limitType == .last ? .last : .first
        query.limitType = .first
        guard let message = serializer.message(query.target).query, let structured = message.structuredQuery else {
            throw .internalError("The query of \"\(name)\" has no structured form.")
        }
        try builder.add(
            query: name, parent: try ResourceName(parent: message.parent), structured, limitType: limitType,
            readTime: TimestampMessage(snapshot.view.readTime.timestamp))
        try add(entries, query: name)
    }

    private mutating func add(_ entries: [Entry], query: String?) throws(Status) {
        do throws(Status) {
            for entry in entries {
                switch entry {
                case .found(let document, let readTime): try builder.add(document, readTime: readTime, query: query)
                case .missing(let name, let readTime): try builder.add(missing: name, readTime: readTime, query: query)
                }
            }
        } catch {
            failure = error
            throw error
        }
    }

    private func entry(_ snapshot: DocumentSnapshot) throws(Status) -> Entry {
        try requireOwn(snapshot.firestore, snapshot.key.string)
        let name = ResourceName(database: database, path: snapshot.key).string
        guard let document = snapshot.document else {
            guard snapshot.readTime > .none else {
                throw .failedPrecondition(
                    "The document \(snapshot.key.string) is missing in the cache: read it with the source .server.")
            }
            return .missing(name: name, TimestampMessage(snapshot.readTime))
        }
        // A view keeps the document of an acknowledged write when the server confirms the same fields.
        let isConfirmed = document.state == .synced || document.hasCommittedMutations && !snapshot.metadata.isFromCache
        guard isConfirmed, !snapshot.metadata.hasPendingWrites, document.version > .none else {
            throw .failedPrecondition(
                "The document \(snapshot.key.string) has local writes that the server has not confirmed: call "
                    + "waitForPendingWrites() and read it again.")
        }
        let encoded = EncodedDocument(
            name: name, fields: FieldsCodec.encode(document.fields),
            createTime: document.createTime > .none ? document.createTime : nil, updateTime: document.version)
        let readTime = max(snapshot.readTime, document.readTime, document.version)
        return .found(encoded, TimestampMessage(readTime))
    }

    private func requireOwn(_ firestore: Firestore, _ path: String) throws(Status) {
        if firestore.databaseName != database {
            throw .invalidArgument("\(path) is in another database than the bundle: \(firestore.databaseName).")
        }
    }

    private func requireValid() throws(Status) { if let failure { throw failure } }

    mutating func build() throws(Status) -> [UInt8] {
        try requireValid()
        return try builder.build()
    }
}
