import HearthBundle
import HearthModel
import HearthEngine
import HearthDocuments
import HearthWire

/// Builds bundles from databases.
enum BundleBuilding {
    /// Reads all documents of a definition in one view and adds them to a builder.
    /// - Parameters:
    ///   - requireIndexes: fail for queries whose index is not defined.
    ///   - check: called regularly; throws to end the work.
    static func collect<Spool: BundleSpool>(
        _ definition: BundleDefinition, from view: ReadView, into builder: inout BundleBuilder<Spool>,
        requireIndexes: Bool = false, check: @escaping () throws(Status) -> Void = {}
    ) throws(Status) {
        let readTime = TimestampMessage(view.readTime)
        for name in definition.documents {
            try check()
            if let document = try view.document(name.path) {
                try builder.add(document.encoded(name: name.string), readTime: readTime)
            } else {
                try builder.add(missing: name.string, readTime: readTime)
            }
        }
        for query in definition.queries {
            try builder.add(
                query: query.name, parent: query.parent, query.message, limitType: query.limitType,
                readTime: readTime)
            let normalized = try NormalizedQuery(try query.executed.query(parent: query.parent))
            let execution = try QueryExecution(
                normalized, view: view, meter: WorkMeter(check: check), requireIndexes: requireIndexes)
            var names = DocumentNames(query.parent.database)
            // The last results arrive in reverse order; their number is limited.
            var reversed: [EncodedDocument] = []
            while let result = try execution.next() {
                try check()
                let document = result.document.encoded(name: try names.name(key: result.key))
                if query.limitType == .last {
                    reversed.append(document)
                } else {
                    try builder.add(document, readTime: readTime, query: query.name)
                }
            }
            for document in reversed.reversed() {
                try builder.add(document, readTime: readTime, query: query.name)
            }
        }
    }
}

/// Builds a bundle from a data folder that no server uses.
extension BundleDefinition {
    /// - Throws: NOT_FOUND when the database does not exist; for queries the same errors as the service.
    package func collect<Spool: BundleSpool>(
        from store: any Store, into builder: inout BundleBuilder<Spool>
    ) throws(Status) {
        let database = try Database(name: database, store: store)
        defer { database.close() }
        // The view must end before the database does.
        try collect(in: database, into: &builder)
    }

    private func collect<Spool: BundleSpool>(
        in database: Database, into builder: inout BundleBuilder<Spool>
    ) throws(Status) {
        try BundleBuilding.collect(self, from: try database.view(), into: &builder)
    }
}
