import HearthModel
import HearthWire

/// Works out the difference between the index entries of two states of a document.
///
/// Walks over the fields of both in their wire form, in the order of names. A field with the same bytes in both has the
/// same entries. Others are decoded, and the key of a value that is no container, which has one entry, is written to where
/// the store takes it from.
struct IndexComparison {
    private let key: [UInt8]
    private let path: ResourcePath
    private let indexes: CollectionIndexes
    /// The end of the part of the key that is the collection's.
    private let collectionEnd: Int
    private let hasOverrides: Bool
    private var difference = IndexDifference()
    /// The start of the keys of one field.
    private var prefix: [UInt8] = []
    /// The fields that differ; collected for definitions only.
    private var names: [String] = []
    /// Bytes of the new state's entries, and of the largest. An update computes only those of changed fields, so that the
    /// sum is a lower bound.
    private var newBytes = 0
    private var largestBytes = 0

    /// So many changes, of keys that are so much larger than the document's, are made without allocating again.
    private static let usualChanges = 12
    private static let usualKeyBytes = 24

    private init(key: [UInt8], path: ResourcePath, indexes: CollectionIndexes) {
        self.key = key
        self.path = path
        self.indexes = indexes
        collectionEnd = DocumentKey.collectionPrefixEnd(key) ?? key.count
        hasOverrides = indexes.hasOverrides
    }

    /// - Parameters:
    ///   - before: fields in wire form, nil when the document did not exist.
    ///   - after: the new fields, nil when it is deleted, in both forms.
    /// - Throws: INVALID_ARGUMENT when the new state has too many entries, or one that is too large.
    static func difference(
        key: [UInt8], path: ResourcePath, before: [UInt8]?, after: (tree: MapValue, encoded: [UInt8])?,
        catalog: IndexCatalog
    ) throws(Status) -> IndexDifference {
        let indexes = catalog.indexes(of: path.collectionID)
        if let after, indexes.isOverLimit(after.tree, encodedBytes: after.encoded.count) {
            throw .invalidArgument("too many index entries for entity /\(path.string)")
        }
        var comparison = IndexComparison(key: key, path: path, indexes: indexes)
        comparison.difference.reserve(
            changes: usualChanges, bytes: usualChanges * (usualKeyBytes + key.count))
        try comparison.compare(before ?? [], after?.encoded ?? [], after?.tree ?? MapValue())
        try comparison.check()
        if !comparison.names.isEmpty {
            try comparison.compareDefinitions(before, after?.tree)
            try comparison.check()
        }
        if (before == nil) != (after == nil), let groupName = IndexEntries.groupNameEntry(of: key, path) {
            comparison.difference.append(before == nil ? .inserted : .deleted, groupName)
        }
        return comparison.difference
    }

    private func check() throws(Status) {
        if newBytes > Limits.indexEntriesSizeBytesMax {
            throw .invalidArgument(
                "The index entries of entity /\(path.string) are larger than \(Limits.indexEntriesSizeBytesMax) bytes together."
            )
        }
        if largestBytes > Limits.indexEntrySizeBytesMax { throw .invalidArgument("Index entry is too large.") }
    }

    // MARK: Fields

    /// - Parameter tree: the fields of `after`, which has the same order.
    private mutating func compare(_ before: [UInt8], _ after: [UInt8], _ tree: MapValue) throws(Status) {
        let (left, right) = (FieldsReader(before), FieldsReader(after))
        var (leftPosition, rightPosition, index) = (0, 0, 0)
        var old = try left.nextEntry(&leftPosition)
        var new = try right.nextEntry(&rightPosition)
        while old != nil || new != nil {
            // Checked as it grows, so that no document can fill the memory before it fails.
            if newBytes > Limits.indexEntriesSizeBytesMax { return }
            var order = old == nil ? 1 : -1
            if let old, let new { order = Self.compare(before, old.name, after, new.name) }
            var isSame = false
            if order == 0, let old, let new { isSame = Self.compare(before, old.value, after, new.value) == 0 }
            if !isSame {
                let name = order <= 0 ? old.map { before[$0.name] } : new.map { after[$0.name] }
                let oldValue = order <= 0 ? try old.map { entry throws(Status) in try left.value(entry.value) } : nil
                compare(name ?? [], oldValue, order >= 0 ? tree.fields[index].value : nil)
            }
            if order <= 0 { old = try left.nextEntry(&leftPosition) }
            if order >= 0 {
                new = try right.nextEntry(&rightPosition)
                index += 1
            }
        }
    }

