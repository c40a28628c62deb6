import HearthModel

/// Client-side indexes: their definitions and their backfill.
extension LocalStore {
    /// The maximal number of documents in one run.
    static let backfillCountMax = 50

    /// Deletes the indexes that are not in the list, and adds those that are new.
    func configure(_ wanted: [FieldIndex]) throws(Status) {
        try persistence.transaction("Configure indexes") { () throws(Status) in
            let present = try indexManager.indexes
            func isSame(_ left: FieldIndex, _ right: FieldIndex) -> Bool {
                UTF8Order.equal(left.collectionGroup, right.collectionGroup) && left.segments == right.segments
            }
            for index in present where !wanted.contains(where: { isSame($0, index) }) {
                try indexManager.delete(index)
            }
            var added: [FieldIndex] = []
            for index in wanted
            where !present.contains(where: { isSame($0, index) }) && !added.contains(where: { isSame($0, index) }) {
                try indexManager.add(index)
                added.append(index)
            }
        }
    }

    func deleteAllIndexes() throws(Status) {
        try persistence.transaction("Delete all indexes") { () throws(Status) in try indexManager.deleteAll() }
    }

    func setAutomaticIndexing(_ isEnabled: Bool) { queryEngine.isAutomaticIndexingEnabled = isEnabled }

    /// Writes entries for some documents of the groups that have waited longest. Returns the number of documents.
    @discardableResult
    func backfillIndexes() throws(Status) -> Int {
        try persistence.transaction("Backfill indexes") { () throws(Status) in
            var seen: Set<String> = []
            var count = 0
            while count < Self.backfillCountMax, let group = try indexManager.nextGroupToUpdate(),
                seen.insert(group).inserted
            {
                count += try backfill(group, countMax: Self.backfillCountMax - count)
            }
            return count
        }
    }

    private func backfill(_ group: String, countMax: Int) throws(Status) -> Int {
        var offset = try indexManager.lowestOffset(ofGroup: group)
        let (batchID, documents) = try view.nextDocuments(ofGroup: group, after: offset, count: countMax)
        try indexManager.updateEntries(documents)
        for document in documents.values where offset.isBefore(document) {
            offset.readTime = document.readTime
            offset.key = document.key
        }
        offset.largestBatchID = max(offset.largestBatchID, batchID)
        try indexManager.updateGroup(group, offset: offset)
        return documents.count
    }
}
