import HearthModel
import HearthWire

/// Mutations as messages: for the server, and for the cache. Mutations from the cache are not validated: overlays
/// contain pending server timestamps, which no server would accept.
package struct MutationSerializer: Sendable {
    package let database: DatabaseName

    package init(database: DatabaseName) { self.database = database }

    package func message(_ mutation: Mutation) -> WriteMessage {
        let operation: Write.Operation =
            switch mutation.kind {
            case .set(let fields): .update(fields: fields, mask: nil)
            case .patch(let fields, let mask): .update(fields: fields, mask: mask)
            case .delete: .delete
            case .verify: .verify
            }
        return WriteMessage(
            Write(
                document: ResourceName(database: database, path: mutation.key), operation: operation,
                transforms: mutation.transforms, precondition: mutation.precondition))
    }

    /// - Throws: `INVALID_ARGUMENT` for a message that `message` never produces.
    package func mutation(_ message: WriteMessage) throws(Status) -> Mutation {
        let precondition = try message.currentDocument?.precondition() ?? .none
        if let update = message.update {
            var transforms: [FieldTransform] = []
            for transform in message.updateTransforms { transforms.append(try transform.transform()) }
            var kind = Mutation.Kind.set(update.fields)
            if let updateMask = message.updateMask {
                var mask: [FieldPath] = []
                for path in updateMask.fieldPaths { mask.append(try FieldPath(unlimited: path)) }
                kind = .patch(update.fields, mask: mask)
            }
            return Mutation(
                key: try key(update.name), kind: kind, transforms: transforms, precondition: precondition)
        }
        if let name = message.delete { return Mutation(key: try key(name), kind: .delete, precondition: precondition) }
        if let name = message.verify { return Mutation(key: try key(name), kind: .verify, precondition: precondition) }
        throw .invalidArgument("A write without an operation.")
    }

    private func key(_ name: String) throws(Status) -> ResourcePath { try database.path(unlimited: name) }

    /// Checks writes as the server does on arrival. A write that the server would always reject must not enter the
    /// queue.
    /// - Throws: `INVALID_ARGUMENT` with the server's message.
    func check(_ mutations: [Mutation]) throws(Status) {
        let messages = mutations.map { message($0) }
        _ = try WriteMessage.writes(messages, database: database)
        try Self.checkSize(WriteRequest(writes: messages), moreBytes: Self.streamBytesMax)
    }

    /// The size of a token and a batch's label.
    private static let streamBytesMax = 128

    /// Without this check a request that is too large for a connection would be retried again and again.
    /// - Throws: `INVALID_ARGUMENT` with the server's message.
    /// - Parameter moreBytes: bytes that are added when it is sent.
    static func checkSize(_ request: some WireMessage, moreBytes: Int = 0) throws(Status) {
        if request.protobuf().count + moreBytes > Limits.requestSizeBytesMax {
            throw .invalidArgument("Request payload size exceeds the limit: \(Limits.requestSizeBytesMax) bytes.")
        }
    }
}
