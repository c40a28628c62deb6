/// Sizes in bytes as Firestore counts them. Source: "Storage size calculations" of the Firestore documentation. Maps
/// inside a document have no overhead of their own; measurements of the service at its 1 MiB limit show this.
@usableFromInline package enum StorageSize {
    @inlinable package static func of(_ string: String) -> Int { string.utf8.count + 1 }

    @inlinable package static func of(_ path: ResourcePath) -> Int {
        path.segments.reduce(16) { $0 + (ResourcePath.numericID($1) == nil ? of($1) : 8) }
    }

    @usableFromInline package static func of(_ value: Value) -> Int {
        switch value {
        case .null, .boolean: 1
        case .integer, .double, .timestamp: 8
        case .string(let string): of(string)
        case .bytes(let bytes): bytes.count
        case .geoPoint: 16
        case .reference(let name): ofReference(name)
        case .array(let values): values.reduce(0) { $0 + of($1) }
        case .vector(let elements): 8 * elements.count
        case .map(let map): of(map)
        }
    }

    @inlinable package static func of(_ map: MapValue) -> Int {
        map.fields.reduce(0) { $0 + of($1.name) + of($1.value) }
    }

    @inlinable package static func ofDocument(_ path: ResourcePath, _ fields: MapValue) -> Int {
        of(path) + of(fields) + 32
    }

    /// A reference counts as the name that it holds: the path below `documents`.
    private static func ofReference(_ name: String) -> Int {
        of(ResourcePath(Array(ResourcePath.split(name).dropFirst(5))))
    }
}
