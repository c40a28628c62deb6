import HearthModel
import Testing

@Suite struct StorageSizeTests {
    @Test func countsTheDocumentedExample() {
        let fields = map(("nick", .string("Zoë")), ("score", .integer(7)), ("on", .boolean(true)))
        let path = ResourcePath(["teams", "red", "players", "p1"])
        #expect(StorageSize.of(path) == 37)
        #expect(StorageSize.of(fields) == 28)
        #expect(StorageSize.ofDocument(path, fields) == 97)
    }

    static let sizes: [(value: Value, size: Int)] = [
        (.null, 1), (.boolean(false), 1), (.integer(1), 8), (.double(1), 8),
        (.timestamp(Timestamp(microseconds: 0)), 8),
        (.string(""), 1), (.string("é"), 3), (.bytes([]), 0), (.bytes([1, 2]), 2),
        (.geoPoint(GeoPoint(latitude: 0, longitude: 0)), 16),
        (.reference("projects/p/databases/d/documents/c/x"), 20),
        (.reference("projects/p/databases/d/documents/c/__id7__"), 26),
        (.array([]), 0), (.array([.null, .integer(1)]), 9), (.vector([1, 2, 3]), 24), (.map(MapValue()), 0),
        (.map(map(("a", .null), ("bc", .string("d")))), 8),
    ]

    @Test(arguments: sizes.indices) func counts(_ index: Int) {
        #expect(StorageSize.of(Self.sizes[index].value) == Self.sizes[index].size)
    }
}
