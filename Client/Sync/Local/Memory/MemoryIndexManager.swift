import HearthModel

/// Records the collections' parents, for collection group queries. A memory cache has no indexes.
final class MemoryIndexManager: IndexManager {
    private var parents: [String: Set<ResourcePath>] = [:]

    func addParent(ofCollection path: ResourcePath) {
        guard let id = path.segments.last else { return }
        parents[id, default: []].insert(path.parent)
    }

    func parents(ofCollectionID id: String) -> [ResourcePath] {
        parents[id, default: []].sorted { ResourcePath.compare($0, $1) < 0 }
    }

    func add(_ index: FieldIndex) {}
    func delete(_ index: FieldIndex) {}
    func deleteAll() {}
    var indexes: [FieldIndex] { [] }
    func indexes(ofGroup collectionID: String) -> [FieldIndex] { [] }
    func createIndexes(for target: ClientTarget) {}
    func coverage(of target: ClientTarget) -> IndexCoverage { .none }
    func documents(matching target: ClientTarget) -> [ResourcePath]? { nil }
    func lowestOffset(for target: ClientTarget) -> IndexOffset { .none }
    func lowestOffset(ofGroup collectionID: String) -> IndexOffset { .none }
    func nextGroupToUpdate() -> String? { nil }
    func updateGroup(_ collectionID: String, offset: IndexOffset) {}
    func updateEntries(_ documents: [ResourcePath: ClientDocument]) {}
}
