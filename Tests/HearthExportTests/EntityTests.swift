import HearthExport
import HearthFuzzing
import HearthModel
import HearthTestSupport
import HearthWire
import Testing

@Suite struct EntityTests {
    private static let database = DatabaseName(project: "p")
    private static let key: [UInt8] = key(element: [0x12, 1, 0x63, 0x22, 1, 0x64])

    private static func read(_ record: [UInt8], target: DatabaseName? = nil) throws(Status) -> ExportedDocument {
        var reader = EntityReader(target: target)
        return try record.withBytes { bytes throws(Status) in try reader.read(bytes) }
    }

    /// A property `v` with this value.
    private static func property(
        _ value: [UInt8], meaning: UInt8? = nil, name: String = "v", multiple: Bool = false, field: UInt8 = 0x7A
    ) -> [UInt8] {
        var body: [UInt8] = meaning.map { [0x08, $0] } ?? []
        body += [0x1A, UInt8(name.utf8.count)]
        body += Array(name.utf8)
        body += [0x20, multiple ? 1 : 0, 0x2A, UInt8(value.count)]
        body += value
        return [field, UInt8(body.count)] + body
    }

    private static func value(_ properties: [UInt8]...) throws(Status) -> Value? {
        let document = try read(key + properties.flatMap { $0 })
        return try FieldsCodec.decode(document.fields)["v"]
    }

