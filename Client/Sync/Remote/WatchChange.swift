import HearthModel
import HearthWire

/// A message of the watch stream.
enum WatchChange: Sendable {
    struct Document: Sendable {
        var updatedTargetIDs: [Int32]
        var removedTargetIDs: [Int32]
        var key: ResourcePath
        /// Found or missing; nil when the message only removes the document from targets.
        var document: ClientDocument?
    }

    struct Target: Sendable {
        package enum Kind: Sendable { case noChange, added, removed, current, reset }
        var kind: Kind
        /// Empty: all active targets.
        var targetIDs: [Int32]
        var resumeToken: [UInt8] = []
        /// The reason for which the server removed the target.
        var cause: Status?
        /// The version of a global snapshot; none otherwise.
        var snapshotVersion: Timestamp = .none
    }

    struct Filter: Sendable {
        var targetID: Int32
        var count: Int
        var unchangedNames: BloomFilterMessage?
    }

    case document(Document)
    case target(Target)
    case filter(Filter)
}

extension WatchChange {
    /// nil for a message of an unknown kind.
    /// - Throws: `INVALID_ARGUMENT` or `INTERNAL` when the message is invalid.
    init?(_ response: ListenResponse, database: DatabaseName) throws(Status) {
        if let change = response.targetChange {
            guard let target = try Self.target(change) else { return nil }
            self = .target(target)
        } else if let change = response.documentChange {
            guard let message = change.document else {
                throw .internalError("A document change without a document.")
            }
            let key = try ResourceName(document: message.name, in: database).path
            let document = try ClientDocument(message, key: key)
            self = .document(
                Document(
                    updatedTargetIDs: change.targetIds, removedTargetIDs: change.removedTargetIds, key: key,
                    document: document))
        } else if let delete = response.documentDelete {
            let key = try ResourceName(document: delete.document, in: database).path
            let version = try delete.readTime?.timestamp() ?? .none
            self = .document(
                Document(
                    updatedTargetIDs: [], removedTargetIDs: delete.removedTargetIds, key: key,
                    document: ClientDocument(key: key, kind: .missing, version: version)))
        } else if let remove = response.documentRemove {
            let key = try ResourceName(document: remove.document, in: database).path
            self = .document(
                Document(updatedTargetIDs: [], removedTargetIDs: remove.removedTargetIds, key: key, document: nil))
        } else if let filter = response.filter {
            self = .filter(
                Filter(targetID: filter.targetId, count: Int(filter.count), unchangedNames: filter.unchangedNames))
        } else {
            return nil
        }
    }

    private static func target(_ change: TargetChangeMessage) throws(Status) -> Target? {
        let kind: Target.Kind
        switch change.targetChangeType {
        case .noChange: kind = .noChange
        case .add: kind = .added
        case .remove: kind = .removed
        case .current: kind = .current
        case .reset: kind = .reset
        default: return nil
        }
        var target = Target(kind: kind, targetIDs: change.targetIds, resumeToken: change.resumeToken)
        if let cause = change.cause {
            target.cause = Status(Status.Code(rawValue: Int(cause.code)) ?? .unknown, cause.message)
        }
        // A read time together with target ids is not the time of a global snapshot.
        if change.targetIds.isEmpty, let time = change.readTime { target.snapshotVersion = try time.timestamp() }
        return target
    }
}

extension ClientDocument {
    /// A document that the server found.
    /// - Throws: `INVALID_ARGUMENT` when a time is out of range.
    init(_ message: DocumentMessage, key: ResourcePath) throws(Status) {
        self.init(
            key: key, kind: .found, version: try message.updateTime?.timestamp() ?? .none,
            createTime: try message.createTime?.timestamp() ?? .none, fields: message.fields)
    }
}
