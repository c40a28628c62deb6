import HearthModel

/// Computes the index entries of a document, and their changes when it changes.
struct IndexEntries {
    struct Entry {
        var key: [UInt8]
        var value: [UInt8]

        var isDouble: Bool { !value.isEmpty }
    }

    private let indexes: CollectionIndexes
    private let key: [UInt8]
    private let collectionPrefix: ArraySlice<UInt8>
    private let name: ArraySlice<UInt8>
    private let hasOverrides: Bool
    private(set) var entries: [Entry] = []
    /// Bytes of the entries' keys.
    private(set) var sizeBytes = 0
    /// Whether entries beyond the limit are left out, so that a hostile document can't fill the memory before it fails.
    private let isBounded: Bool
    private let extent: IndexCatalog.Extent

    /// - Parameter indexes: those of the document's collection.
    init(
        key: [UInt8], path: ResourcePath, indexes: CollectionIndexes, isBounded: Bool = false,
        extent: IndexCatalog.Extent = .present
    ) {
        self.isBounded = isBounded
        self.extent = extent
        self.indexes = indexes
        self.key = key
        let end = DocumentKey.collectionPrefixEnd(key) ?? key.count
        collectionPrefix = key[..<end]
        name = key[end...]
        hasOverrides = indexes.hasOverrides
    }

    /// The entries of a document in one state.
    mutating func add(_ fields: MapValue) {
        addAutomatic(fields)
        addDefinitions(fields)
    }

    /// The automatic entries of top-level fields.
    mutating func addAutomatic(_ fields: MapValue) {
        for field in fields.fields {
            let segments = hasOverrides ? [field.name] : []
            addAutomatic(field.value, segments, string: FieldPath.quoted(field.name))
        }
    }

    /// The entries of the catalog's definitions alone.
    mutating func addDefinitions(_ fields: MapValue) {
        for definition in indexes.definitions { add(definition, fields) }
    }

    /// All entries that belong to a document.
    static func all(
        of key: [UInt8], path: ResourcePath, _ fields: MapValue, catalog: IndexCatalog,
        extent: IndexCatalog.Extent = .present
    ) -> [Entry] {
        var expected = IndexEntries(
            key: key, path: path, indexes: catalog.indexes(of: path.collectionID), extent: extent)
        expected.add(fields)
        return expected.entries + (groupNameEntry(of: key, path).map { [Entry(key: $0, value: [])] } ?? [])
    }

    /// The entries of the definitions that use one of some top-level fields.
    mutating func addDefinitions(_ fields: MapValue, touching names: [String]) {
        for definition in indexes.definitions
        where definition.fields.contains(where: { field in
            names.contains { UTF8Order.equal($0, field.path.segments[0]) }
        }) {
            add(definition, fields)
        }
    }

    /// The entry that finds a nested document by its collection id; the same in all states.
    static func groupNameEntry(of key: [UInt8], _ path: ResourcePath) -> [UInt8]? {
        guard path.segments.count > 2, let pathKey = DocumentKey.toPathKey(key) else { return nil }
        return IndexKey.groupNamePrefix(path.collectionID) + pathKey
    }

    /// - Parameters:
    ///   - segments: the field's path; empty when there are no overrides to be looked up by it.
    ///   - string: its string form.
    private mutating func addAutomatic(_ value: Value, _ segments: [String], string: String) {
        if !hasOverrides || indexes.hasOrderIndex(segments, extent) {
            var entry = IndexKey.fieldPrefix(collectionPrefix: collectionPrefix, pathString: string, contains: false)
            IndexValue.appendCut(value, to: &entry)
            entry.append(contentsOf: name)
            var mark: [UInt8] = []
            if case .double = value { mark = IndexKey.doubleMark }
            append(Entry(key: entry, value: mark))
        }
        switch value {
        case .array(let elements) where !hasOverrides || indexes.hasContainsIndex(segments, extent):
            addElements(elements, string)
        case .map(let map):
            for field in map.fields {
                addAutomatic(
                    field.value, hasOverrides ? segments + [field.name] : [],
                    string: string + "." + FieldPath.quoted(field.name))
            }
        default: break
        }
    }