    private static func compare(_ left: [UInt8], _ a: Range<Int>, _ right: [UInt8], _ b: Range<Int>) -> Int {
        left.withUnsafeBytes { left in
            right.withUnsafeBytes { right in
                UTF8Order.compare(
                    UnsafeRawBufferPointer(rebasing: left[a]), UnsafeRawBufferPointer(rebasing: right[b]))
            }
        }
    }

    /// Compares the entries of one field in both states.
    private mutating func compare(_ name: ArraySlice<UInt8>, _ old: Value?, _ new: Value?) {
        if !indexes.definitions.isEmpty { names.append(String(decoding: name, as: UTF8.self)) }
        if Self.isContainer(old) || Self.isContainer(new) {
            return compareEntries(String(decoding: name, as: UTF8.self), old, new)
        }
        var (removes, adds) = (old != nil, new != nil)
        if hasOverrides, indexes.mayOverride(name) {
            let segments = [String(decoding: name, as: UTF8.self)]
            // While overrides change, the stored state may have more entries than are made now.
            removes = removes && indexes.hasOrderIndex(segments, .possible)
            adds = adds && indexes.hasOrderIndex(segments, .present)
        }
        if !removes, !adds { return }
        prefix.removeAll(keepingCapacity: true)
        prefix.append(IndexKey.fieldKind)
        prefix.append(contentsOf: key[..<collectionEnd])
        name.withUnsafeBytes { IndexKey.appendFieldPath($0, to: &prefix) }
        var oldBytes = 0
        if removes, let old { oldBytes = append(.deleted, old) }
        if adds, let new {
            let sizeBytes = append(Self.insertion(of: new), new)
            newBytes += sizeBytes
            largestBytes = max(largestBytes, sizeBytes)
            if removes, let old, difference.lastAreEqual(oldBytes, sizeBytes) {
                // An integer and the equal double have the same key.
                difference.removeLast(2)
                if Self.insertion(of: old) != Self.insertion(of: new) { _ = append(Self.insertion(of: new), new) }
            }
        }
    }

    private static func isContainer(_ value: Value?) -> Bool {
        switch value {
        case .array, .map: true
        default: false
        }
    }

    private static func insertion(of value: Value) -> IndexDifference.Kind {
        if case .double = value { .insertedDouble } else { .inserted }
    }

    /// Appends the entry of a value of the field whose prefix is known.
    private mutating func append(_ kind: IndexDifference.Kind, _ value: Value) -> Int {
        difference.append(kind) { bytes in
            bytes.append(contentsOf: prefix)
            IndexValue.appendCut(value, to: &bytes)
            bytes.append(contentsOf: key[collectionEnd...])
        }
    }

    // MARK: Containers and definitions

    /// The same for a field that may have any number of entries.
    private mutating func compareEntries(_ name: String, _ old: Value?, _ new: Value?) {
        var (before, after) = entries
        if let old { before.addAutomatic(MapValue(sorted: [MapValue.Field(name: name, value: old)])) }
        if let new { after.addAutomatic(MapValue(sorted: [MapValue.Field(name: name, value: new)])) }
        compare(before, after)
    }

    private mutating func compareDefinitions(_ old: [UInt8]?, _ new: MapValue?) throws(Status) {
        var (before, after) = entries
        if let old { before.addDefinitions(try FieldsCodec.decode(old), touching: names) }
        if let new { after.addDefinitions(new, touching: names) }
        compare(before, after)
    }

    /// Of both states, without entries.
    private var entries: (before: IndexEntries, after: IndexEntries) {
        (
            IndexEntries(key: key, path: path, indexes: indexes, extent: .possible),
            IndexEntries(key: key, path: path, indexes: indexes, isBounded: true)
        )
    }

    /// Walks over both in the order of keys, which is also the best order of writes for a store.
    private mutating func compare(_ old: IndexEntries, _ new: IndexEntries) {
        newBytes += new.sizeBytes
        largestBytes = new.entries.reduce(largestBytes) { max($0, $1.key.count) }
        let before = Self.inOrder(old.entries)
        let after = Self.inOrder(new.entries)
        var i = 0
        var j = 0
        while i < before.count || j < after.count {
            let order =
                i == before.count ? 1 : j == after.count ? -1 : UTF8Order.compare(before[i].key, after[j].key)
            if order < 0 { difference.append(.deleted, before[i].key) }
            if order > 0 || order == 0 && before[i].isDouble != after[j].isDouble {
                difference.append(after[j].isDouble ? .insertedDouble : .inserted, after[j].key)
            }
            if order <= 0 { i += 1 }
            if order >= 0 { j += 1 }
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
