import HearthModel

/// Counts and caches the documents that the rules of one request read: each is read and counted once, even when several
/// writes of a batch need it. Source: "Access call limits" of the Firestore documentation.
package final class RulesAccess {
    private struct Key: Hashable {
        var path: ResourcePath
        var isAfter: Bool
    }

    private let perOperation: Int
    private let total: Int
    private var documents: [Key: RulesDocument?] = [:]
    /// The documents that were read, before or after the request's writes: a path counts once.
    private var counted: Set<ResourcePath> = []
    /// The documents that the current operation has read.
    private var operation: Set<ResourcePath> = []

    /// The documents that were read, in order.
    package private(set) var paths: [(path: ResourcePath, isAfter: Bool)] = []

    /// - Parameters:
    ///   - perOperation: documents that one decision may read.
    ///   - total: documents that all decisions may read: 10 for one document or query, 20 for a batch, a transaction or
    ///     a read of several documents.
    package init(perOperation: Int = RulesLimits.accessesPerOperation, total: Int) {
        self.perOperation = perOperation
        self.total = total
    }

    package var count: Int { counted.count }

    /// Begins an operation of the request.
    func begin() {
        if !operation.isEmpty { operation.removeAll() }
    }

    enum Outcome {
        case document(RulesDocument?)
        case isOverLimit
    }

    func document(_ path: ResourcePath, isAfter: Bool, _ reader: any DocumentReader) throws(Status) -> Outcome {
        let key = Key(path: path, isAfter: isAfter)
        if operation.count >= perOperation, !operation.contains(path) { return .isOverLimit }
        if let known = documents[key] {
            operation.insert(path)
            return .document(known)
        }
        if counted.count >= total, !counted.contains(path) { return .isOverLimit }
        let document = try reader.document(path, isAfter: isAfter)
        operation.insert(path)
        counted.insert(path)
        documents[key] = .some(document)
        paths.append((path, isAfter))
        return .document(document)
    }
}