    private mutating func addElements(_ elements: [Value], _ pathString: String) {
        let prefix = IndexKey.fieldPrefix(collectionPrefix: collectionPrefix, pathString: pathString, contains: true)
        for element in Self.distinct(elements) { append(Entry(key: prefix + element + name, value: [])) }
    }

    private mutating func append(_ entry: Entry) {
        if isBounded, sizeBytes > Limits.indexEntriesSizeBytesMax { return }
        entries.append(entry)
        sizeBytes += entry.key.count
    }

    fileprivate static func distinct(_ elements: [Value]) -> Set<[UInt8]> {
        var encoded: Set<[UInt8]> = []
        for element in elements {
            var bytes: [UInt8] = []
            IndexValue.appendCut(element, to: &bytes)
            encoded.insert(bytes)
        }
        return encoded
    }

    /// One entry for the document, or one for each element of an array field; none when a field is missing.
    private mutating func add(_ definition: IndexDefinition, _ fields: MapValue) {
        var keys = [IndexKey.definitionPrefix(definition, collectionPrefix: collectionPrefix)]
        for field in definition.fields {
            guard let value = fields[path: field.path] else { return }
            if definition.scope == .expiry {
                guard case .timestamp = value else { return }
            }
            var components: Set<[UInt8]>
            if field.kind == .contains {
                guard case .array(let elements) = value else { return }
                components = Self.distinct(elements)
            } else {
                var bytes: [UInt8] = []
                IndexValue.appendCut(value, to: &bytes)
                components = [bytes]
            }
            keys = keys.flatMap { key in
                components.map { component in
                    var key = key
                    NormalizedQuery.appendComponent(component, descending: field.kind == .descending, to: &key)
                    return key
                }
            }
        }
        let suffix = definition.scope == .collection ? Array(name) : DocumentKey.toPathKey(key) ?? []
        for var key in keys {
            NormalizedQuery.appendComponent(suffix, descending: definition.nameDescending, to: &key)
            append(Entry(key: key, value: []))
        }
    }
}

// MARK: Counting

extension CollectionIndexes {
    /// Whether a document has more entries than are allowed, as the documentation counts them: two for each indexed
    /// value, two for each distinct element of an array, one for each of a definition.
    /// - Parameter encodedBytes: of the fields in wire form.
    func isOverLimit(_ fields: MapValue, encodedBytes: Int) -> Bool {
        let most = Limits.indexEntriesPerDocumentMax
        // No value or element, which counts for two, takes fewer than two bytes.
        let isSimple = definitions.allSatisfy { definition in
            definition.fields.allSatisfy { $0.kind != .contains }
        }
        if isSimple, encodedBytes + definitions.count <= most { return false }
        // Searching for equal elements is expensive, and rarely needed.
        return count(fields, exactly: false) > most && count(fields, exactly: true) > most
    }

    private func count(_ fields: MapValue, exactly: Bool) -> Int {
        let automatic = fields.fields.reduce(0) { $0 + countAutomatic($1.value, [$1.name], exactly: exactly) }
        return definitions.reduce(automatic) { total, definition in
            var product = 1
            for field in definition.fields {
                guard let value = fields[path: field.path] else { return total }
                guard field.kind == .contains else { continue }
                guard case .array(let elements) = value else { return total }
                product *= exactly ? IndexEntries.distinct(elements).count : elements.count
            }
            return total + product
        }
    }

    private func countAutomatic(_ value: Value, _ segments: [String], exactly: Bool) -> Int {
        var count = !hasOverrides || hasOrderIndex(segments, .present) ? 2 : 0
        switch value {
        case .array(let elements) where !hasOverrides || hasContainsIndex(segments, .present):
            count += 2 * (exactly ? IndexEntries.distinct(elements).count : elements.count)
        case .map(let map):
            for field in map.fields {
                let inner = hasOverrides ? segments + [field.name] : []
                count += countAutomatic(field.value, inner, exactly: exactly)
            }
        default: break
        }
        return count
    }
}
