import HearthModel

/// Computes the index entries of a document, and their changes when it changes.
struct IndexEntries {
    struct Entry {
        var key: [UInt8]
        var value: [UInt8]
    }

    private let catalog: IndexCatalog
    private let key: [UInt8]
    private let collectionID: String
    private let collectionPrefix: ArraySlice<UInt8>
    private let name: ArraySlice<UInt8>
    private let hasOverrides: Bool
    private let definitions: [IndexDefinition]
    private let isNested: Bool
    private(set) var entries: [Entry] = []
    /// Bytes of the entries' keys.
    private(set) var sizeBytes = 0
    /// Whether entries beyond the limit are left out, so that a hostile document can't fill the memory before it fails.
    private let isBounded: Bool
    private let extent: IndexCatalog.Extent

    init(
        key: [UInt8], path: ResourcePath, catalog: IndexCatalog, isBounded: Bool = false,
        extent: IndexCatalog.Extent = .present
    ) {
        self.isBounded = isBounded
        self.extent = extent
        self.catalog = catalog
        self.key = key
        collectionID = path.segments[path.segments.count - 2]
        let end = DocumentKey.collectionPrefixEnd(key) ?? key.count
        collectionPrefix = key[..<end]
        name = key[end...]
        hasOverrides = catalog.hasOverrides(collectionID)
        definitions = catalog.definitions(for: collectionID)
        isNested = path.segments.count > 2
    }

    /// The entries of a document in one state.
    mutating func add(_ fields: MapValue) {
        addAutomatic(fields)
        addDefinitions(fields)
    }

    /// The automatic entries of top-level fields.
    mutating func addAutomatic(_ fields: MapValue) {
        for field in fields.fields { addAutomatic(field.value, path: [field.name], depth: 1) }
    }

    /// The entries of the catalog's definitions alone.
    mutating func addDefinitions(_ fields: MapValue) {
        for definition in definitions { add(definition, fields) }
    }

    /// All entries that belong to a document.
    static func all(
        of key: [UInt8], path: ResourcePath, _ fields: MapValue, catalog: IndexCatalog,
        extent: IndexCatalog.Extent = .present
    ) -> [Entry] {
        var expected = IndexEntries(key: key, path: path, catalog: catalog, extent: extent)
        expected.add(fields)
        return expected.entries + (expected.groupNameEntry.map { [Entry(key: $0, value: [])] } ?? [])
    }

    /// The entries of the definitions that use one of the changed fields.
    mutating func addDefinitions(_ fields: MapValue, touching changed: ChangedFields) {
        for definition in definitions where definition.fields.contains(where: { changed.has($0.path.segments[0]) }) {
            add(definition, fields)
        }
    }

    var hasDefinitions: Bool { !definitions.isEmpty }

    /// The entry that finds a nested document by its collection id; the same in all states.
    var groupNameEntry: [UInt8]? {
        guard isNested, let pathKey = DocumentKey.toPathKey(key) else { return nil }
        return IndexKey.groupNamePrefix(collectionID) + pathKey
    }

    private mutating func addAutomatic(_ value: Value, path segments: [String], depth: Int) {
        let path = FieldPath(segments: segments)
        if !hasOverrides || catalog.hasOrderIndex(path, in: collectionID, extent) {
            var entry = IndexKey.fieldPrefix(collectionPrefix: collectionPrefix, path: path, contains: false)
            IndexValue.appendCut(value, to: &entry)
            entry.append(contentsOf: name)
            var mark: [UInt8] = []
            if case .double = value { mark = IndexKey.doubleMark }
            append(Entry(key: entry, value: mark))
        }
        switch value {
        case .array(let elements) where !hasOverrides || catalog.hasContainsIndex(path, in: collectionID, extent):
            addElements(elements, path: path)
        case .map(let map):
            for field in map.fields { addAutomatic(field.value, path: segments + [field.name], depth: depth + 1) }
        default: break
        }
    }

    private mutating func addElements(_ elements: [Value], path: FieldPath) {
        let prefix = IndexKey.fieldPrefix(collectionPrefix: collectionPrefix, path: path, contains: true)
        for element in Self.distinct(elements) { append(Entry(key: prefix + element + name, value: [])) }
    }

    private mutating func append(_ entry: Entry) {
        if isBounded, sizeBytes > Limits.indexEntriesSizeBytesMax { return }
        entries.append(entry)
        sizeBytes += entry.key.count
    }

    private static func distinct(_ elements: [Value]) -> Set<[UInt8]> {
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

extension IndexEntries {
    /// Whether a document has more entries than are allowed, as the documentation counts them: two for each indexed
    /// value, two for each distinct element of an array, one for each of a definition.
    func isOverLimit(_ fields: MapValue) -> Bool {
        let most = Limits.indexEntriesPerDocumentMax
        // Searching for equal elements is expensive, and rarely needed.
        return count(fields, exactly: false) > most && count(fields, exactly: true) > most
    }

    private func count(_ fields: MapValue, exactly: Bool) -> Int {
        let automatic = fields.fields.reduce(0) { $0 + countAutomatic($1.value, path: [$1.name], exactly: exactly) }
        return definitions.reduce(automatic) { total, definition in
            var product = 1
            for field in definition.fields {
                guard let value = fields[path: field.path] else { return total }
                guard field.kind == .contains else { continue }
                guard case .array(let elements) = value else { return total }
                product *= exactly ? Self.distinct(elements).count : elements.count
            }
            return total + product
        }
    }

    private func countAutomatic(_ value: Value, path segments: [String], exactly: Bool) -> Int {
        let path = FieldPath(segments: hasOverrides ? segments : [])
        var count = !hasOverrides || catalog.hasOrderIndex(path, in: collectionID, extent) ? 2 : 0
        switch value {
        case .array(let elements) where !hasOverrides || catalog.hasContainsIndex(path, in: collectionID, extent):
            count += 2 * (exactly ? Self.distinct(elements).count : elements.count)
        case .map(let map):
            for field in map.fields {
                let inner = hasOverrides ? segments + [field.name] : []
                count += countAutomatic(field.value, path: inner, exactly: exactly)
            }
        default: break
        }
        return count
    }
}
