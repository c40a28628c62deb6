import HearthBundle
import HearthModel

/// Bundles and named queries in the cache.
extension LocalStore {
    /// Whether this bundle, or a later bundle with the same id, was already loaded.
    func hasNewerBundle(_ metadata: BundleMetadata) throws(Status) -> Bool {
        try persistence.transaction("Look for a bundle") { () throws(Status) in
            guard let known = try persistence.bundles.bundle(metadata.id) else { return false }
            return known.createTime >= metadata.createTime
        }
    }

    /// Stores a bundle's documents under a target of their own, which protects them from garbage collection. Returns
    /// the local view of those that changed.
    func store(
        _ documents: [ClientDocument], ofBundle id: String
    ) throws(Status) -> [ResourcePath: ClientDocument] {
        let umbrella = try allocate(ClientQuery(path: ResourcePath(string: "__bundle__/docs/" + id)).target)
        return try persistence.transaction("Store a bundle's documents") { () throws(Status) in
            var updates: [ResourcePath: ClientDocument] = [:]
            for document in documents { updates[document.key] = document }
            // The documents come first: adding a key that already has a row costs the target less.
            let stored = try store(updates) { $0.version }
            try targets.removeAllKeys(of: umbrella.targetID)
            try targets.addKeys(Set(updates.values.filter(\.isFound).map(\.key)), to: umbrella.targetID)
            return try view.localView(of: stored.changed, existenceChanged: stored.existenceChanged)
        }
    }

    /// - Parameter keys: the query's result according to the bundle.
    func store(_ query: NamedQuery, keys: Set<ResourcePath>) throws(Status) {
        var data = try allocate(query.query.target)
        let isNews = query.readTime > data.snapshotVersion
        if isNews {
            data.snapshotVersion = query.readTime
            data.resumeToken = []
        }
        try persistence.transaction("Store a named query") { () throws(Status) in
            if isNews {
                try targets.update(data)
                try targets.removeAllKeys(of: data.targetID)
                try targets.addKeys(keys, to: data.targetID)
            }
            try persistence.bundles.save(query)
        }
        activeTargets[data.targetID] = data
    }

    func store(_ metadata: BundleMetadata) throws(Status) {
        try persistence.transaction("Store a bundle") { () throws(Status) in
            try persistence.bundles.save(
                BundleRecord(
                    id: metadata.id, createTime: metadata.createTime, version: metadata.version,
                    totalDocuments: metadata.totalDocuments, totalBytes: metadata.totalBytes))
        }
    }

    func namedQuery(_ name: String) throws(Status) -> NamedQuery? {
        try persistence.transaction("Look for a named query") { () throws(Status) in
            try persistence.bundles.namedQuery(name)
        }
    }
}
