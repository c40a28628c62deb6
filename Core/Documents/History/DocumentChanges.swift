import HearthEngine
import HearthModel

/// The documents of a query's scope that changed between two versions, each once, in the order of their keys.
package struct DocumentChanges {
    private let view: ReadView
    private let changes: ScopeChanges
    package let keys: [[UInt8]]

    init(_ changes: ScopeChanges, _ view: ReadView) {
        self.changes = changes
        self.view = view
        keys = changes.firstVersions.keys.sorted { UTF8Order.compare($0, $1) < 0 }
    }

    /// A document at the earlier version; nil also when it did not exist.
    package func before(_ key: [UInt8]) throws(Status) -> StoredDocument? {
        guard let version = changes.firstVersions[key] else { return try view.document(key: key) }
        return try Feed.stateBefore(version, key, in: view.snapshot)
    }

    /// The same at the view's version.
    package func after(_ key: [UInt8]) throws(Status) -> StoredDocument? { try view.document(key: key) }
}
