import HearthFirestoreServer
import HearthHost
import HearthModel
import HearthDocuments
import HearthWire

/// Entry points for fuzzing REST requests, up to the model. A violated invariant traps.
package enum ServiceFuzzing {
    /// `METHOD path?query`, a line feed, a body.
    package static func fuzzREST(_ bytes: [UInt8]) {
        let lineEnd = bytes.firstIndex(of: UInt8(ascii: "\n")) ?? bytes.endIndex
        let body = Array(bytes[min(lineEnd + 1, bytes.endIndex)...])
        guard let line = String(validating: bytes[..<lineEnd], as: UTF8.self) else { return }
        let words = line.split(separator: " ", maxSplits: 1).map(String.init)
        guard words.count == 2 else { return }
        let target = words[1].split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
        ignoringRefusal { () throws(Status) in
            guard let route = try RESTRouter.route(method: words[0], path: target[0]) else { return }
            let parameters = URLCoding.parameters(target.count > 1 ? target[1] : nil) ?? []
            try fuzz(route, parameters.filter { !RESTRouter.isSystemParameter($0.name) }, body)
        }
    }

    /// Whether the input's first line is a request that has a route.
    package static func isRoute(_ bytes: [UInt8]) -> Bool {
        let words = String(decoding: bytes.prefix { $0 != UInt8(ascii: "\n") }, as: UTF8.self).split(separator: " ")
        guard words.count == 2, let path = words[1].split(separator: "?").first else { return false }
        do throws(Status) {
            return try RESTRouter.route(method: String(words[0]), path: String(path)) != nil
        } catch {
            return false
        }
    }

    private static func fuzz(
        _ route: RESTRouter.Route, _ parameters: [(name: String, value: String)], _ body: [UInt8]
    ) throws(Status) {
        func set(in request: inout some WireMessage) throws(Status) {
            for (name, value) in parameters { try request.set(parameter: name, value) }
        }
        switch route {
        case .getDocument(let name), .deleteDocument(let name):
            var request = GetDocumentRequest()
            request.name = name
            try set(in: &request)
            let parsed = try ResourceName(document: name)
            precondition(parsed.string == name, "a name isn't what it was read from")
            _ = try request.mask.map { mask throws(Status) in try mask.projection() }
        case .listDocuments(let parent, let collectionID), .createDocument(let parent, let collectionID):
            var request = ListDocumentsRequest()
            try set(in: &request)
            _ = try ResourceName(parent: parent)
            try ResourceName.validate(collectionID: collectionID)
            _ = try OrderByString.parse(request.orderBy)
        case .updateDocument(let name):
            var request = UpdateDocumentRequest()
            try set(in: &request)
            var document = try DocumentMessage(json: body, at: "document")
            document.name = name
            var message = WriteMessage(update: document)
            message.updateMask = request.updateMask
            message.currentDocument = request.currentDocument
            try fuzz(message, in: try ResourceName(document: name).database)
        case .custom(let method, let database, let parent): try fuzz(method, database, parent, body)
        }
    }

    private static func fuzz(
        _ method: RESTRouter.CustomMethod, _ database: String, _ parent: String, _ body: [UInt8]
    ) throws(Status) {
        switch method {
        case .commit, .batchWrite:
            let request = try CommitRequest(json: body)
            for message in request.writes { try fuzz(message, in: try DatabaseName(parsing: database)) }
        case .runQuery:
            let request = try RunQueryRequest(json: body)
            let query = try request.structuredQuery?.query(parent: try ResourceName(parent: parent))
            if let query { _ = try NormalizedQuery(query) }
        case .runAggregationQuery:
            let request = try RunAggregationQueryRequest(json: body)
            if let message = request.structuredAggregationQuery {
                let query = try message.query(parent: try ResourceName(parent: parent))
                _ = try AggregationExecution.normalize(query, try message.modelAggregations())
            }
        case .partitionQuery:
            let request = try PartitionQueryRequest(json: body)
            _ = try request.structuredQuery?.query(parent: try ResourceName(parent: parent))
        case .batchGet: _ = try BatchGetDocumentsRequest(json: body)
        case .beginTransaction: _ = try BeginTransactionRequest(json: body)
        case .listCollectionIds: _ = try ListCollectionIdsRequest(json: body)
        case .rollback: _ = try RollbackRequest(json: body)
        case .executePipeline, .write, .listen: break
        }
    }

    /// A write has the same meaning as JSON and as protobuf.
    private static func fuzz(_ message: WriteMessage, in database: DatabaseName) throws(Status) {
        let write = try message.write(database: database)
        do throws(Status) {
            let again = try WriteMessage(protobuf: message.protobuf())
            let same = try again.write(database: database)
            precondition(again.protobuf() == message.protobuf(), "a write isn't stable")
            precondition(same.document == write.document, "a write's document isn't stable")
        } catch {
            preconditionFailure("a write that was taken as JSON is refused as protobuf: \(error)")
        }
    }

    private static func ignoringRefusal(_ body: () throws(Status) -> Void) {
        do throws(Status) { try body() } catch { precondition(error.code != .ok) }
    }
}
