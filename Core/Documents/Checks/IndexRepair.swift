import HearthEngine
import HearthModel
import HearthWire

/// Brings the index entries of a store in line with its documents, in small transactions: adds missing entries,
/// corrects wrong values, removes entries that belong to no document.
///
/// The documents are the source of truth and are not changed. An unreadable document keeps its entries. Nothing else
/// may use the store in the meantime.
package struct IndexRepair {
    package struct Report: Sendable, Equatable {
        package var added = 0
        package var corrected = 0
        package var removed = 0
    }

    /// Records that one transaction examines: enough to share a sync, few enough for memory.
    static let stepDocumentsMax = 500
    static let stepEntriesMax = 5000

    private let store: any Store
    private let catalog: IndexCatalog
    private var report = Report()

    /// - Throws: UNAVAILABLE when the store can't be read or written, DATA_LOSS when it has other damage. Repairs made
    ///   before the error remain.
    package static func run(_ store: any Store) throws(Status) -> Report {
        let snapshot = try store.snapshot()
        defer { snapshot.close() }
        var repair = IndexRepair(store: store, catalog: try CatalogStore.load(from: snapshot))
        snapshot.close()
        try repair.steps { repair, position, transaction throws(Status) in
            try repair.addMissing(after: position, transaction)
        }
        try repair.steps { repair, position, transaction throws(Status) in
            try repair.removeStrays(after: position, transaction)
        }
        return repair.report
    }

    private init(store: any Store, catalog: IndexCatalog) {
        self.store = store
        self.catalog = catalog
    }

    /// Runs steps until one returns no next position.
    private mutating func steps(
        _ step: (inout IndexRepair, [UInt8]?, any StoreTransaction) throws(Status) -> [UInt8]?
    ) throws(Status) {
        var position: [UInt8]?
        repeat {
            var next = self
            position = try store.write { transaction throws(Status) in try step(&next, position, transaction) }
            // Only what was committed counts.
            self = next
        } while position != nil
    }

    /// Keys of a keyspace after a position.
    private static func keys(
        of keyspace: Keyspace, after position: [UInt8]?, limit: Int, in snapshot: any Snapshot
    ) throws(Status) -> [[UInt8]] {
        let range = KeyRange(lower: position.map { $0 + [0] } ?? [], upper: nil)
        let cursor = try snapshot.scan(keyspace, range, reverse: false, values: false)
        defer { cursor.close() }
        var keys: [[UInt8]] = []
        while keys.count < limit, try cursor.next() { keys.append(cursor.key) }
        return keys
    }

    /// The entries that belong to a document; nil when there is no such document, `unreadable` when they cannot be
    /// determined.
    private enum Belonging {
        case nothing
        case entries([IndexEntries.Entry])
        case unreadable
    }

    private func entries(of key: [UInt8], in snapshot: any Snapshot) throws(Status) -> Belonging {
        guard let path = DocumentKey.decode(key), path.isDocument, let stored = try snapshot.get(.documents, key) else {
            return .nothing
        }
        do throws(Status) {
            let fields = try FieldsCodec.decode(StoredDocument(stored: stored).fields)
            return .entries(IndexEntries.all(of: key, path: path, fields, catalog: catalog))
        } catch {
            return .unreadable
        }
    }

    private mutating func addMissing(
        after position: [UInt8]?, _ transaction: any StoreTransaction
    ) throws(Status) -> [UInt8]? {
        let keys = try Self.keys(of: .documents, after: position, limit: Self.stepDocumentsMax, in: transaction)
        for key in keys {
            guard case .entries(let expected) = try entries(of: key, in: transaction) else { continue }
            for entry in expected {
                let found = try transaction.get(.entries, entry.key)
                if found == entry.value { continue }
                if found == nil { report.added += 1 } else { report.corrected += 1 }
                try transaction.put(.entries, entry.key, entry.value)
            }
        }
        return keys.count == Self.stepDocumentsMax ? keys.last : nil
    }

    private mutating func removeStrays(
        after position: [UInt8]?, _ transaction: any StoreTransaction
    ) throws(Status) -> [UInt8]? {
        let keys = try Self.keys(of: .entries, after: position, limit: Self.stepEntriesMax, in: transaction)
        for entry in keys where try isStray(entry, in: transaction) {
            report.removed += 1
            try transaction.delete(.entries, entry)
        }
        return keys.count == Self.stepEntriesMax ? keys.last : nil
    }

    private func isStray(_ entry: [UInt8], in snapshot: any Snapshot) throws(Status) -> Bool {
        guard let key = IndexKey.documentKey(of: entry, catalog: catalog) else { return true }
        switch try entries(of: key, in: snapshot) {
        case .nothing: return true
        case .unreadable: return false
        case .entries(let expected): return !expected.contains { $0.key == entry }
        }
    }
}
