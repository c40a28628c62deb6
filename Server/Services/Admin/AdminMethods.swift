import HearthModel
import HearthWire

/// The methods of the admin services by name, over bytes: what gRPC calls.
extension AdminService {
    typealias BytesAnswer = @Sendable (Result<[UInt8], Status>) -> Void
    /// One method: a request's bytes in, an answer's bytes out.
    typealias Method = @Sendable (_ message: [UInt8], _ answer: @escaping BytesAnswer) throws(Status) -> Void

    private static func method<Request: WireMessage, Response: WireMessage>(
        _ body: @escaping @Sendable (Request, @escaping Answer<Response>) throws(Status) -> Void
    ) -> Method {
        { bytes, answer throws(Status) in
            try body(try Request(protobuf: bytes)) { result in answer(result.map { $0.protobuf() }) }
        }
    }

    /// By gRPC path.
    var methods: [String: Method] {
        databaseMethods.mapValues { inBackground($0) }.merging(otherMethods) { $1 }
    }

    /// The database may have to be opened first.
    private func inBackground(_ method: @escaping Method) -> Method {
        { bytes, answer in inBackground(of: answer) { () throws(Status) in try method(bytes, answer) } }
    }

    private var databaseMethods: [String: Method] {
        let admin = "/google.firestore.admin.v1.FirestoreAdmin/"
        return [
            admin + "CreateIndex": Self.method(createIndex),
            admin + "ListIndexes": Self.method(listIndexes),
            admin + "GetIndex": Self.method(getIndex),
            admin + "DeleteIndex": Self.method(deleteIndex),
            admin + "GetField": Self.method(getField),
            admin + "UpdateField": Self.method(updateField),
            admin + "ListFields": Self.method(listFields),
            admin + "CreateDatabase": Self.method(createDatabase),
            admin + "GetDatabase": Self.method(getDatabase),
            admin + "ListDatabases": Self.method(listDatabases),
            admin + "UpdateDatabase": Self.method(updateDatabase),
            admin + "DeleteDatabase": Self.method(deleteDatabase),
            admin + "BulkDeleteDocuments": Self.method(bulkDeleteDocuments),
        ]
    }

    private var otherMethods: [String: Method] {
        let operations = "/google.longrunning.Operations/"
        let locations = "/google.cloud.location.Locations/"
        return [
            operations + "GetOperation": Self.method(getOperation),
            operations + "ListOperations": Self.method(listOperations),
            operations + "DeleteOperation": Self.method(deleteOperation),
            operations + "CancelOperation": Self.method(cancelOperation),
            locations + "ListLocations": Self.method(listLocations),
            locations + "GetLocation": Self.method(getLocation),
        ]
    }
}
