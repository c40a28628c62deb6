import HearthHost
import HearthModel
import HearthEngine
import HearthDocuments
import HearthWire

/// ListDocuments and ListCollectionIds.
extension FirestoreService {
    func listDocuments(_ request: ListDocumentsRequest, _ call: any ServiceCall) {
        answer(call) { () throws(Status) in
            let parent = try ResourceName(parent: request.parent)
            if !request.collectionId.isEmpty { try ResourceName.validate(collectionID: request.collectionId) }
            if request.pageSize < 0 { throw .invalidArgument("Page size must be nonnegative.") }
            let orders = request.orderBy.isEmpty ? [] : try OrderByString.parse(request.orderBy)
            if request.showMissing, !orders.isEmpty {
                throw .invalidArgument("cannot specify an order when show_missing is true")
            }
            if request.showMissing, request.collectionId.isEmpty {
                throw .invalidArgument("collection id must be set when show_missing is true")
            }
            let projection = try request.mask.map { mask throws(Status) in try mask.projection() }
            let listing = DocumentListing(
                parent: parent, collectionID: request.collectionId, orders: orders, showMissing: request.showMissing,
                projection: projection,
                pageSize: request.pageSize == 0
                    ? Limits.listPageSizeDefault : min(Int(request.pageSize), Limits.listPageSizeMax))
            let token = try PageToken(request.pageToken, fingerprint: listing.fingerprint)
            var consistency = try Self.consistency(transaction: request.transaction, readTime: request.readTime)
            // Later pages show the state of the first page, except to clients that may not read the past.
            if case .strong = consistency, let token, !access.isJudged(call.identity, parent.database) {
                consistency = .readTime(token.readTime)
            }
            let query = try listing.query()
            guard
                let database = try self.database(
                    parent.database, for: call, again: { self.listDocuments(request, call) })
            else { return }
            let judge: ReadJudge = { reader throws(Status) in
                var asked = query.query
                asked.limit = listing.pageSize
                try self.access.list(asked, call.identity, reader)
            }
            try read(call, database, consistency, [.query(query)], judge: judge) { grant throws(Status) in
                let isHeavy = request.showMissing || !orders.isEmpty || grant.view.isPast
                let memory = self.memory.sorting.reservation(for: call.requester)
                try self.run(call, database, isHeavy ? .unknown : .answer, grant) { view, pace throws(Status) in
                    let meter = WorkMeter(memory: memory) { () throws(Status) in try call.cancellation.check() }
                    pace.set(meter)
                    return try listing.page(
                        after: token, query: query, view: view, meter, requireIndexes: self.options.requireIndexes,
                        format: call.format)
                }
            }
        }
    }

    func listCollectionIds(_ request: ListCollectionIdsRequest, _ call: any ServiceCall) {
        answer(call) { () throws(Status) in
            let parent = try ResourceName(parent: request.parent)
            try access.requireAdministrator(call.identity, of: .database(parent.database), .reads)
            if request.pageSize < 0 { throw .invalidArgument("page_size must be greater than or equal to zero.") }
            let most =
                request.pageSize == 0
                ? Limits.collectionIdsPageSizeMax : min(Int(request.pageSize), Limits.collectionIdsPageSizeMax)
            let token = try PageToken(request.pageToken, fingerprint: PageToken.fingerprint(["ids", parent.string]))
            var consistency = try Self.consistency(readTime: request.readTime)
            if case .strong = consistency, let token { consistency = .readTime(token.readTime) }
            guard
                let database = try self.database(
                    parent.database, for: call, again: { self.listCollectionIds(request, call) })
            else { return }
            try read(call, database, consistency, []) {
                grant throws(Status) in
                try self.run(call, database, grant.view.isPast ? .large : .answer, grant) { view, _ throws(Status) in
                    var ids = try Listing.collectionIDs(
                        below: parent.path, after: token.map { String(decoding: $0.position, as: UTF8.self) },
                        limit: most + 1, view: view)
                    var next = ""
                    if ids.count > most {
                        ids.removeLast()
                        next = PageToken(readTime: view.readTime, position: Array(ids.last!.utf8))
                            .string(fingerprint: PageToken.fingerprint(["ids", parent.string]))
                    }
                    return call.format.encode(ListCollectionIdsResponse(collectionIds: ids, nextPageToken: next))
                }
            }
        }
    }

