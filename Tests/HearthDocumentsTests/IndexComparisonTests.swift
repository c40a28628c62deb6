import HearthModel
import HearthTestSupport
import HearthWire
import Testing

@testable import HearthDocuments

/// The difference of two states is what all entries of one differ from all entries of the other.
@Suite struct IndexComparisonTests {
    private static let path = ResourcePath(["c", "d", "e", "f"])
    private static let catalogs: [IndexCatalog] = [
        IndexCatalog(),
        IndexCatalog(overrides: [
            FieldOverride(collectionID: "e", path: FieldPath("a"), indexes: []),
            FieldOverride(
                collectionID: "e", path: FieldPath(segments: ["m", "x"]),
                indexes: [.init(scope: .collection, kind: .contains)]),
        ]),
        IndexCatalog(
            definitions: [
                IndexDefinition(
                    id: 1, collectionID: "e", scope: .collection,
                    fields: [
                        IndexField(path: FieldPath("a"), kind: .descending),
                        IndexField(path: FieldPath("é"), kind: .contains),
                    ], nameDescending: true)
            ],
            overrides: [FieldOverride(collectionID: "e", path: nil, indexes: [])]),
    ]

    private struct Entry: Hashable {
        var key: [UInt8]
        var isDouble: Bool
    }

    private func entries(_ fields: MapValue?, _ catalog: IndexCatalog) -> Set<Entry> {
        guard let fields else { return [] }
        let all = IndexEntries.all(of: DocumentKey.encode(Self.path), path: Self.path, fields, catalog: catalog)
        return Set(all.map { Entry(key: $0.key, isDouble: !$0.value.isEmpty) })
    }

    private func check(_ before: MapValue?, _ after: MapValue?, _ catalog: IndexCatalog) throws {
        let difference = try IndexComparison.difference(
            key: DocumentKey.encode(Self.path), path: Self.path, before: before.map { FieldsCodec.encode($0) },
            after: after.map { ($0, FieldsCodec.encode($0)) }, catalog: catalog)
        let old = entries(before, catalog)
        let new = entries(after, catalog)
        var made = Dictionary(uniqueKeysWithValues: old.map { ($0.key, $0.isDouble) })
        var touched: Set<[UInt8]> = []
        var sizeBytes = 0
        difference.forEach { kind, key in
            sizeBytes += key.count
            let key = Array(key)
            #expect(touched.insert(key).inserted, "a key changes once")
            switch kind {
            case .deleted: #expect(made.removeValue(forKey: key) != nil)
            case .inserted: made[key] = false
            case .insertedDouble: made[key] = true
            }
        }
        #expect(made == Dictionary(uniqueKeysWithValues: new.map { ($0.key, $0.isDouble) }))
        #expect(difference.count == touched.count && difference.sizeBytes == sizeBytes)
        #expect(touched == Set(old.symmetricDifference(new).map(\.key)), "no entry that stays is written")
    }

    @Test func itIsThatOfAllEntries() throws {
        var maker = ValueMaker(SeededGenerator(seed: TestRun.seed()))
        func fields() -> MapValue? {
            if maker.random.chance(10) { return nil }
            var fields = MapValue()
            for _ in 0..<maker.random.below(6) {
                fields.set(maker.random.pick(["a", "b", "m", "é", "x.y", "a\u{0}", "`"]), maker.value())
            }
            return fields
        }
        for _ in 0..<(1000 * TestRun.effort) {
            let before = fields()
            var after = maker.random.chance(50) ? before : fields()
            if maker.random.chance(50) { after?.set("a", maker.value()) }
            try check(before, after, maker.random.pick(Self.catalogs))
        }
    }

    /// An integer and the equal double have one key.
    @Test(arguments: [
        (Value.integer(1), Value.double(1)), (.double(1), .integer(1)), (.double(0), .double(-0.0)),
        (.integer(0), .double(-0.0)), (.array([.integer(1)]), .array([.double(1)])),
    ]) func anEntryChangesItsMarkAlone(before: Value, after: Value) throws {
        try check(map(("a", before)), map(("a", after)), IndexCatalog())
    }
}