    @Test func recordsOfTheEmulatorAreWrittenAlike() throws {
        var different: [String] = []
        for name in ["types", "named-database", "blocks", "suite"] {
            let path = try TestData.file("output-0", in: TestData.folder(name))
            let log = LogReader(try FileSource(path))
            while let record = try log.next({ Array($0) }) {
                let document = try Self.read(record)
                var writer = EntityWriter(database: try #require(document.database))
                let written = try writer.record(path: document.path, fields: document.fields)
                if written != record { different.append(document.path) }
                #expect(try Self.read(written) == document)
            }
        }
        // The emulator writes the properties of these in the order of a hash table.
        #expect(Set(different).isSubset(of: ["types/field-names", "types/all", "types/map"]), "\(different)")
    }

    @Test func randomDocumentsComeBack() throws {
        for seed in TestRun.seeds(200) {
            var documents = RandomDocuments(random: SeededGenerator(seed: seed))
            let (path, fields) = documents.document()
            let encoded = FieldsCodec.encode(fields)
            var writer = EntityWriter(database: Self.database)
            let record = try writer.record(path: path, fields: encoded)
            #expect(
                try Self.read(record) == ExportedDocument(database: Self.database, path: path, fields: encoded),
                "seed \(seed)")
            let line = try LineWriter().line(path: path, fields: encoded)
            #expect(
                try LineReader(MemorySource(line)).next() == ExportedDocument(path: path, fields: encoded),
                "seed \(seed)")
        }
    }

    @Test func noiseIsReadOrRefused() throws {
        for seed in TestRun.seeds(20) {
            var documents = RandomDocuments(random: SeededGenerator(seed: seed))
            let (path, fields) = documents.document()
            var writer = EntityWriter(database: Self.database)
            let record = try writer.record(path: path, fields: FieldsCodec.encode(fields))
            for _ in 0..<10 {
                var noise = record
                for _ in 0...documents.random.below(3) {
                    noise[documents.random.below(noise.count)] = documents.random.bytes(1)[0]
                }
                ExportFuzzing.fuzz(noise)
            }
        }
    }

    @Test func propertiesOfOneNameAreAnArrayWhereverTheyStand() throws {
        #expect(
            try Self.value(
                Self.property([0x08, 1]), Self.property([0x08, 9], name: "a"),
                Self.property([0x08, 2], field: 0x72)) == .array([.integer(1), .integer(2)]))
        #expect(try Self.value(Self.property([], multiple: true)) == .array([.null]))
        #expect(try Self.value(Self.property([], meaning: 24)) == .array([]))
        #expect(try Self.value(Self.property([], meaning: 24, multiple: true)) == .array([]))
    }

    @Test func meaningsOfDatastoreModeAreCounted() throws {
        var reader = EntityReader()
        let record =
            Self.key + Self.property([0x1A, 1, 0x78], meaning: 15) + Self.property([0x08, 5], meaning: 8, name: "w")
        let document = try record.withUnsafeBytes { bytes throws(Status) in try reader.read(bytes) }
        #expect(reader.legacyValueCount == 2)
        #expect(
            try FieldsCodec.decode(document.fields)
                == MapValue([
                    MapValue.Field(name: "v", value: .string("x")), MapValue.Field(name: "w", value: .integer(5)),
                ]))
        #expect(try Self.value(Self.property([0x1A, 1, 0x78], meaning: 16)) == .bytes([0x78]))
    }

    struct Refused: Sendable {
        var bytes: [UInt8]
        var reason: String

        init(_ bytes: [UInt8], _ reason: String) {
            self.bytes = bytes
            self.reason = reason
        }
    }

    static let properties: [Refused] = [
        Refused(property([0x08, 1], meaning: 32), "meaning 32"),
        Refused(property([0x08, 1], meaning: 39), "meaning 39"),
        Refused(property([0x1A, 1, 0x78], meaning: 7), "meaning 7"), Refused(property([0x1A, 1, 0xFF]), "UTF-8"),
        Refused(property([0x08, 1, 0x10, 1]), "two values"), Refused(property([0x43, 0x44]), "user"),
        Refused(property([0x08, 1], meaning: 31), "no double"), Refused([0x7A, 2, 0x20, 0], "lacks"),
        Refused(property([0x1A, 20], meaning: 19), "malformed"),
        Refused(property([0x1A, UInt8(key.count)] + key, meaning: 19), "with a key"),
    ]

    @Test(arguments: properties)
    func whatFirestoreDoesNotHaveIsRefused(_ refused: Refused) {
        let message = TestData.message { _ = try Self.read(Self.key + refused.bytes) }
        #expect(message?.contains(refused.reason) == true, "\(message ?? "nil")")
    }

    /// It is refused before it fills the memory: 32 MiB of them made more than 300.
    @Test func moreValuesThanADocumentCanHaveAreRefused() {
        var record = Self.key
        let property = Self.property([], multiple: true)
        record.reserveCapacity(record.count + property.count * (Limits.documentSizeBytesMax + 1))
        for _ in 0...Limits.documentSizeBytesMax { record += property }
        #expect(TestData.message { _ = try Self.read(record) }?.contains("more values than a document") == true)
    }

    /// A key with this path of one element.
    private static func key(element: [UInt8]) -> [UInt8] {
        let path: [UInt8] = [0x0B] + element + [0x0C]
        let content: [UInt8] = [0x6A, 5] + Array("dev~p".utf8) + [0x72, UInt8(path.count)] + path
        return [0x6A, UInt8(content.count)] + content
    }

    static let keys: [Refused] = [
        Refused([], "no key"), Refused([0x6A, 7, 0x6A, 5] + Array("dev~p".utf8), "no path"),
        Refused(key(element: [0x12, 1, 0x63]), "no id"), Refused(key(element: [0x12, 1, 0x63, 0x18, 0]), "element"),
        Refused(key(element: [0x12, 1, 0x2F, 0x22, 1, 0x64]), "slash"),
        Refused([0x6A, 21, 0xA2, 1, 1, 0x6E] + key[2...], "namespace"),
    ]

    @Test(arguments: keys)
    func keysOfOtherDatabasesAreRefused(_ refused: Refused) {
        let message = TestData.message { _ = try Self.read(refused.bytes) }
        #expect(message?.contains(refused.reason) == true, "\(message ?? "nil")")
    }

    @Test func referencesIntoTheSourceFollowTheDocuments() throws {
        let fields = MapValue([
            MapValue.Field(name: "a", value: .reference("projects/p/databases/(default)/documents/c/d")),
            MapValue.Field(name: "b", value: .reference("projects/p/databases/other/documents/c/d")),
            MapValue.Field(name: "c", value: .reference("projects/q/databases/(default)/documents/c/d")),
        ])
        var writer = EntityWriter(database: Self.database)
        let record = try writer.record(path: "c/d", fields: FieldsCodec.encode(fields))
        let moved = try Self.read(record, target: DatabaseName(project: "t", database: "u"))
        let expected = [
            "projects/t/databases/u/documents/c/d", "projects/p/databases/other/documents/c/d",
            "projects/q/databases/(default)/documents/c/d",
        ]
        #expect(try FieldsCodec.decode(moved.fields).fields.map(\.value) == expected.map { .reference($0) })
        let line = Array("{\"name\":\"projects/p/databases/(default)/documents/c/d\",\"fields\":".utf8)
        var json = JSONWriter(line)
        json.fields(fields)
        json.bytes += Array("}".utf8)
        let target = DatabaseName(project: "t", database: "u")
        let fromLine = try LineReader(MemorySource(json.bytes), target: target).next()
        #expect(fromLine?.fields == moved.fields)
        #expect(fromLine?.path == "c/d")
    }

    @Test func limitsOfDocumentsAreChecked() {
        func message(_ fields: MapValue) -> String? {
            TestData.message { try ExportedDocument(path: "c/d", fields: FieldsCodec.encode(fields)).validate() }
        }
        func one(_ name: String, _ value: Value) -> MapValue { MapValue([MapValue.Field(name: name, value: value)]) }
        #expect(message(one("a", .null)) == nil)
        #expect(message(one("__a__", .null))?.contains("reserved") == true)
        #expect(message(one("a", .string(String(repeating: "x", count: 1_048_488))))?.contains("longer") == true)
        let three = (0..<3).map { MapValue.Field(name: "\($0)", value: .bytes([UInt8](repeating: 0, count: 400_000))) }
        #expect(message(MapValue(three))?.contains("maximum allowed size") == true)
        var deep = Value.map(MapValue())
        for _ in 0..<20 { deep = .map(one("a", deep)) }
        #expect(message(one("a", deep))?.contains("nested") == true)
    }
}