    /// Computes the single response of a unary read: here, or on the worker pool when it costs more than its size.
    /// - Parameter body: called again when it fails with `WorkMeter.isHeavier`.
    /// - Throws: RESOURCE_EXHAUSTED when the call would have to wait and its account has too much that waits.
    func run(
        _ call: any ServiceCall, _ database: Database, _ cost: ReadCost, _ grant: Database.ViewGrant,
        _ body: @escaping @Sendable (ReadView, ReadPace) throws(Status) -> [UInt8]
    ) throws(Status) {
        if cost == .answer {
            return answer(call) { () throws(Status) in call.respond(try body(grant.view, ReadPace())) }
        }
        try call.postpone()
        let readTime = grant.view.readTime
        let answered: @Sendable (Result<[UInt8], Status>) -> Void = { result in
            call.onLoop {
                switch result {
                case .success(let message): call.respond(message)
                case .failure(let status): call.finish(status)
                }
            }
        }
        // While the request waits, it holds the time and not the view, because a view keeps a snapshot open.
        let readLong: @Sendable () -> Void = { [longReads, pool] in
            longReads.whenFree(for: call.requester, cancellation: call.cancellation) { read in
                let refused: @Sendable (Status) -> Void = { answered(.failure($0)) }
                switch read {
                case .failure(let status): refused(status)
                case .success(let read):
                    pool.runInSlices(.long, for: call.requester, cancellation: call.cancellation, refused: refused) {
                        slice in
                        answered(
                            Result { () throws(Status) in
                                try body(try database.pastView(at: readTime, under: read), ReadPace(slice: slice))
                            })
                    }
                }
            }
        }
        if cost == .large { return readLong() }
        pool.run(
            .brief, for: call.requester, cancellation: call.cancellation, refused: { answered(.failure($0)) }
        ) {
            let result = Result { () throws(Status) in
                try body(try database.pastView(at: readTime), ReadPace(isBrief: true))
            }
            if case .failure(WorkMeter.isHeavier) = result { readLong() } else { answered(result) }
        }
    }
}

/// A ListDocuments request, independent of the page.
private struct DocumentListing: Sendable {
    var parent: ResourceName
    var collectionID: String
    var orders: [Query.Order]
    var showMissing: Bool
    var projection: Projection?
    var pageSize: Int

    /// A token of one listing is not valid for another.
    var fingerprint: UInt64 {
        let order = orders.map { "\($0.field.string) \($0.descending)" }.joined(separator: ",")
        return PageToken.fingerprint([parent.string, collectionID, order, showMissing ? "missing" : ""])
    }

    func query() throws(Status) -> NormalizedQuery {
        let scope: Query.Scope = collectionID.isEmpty ? .anyCollection : .collection(collectionID)
        return try NormalizedQuery(Query(parent: parent, scope: scope, orders: orders, limit: pageSize + 1))
    }

    /// Reading a document costs about as much as responding with this part of it.
    private static let readBytesPerByte = 16

    /// - Returns: fewer documents than the page size when they are large.
    func page(
        after token: PageToken?, query: NormalizedQuery, view: ReadView, _ meter: WorkMeter, requireIndexes: Bool,
        format: MessageFormat
    ) throws(Status) -> [UInt8] {
        var names = DocumentNames(parent.database)
        var documents: [EncodedDocument] = []
        var bytes = 0
        var last: [UInt8] = []
        var hasMore = false
        func isFull() -> Bool { documents.count == pageSize || bytes >= Limits.listPageBytesMax }
        func append(_ document: StoredDocument, _ name: String) throws(Status) {
            let encoded = try FirestoreService.encoded(document, name: name, projection)
            bytes += encoded.fields.count + document.fields.count / Self.readBytesPerByte
            documents.append(encoded)
        }
        if showMissing {
            let items = try Listing.items(
                of: parent.path.appending(collectionID), after: token?.position, limit: pageSize + 1,
                bytesMax: Limits.listPageBytesMax * (projection == nil ? 1 : Self.readBytesPerByte), view: view)
            for item in items {
                if isFull() {
                    hasMore = true
                    break
                }
                let name = try names.name(key: item.key)
                if let document = item.document {
                    try append(document, name)
                } else {
                    documents.append(EncodedDocument(name: name))
                }
                last = item.key
            }
        } else {
            let rest = token.map { query.continued(after: $0.position, remaining: pageSize + 1, offset: 0) } ?? query
            let execution = try QueryExecution(rest, view: view, meter: meter, requireIndexes: requireIndexes)
            while let result = try execution.next() {
                if isFull() {
                    hasMore = true
                    break
                }
                try append(result.document, try names.name(key: result.key))
                last = try query.position(of: result)
            }
        }
        let next = hasMore ? PageToken(readTime: view.readTime, position: last).string(fingerprint: fingerprint) : ""
        return try encode(documents, next, format)
    }

    private func encode(
        _ documents: [EncodedDocument], _ nextPageToken: String, _ format: MessageFormat
    ) throws(Status) -> [UInt8] {
        switch format {
        case .protobuf:
            var writer = ProtobufWriter()
            writer.listDocumentsResponse(documents, nextPageToken: nextPageToken)
            return writer.bytes
        case .json:
            var writer = JSONWriter()
            try writer.listDocumentsResponse(documents, nextPageToken: nextPageToken)
            return writer.bytes
        }
    }
}
