import HearthModel
import HearthWire

/// The difference between the index entries of two states of a document.
struct IndexDifference {
    private(set) var deleted: [[UInt8]] = []
    private(set) var inserted: [IndexEntries.Entry] = []
    var sizeBytes: Int { deleted.reduce(0) { $0 + $1.count } + inserted.reduce(0) { $0 + $1.key.count } }

    /// - Parameters:
    ///   - before: fields in wire form, nil when the document did not exist.
    ///   - after: the new fields, nil when it is deleted, in both forms.
    /// - Throws: INVALID_ARGUMENT when the new state has too many entries, or one that is too large.
    init(
        key: [UInt8], path: ResourcePath, before: [UInt8]?, after: (tree: MapValue, encoded: [UInt8])?,
        catalog: IndexCatalog
    ) throws(Status) {
        let indexes = catalog.indexes(of: path.collectionID)
        // While overrides change, the stored state may have more entries than are made now.
        var old = IndexEntries(key: key, path: path, indexes: indexes, extent: .possible)
        var new = IndexEntries(key: key, path: path, indexes: indexes, isBounded: true)
        if let after, new.isOverLimit(after.tree, encodedBytes: after.encoded.count) {
            throw .invalidArgument("too many index entries for entity /\(path.string)")
        }
        if let before, let after {
            let changed = try ChangedFields(before, after)
            if changed.isEmpty { return }
            old.addAutomatic(changed.old)
            new.addAutomatic(changed.new)
            if new.hasDefinitions {
                old.addDefinitions(try FieldsCodec.decode(before), touching: changed)
                new.addDefinitions(after.tree, touching: changed)
            }
        } else if let before {
            old.add(try FieldsCodec.decode(before))
        } else if let after {
            new.add(after.tree)
        }
        try Self.check(new, path: path)
        difference(old.entries, new.entries)
        guard (before == nil) != (after == nil), let groupName = new.groupNameEntry else { return }
        if before == nil {
            inserted.append(IndexEntries.Entry(key: groupName, value: []))
        } else {
            deleted.append(groupName)
        }
    }

    /// An update computes only the entries of changed fields, so the sum is a lower bound for it.
    private static func check(_ new: IndexEntries, path: ResourcePath) throws(Status) {
        if new.sizeBytes > Limits.indexEntriesSizeBytesMax {
            throw .invalidArgument(
                "The index entries of entity /\(path.string) are larger than \(Limits.indexEntriesSizeBytesMax) bytes together."
            )
        }
        if new.entries.contains(where: { $0.key.count > Limits.indexEntrySizeBytesMax }) {
            throw .invalidArgument("Index entry is too large.")
        }
    }

    /// Walks over both in the order of keys, which is also the best order of writes for a store.
    private mutating func difference(_ old: [IndexEntries.Entry], _ new: [IndexEntries.Entry]) {
        let before = Self.inOrder(old)
        let after = Self.inOrder(new)
        deleted.reserveCapacity(before.count + 1)
        inserted.reserveCapacity(after.count + 1)
        var i = 0
        var j = 0
        while i < before.count || j < after.count {
            let order =
                i == before.count ? 1 : j == after.count ? -1 : UTF8Order.compare(before[i].key, after[j].key)
            if order < 0 {
                deleted.append(before[i].key)
                i += 1
            } else if order > 0 {
                inserted.append(after[j])
                j += 1
            } else {
                if before[i].value != after[j].value { inserted.append(after[j]) }
                i += 1
                j += 1
            }
        }
    }

    /// Entries are made in the order of fields, which usually is that of keys.
    private static func inOrder(_ entries: [IndexEntries.Entry]) -> [IndexEntries.Entry] {
        let isOrdered = entries.indices.dropFirst().allSatisfy {
            UTF8Order.compare(entries[$0 - 1].key, entries[$0].key) < 0
        }
        return isOrdered ? entries : entries.sorted { UTF8Order.compare($0.key, $1.key) < 0 }
    }
}
