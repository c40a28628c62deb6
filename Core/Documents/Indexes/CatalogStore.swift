import HearthEngine
import HearthModel
import HearthWire

/// Stores the index catalog in the `meta` keyspace, as the fields of one document in wire form.
///
///     key "catalog": {next: integer, definitions: [{id, collection, scope, name, state, fields: [{path, kind, dimension}]}],
///                     overrides: [{collection, path, ttl, offset, indexes: [{scope, kind}]}],
///                     changes: [{collection, earlier: [{overrides: […]}]}], removed: [a definition]}, the last two
///                     only while overrides change, and while entries of removed definitions are deleted
///
/// A change writes the catalog as a whole: about 150 bytes an index of two fields, of at most 1,000
/// (`Limits.compositeIndexesMax`) and as many overrides. It is decoded only at a start: the writer has it in memory,
/// and so have readers while it changes (`CurrentCatalog`). Many indexes that are made or removed together share a few
/// changes.
enum CatalogStore {
    static let key = Array("catalog".utf8)
    /// More than are ever used, so that a number of damaged bytes can be counted on.
    private static let idMax = UInt32.max / 2

    static func load(from snapshot: any Snapshot) throws(Status) -> IndexCatalog {
        guard let bytes = try snapshot.get(.meta, key) else { return IndexCatalog() }
        let fields = try FieldsCodec.decode(bytes)
        let definitions = maps(fields["definitions"])
        let overrides = maps(fields["overrides"])
        let changes = maps(fields["changes"])
        let removed = maps(fields["removed"])
        guard let next = fields["next"].map({ number($0, 0...Int64(idMax)) }) ?? 1 else {
            throw Status(.dataLoss, "The index catalog contains a number of the next index that can't be.")
        }
        let catalog = IndexCatalog(
            definitions: definitions.compactMap(definition), overrides: overrides.compactMap(override),
            changes: changes.compactMap(change), removed: removed.compactMap(definition),
            nextID: UInt32(next))
        // The entries of a definition that is left out would be strays, and would no longer be maintained.
        guard catalog.definitions.count == definitions.count, catalog.overrides.count == overrides.count,
            catalog.changes.count == changes.count, catalog.removed.count == removed.count
        else {
            throw Status(.dataLoss, "The index catalog contains a definition that can't be read.")
        }
        return catalog
    }

    static func encode(_ catalog: IndexCatalog) -> [UInt8] {
        var fields = MapValue([
            .init(name: "next", value: .integer(Int64(catalog.nextID))),
            .init(name: "definitions", value: .array(catalog.definitions.map { .map(encode($0)) })),
            .init(name: "overrides", value: .array(catalog.overrides.map { .map(encode($0)) })),
        ])
        if !catalog.changes.isEmpty {
            fields.set("changes", .array(catalog.changes.map { .map(encode($0)) }))
        }
        if !catalog.removed.isEmpty {
            fields.set("removed", .array(catalog.removed.map { .map(encode($0)) }))
        }
        return FieldsCodec.encode(fields)
    }

    // MARK: Definitions

    private static func encode(_ definition: IndexDefinition) -> MapValue {
        MapValue([
            .init(name: "id", value: .integer(Int64(definition.id))),
            .init(name: "collection", value: .string(definition.collectionID)),
            .init(name: "scope", value: .string(definition.scope.rawValue)),
            .init(name: "name", value: .boolean(definition.nameDescending)),
            .init(name: "state", value: .string(definition.state.rawValue)),
            .init(
                name: "fields",
                value: .array(
                    definition.fields.map { field in
                        .map(MapValue([.init(name: "path", value: .string(field.path.string))] + encode(field.kind)))
                    })),
        ])
    }

    private static func definition(_ map: MapValue) -> IndexDefinition? {
        guard let id = number(map["id"], 0...Int64(idMax)), let collectionID = string(map["collection"]),
            let scope = string(map["scope"]).flatMap(IndexDefinition.Scope.init),
            let state = string(map["state"]).flatMap(IndexDefinition.State.init)
        else { return nil }
        var fields: [IndexField] = []
        for field in maps(map["fields"]) {
            guard let path = path(field["path"]), let kind = kind(field) else { return nil }
            fields.append(IndexField(path: path, kind: kind))
        }
        // Only that of names in descending order has no fields.
        let nameDescending = map["name"] == .boolean(true)
        if fields.isEmpty, !nameDescending { return nil }
        return IndexDefinition(
            id: UInt32(id), collectionID: collectionID, scope: scope, fields: fields, nameDescending: nameDescending,
            state: state)
    }

