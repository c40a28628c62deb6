import HearthModel

/// The indexes of collections with one id, looked up once for a document and then asked for each of its fields.
struct CollectionIndexes: Sendable {
    /// Those whose entries are maintained.
    fileprivate(set) var definitions: [IndexDefinition] = []
    fileprivate(set) var overrides: [FieldOverride] = []
    /// The overrides before each of the changes that are under way, oldest first.
    fileprivate(set) var earlier: [[FieldOverride]] = []

    /// Whether fields have other indexes than the automatic ones: the common answer no makes writes cheap.
    var hasOverrides: Bool { !overrides.isEmpty || !earlier.isEmpty }

    /// Whether an override may govern a top-level field.
    /// - Parameter name: its UTF-8 bytes.
    func mayOverride(_ name: ArraySlice<UInt8>) -> Bool {
        func concerns(_ override: FieldOverride) -> Bool {
            guard let first = override.path?.segments.first else { return true }
            return first.utf8.elementsEqual(name)
        }
        return overrides.contains(where: concerns) || earlier.contains { $0.contains(where: concerns) }
    }

    /// Whether the automatic order index of a field exists: an override keeps it when it keeps either direction.
    func hasOrderIndex(_ path: [String], _ extent: IndexCatalog.Extent) -> Bool {
        hasIndex(path, extent) { $0 == .ascending || $0 == .descending }
    }

    func hasContainsIndex(_ path: [String], _ extent: IndexCatalog.Extent) -> Bool {
        hasIndex(path, extent) { $0 == .contains }
    }

    /// Whether an index of collection scope of a kind exists.
    @inline(__always)
    func hasIndex(
        _ path: [String], _ extent: IndexCatalog.Extent, _ isKind: (IndexField.Kind) -> Bool
    ) -> Bool {
        func isKept(_ overrides: [FieldOverride]) -> Bool {
            guard let override = Self.override(for: path, among: overrides) else { return true }
            return override.indexes.contains { $0.scope == .collection && isKind($0.kind) }
        }
        let present = isKept(overrides)
        if earlier.isEmpty { return present }
        return switch extent {
        case .present: present
        case .possible: present || earlier.contains(where: isKept)
        case .certain: present && earlier.allSatisfy(isKept)
        }
    }

    /// The override that governs a field: its own, that of the nearest path above it, or that of the whole collection.
    static func override(for path: [String], among overrides: [FieldOverride]) -> FieldOverride? {
        var nearest: Int?
        var length = -1
        for index in overrides.indices {
            let segments = overrides[index].path?.segments ?? []
            guard segments.count > length, segments.count <= path.count else { continue }
            var isAbove = true
            for depth in segments.indices where isAbove { isAbove = UTF8Order.equal(segments[depth], path[depth]) }
            if isAbove {
                nearest = index
                length = segments.count
            }
        }
        return nearest.map { overrides[$0] }
    }
}

extension CollectionIndexes {
    /// Those of each collection id of a catalog that has any but the automatic indexes.
    static func all(
        _ definitions: [IndexDefinition], _ overrides: [FieldOverride], _ changes: [IndexCatalog.Change]
    ) -> [[UInt8]: CollectionIndexes] {
        // By the bytes of collection ids: to Swift, two spellings of "é" are one string.
        var all: [[UInt8]: CollectionIndexes] = [:]
        for definition in definitions where definition.hasEntries {
            all[Array(definition.collectionID.utf8), default: CollectionIndexes()].definitions.append(definition)
        }
        for override in overrides {
            all[Array(override.collectionID.utf8), default: CollectionIndexes()].overrides.append(override)
        }
        for change in changes {
            let id = Array(change.collectionID.utf8)
            if all[id]?.earlier.isEmpty ?? true { all[id, default: CollectionIndexes()].earlier = change.earlier }
        }
        return all
    }
}