    private static func encode(_ kind: IndexField.Kind) -> [MapValue.Field] {
        switch kind {
        case .ascending: [.init(name: "kind", value: .string("ASCENDING"))]
        case .descending: [.init(name: "kind", value: .string("DESCENDING"))]
        case .contains: [.init(name: "kind", value: .string("CONTAINS"))]
        case .vector(let dimension):
            [
                .init(name: "kind", value: .string("VECTOR")),
                .init(name: "dimension", value: .integer(Int64(dimension))),
            ]
        }
    }

    private static func kind(_ map: MapValue) -> IndexField.Kind? {
        switch string(map["kind"]) {
        case "ASCENDING": .ascending
        case "DESCENDING": .descending
        case "CONTAINS": .contains
        case "VECTOR": number(map["dimension"], 0...Int64(Int32.max)).map { .vector(dimension: Int($0)) }
        default: nil
        }
    }

    // MARK: Overrides

    private static func encode(_ override: FieldOverride) -> MapValue {
        var map = MapValue([
            .init(name: "collection", value: .string(override.collectionID)),
            .init(name: "ttl", value: .boolean(override.timeToLive != nil)),
            .init(
                name: "indexes",
                value: .array(
                    override.indexes.map { index in
                        .map(
                            MapValue([.init(name: "scope", value: .string(index.scope.rawValue))] + encode(index.kind)))
                    })),
        ])
        if let path = override.path { map.set("path", .string(path.string)) }
        if let seconds = override.timeToLive?.offsetSeconds, seconds != 0 { map.set("offset", .integer(seconds)) }
        return map
    }

    private static func override(_ map: MapValue) -> FieldOverride? {
        guard let collectionID = string(map["collection"]) else { return nil }
        guard let offset = map["offset"].map({ number($0, 0...Int64(Int32.max)) }) ?? 0 else { return nil }
        let indexes = maps(map["indexes"]).compactMap { index -> FieldOverride.Index? in
            guard let scope = string(index["scope"]).flatMap(IndexDefinition.Scope.init), let kind = kind(index) else {
                return nil
            }
            return FieldOverride.Index(scope: scope, kind: kind)
        }
        let isTimeToLive = map["ttl"] == .boolean(true)
        return FieldOverride(
            collectionID: collectionID, path: path(map["path"]), indexes: indexes,
            timeToLive: isTimeToLive ? .init(offsetSeconds: offset) : nil)
    }

    private static func encode(_ change: IndexCatalog.Change) -> MapValue {
        MapValue([
            .init(name: "collection", value: .string(change.collectionID)),
            .init(
                name: "earlier",
                value: .array(
                    change.earlier.map { overrides in
                        .map(
                            MapValue([.init(name: "overrides", value: .array(overrides.map { .map(encode($0)) }))]))
                    })),
        ])
    }

    private static func change(_ map: MapValue) -> IndexCatalog.Change? {
        guard let collectionID = string(map["collection"]) else { return nil }
        let earlier = maps(map["earlier"]).map { maps($0["overrides"]) }
        let read = earlier.map { $0.compactMap(override) }
        guard zip(earlier, read).allSatisfy({ $0.count == $1.count }) else { return nil }
        return IndexCatalog.Change(collectionID: collectionID, earlier: read)
    }

    // MARK: Reading values

    private static func maps(_ value: Value?) -> [MapValue] {
        guard case .array(let elements)? = value else { return [] }
        return elements.compactMap { if case .map(let map) = $0 { map } else { nil } }
    }

    private static func string(_ value: Value?) -> String? {
        if case .string(let string)? = value { string } else { nil }
    }

    /// Nil for what is none, or out of range: whoever calculates with it must not overflow.
    private static func number(_ value: Value?, _ range: ClosedRange<Int64>) -> Int64? {
        guard case .integer(let number)? = value, range.contains(number) else { return nil }
        return number
    }

    private static func path(_ value: Value?) -> FieldPath? {
        guard let string = string(value) else { return nil }
        do { return try FieldPath(parsing: string) } catch { return nil }
    }
}
