import Foundation
import HearthExport
import HearthModel
import HearthTestSupport
import HearthWire
import Synchronization
import Testing

@Suite struct FolderTests {
    private struct Damage: Decodable {
        var base: String
        var name: String
        var file: String
        var `do`: String
        var at: Int
    }

    @Test(arguments: TestData.exports)
    func exportsHoldWhatTheirLinesSay(_ name: String) throws {
        let documents = try TestData.read(TestData.folder(name))
        let lines = try TestData.lines(name)
        #expect(documents.mapValues(\.fields) == lines)
        #expect(documents.isEmpty == (name == "empty"))
    }

    @Test func damagedExportsAreRefused() throws {
        let cases = try JSONDecoder().decode(
            [Damage].self, from: Data(TestData.bytes(TestData.vectors + "damaged.json")))
        let folder = TemporaryFolder()
        for damage in cases {
            let copy = try TestData.copy(TestData.folder(damage.base), to: folder)
            let suffix = ["output": "output-0", "metadata": ".export_metadata", "overall": ".overall_export_metadata"]
            let path = try TestData.file(try #require(suffix[damage.file]), in: copy)
            var bytes = try TestData.bytes(path)
            switch damage.do {
            case "flip": bytes[damage.at] ^= 1
            case "cut": bytes = Array(bytes[..<damage.at])
            default: try FileManager.default.removeItem(atPath: path)
            }
            if damage.do != "remove" { try TestData.write(bytes, to: path) }
            let message = try #require(TestData.message { _ = try TestData.read(copy) }, "\(damage.name)")
            // A count that differs is found where the count is.
            let file = message.contains("documents, not") ? "export_metadata" : damage.file == "overall" ? copy : path
            #expect(message.contains(file), "\(damage.name): \(message)")
        }
        #expect(cases.count == 14)
    }

    @Test func eachFlippedBitIsRefusedOrChangesNothing() throws {
        let folder = TemporaryFolder()
        let copy = try TestData.copy(TestData.folder("suite"), to: folder)
        let documents = try TestData.read(copy)
        for suffix in ["output-0", ".export_metadata", ".overall_export_metadata"] {
            let path = try TestData.file(suffix, in: copy)
            let bytes = try TestData.bytes(path)
            for index in bytes.indices {
                for bit in 0..<8 {
                    var damaged = bytes
                    damaged[index] ^= 1 << UInt8(bit)
                    try TestData.write(damaged, to: path)
                    let read = try? TestData.read(copy)
                    #expect(read == nil || read == documents, "\(suffix), byte \(index), bit \(bit)")
                }
            }
            try TestData.write(bytes, to: path)
        }
    }

    // MARK: Writing

    private static func write(
        _ documents: [ExportedDocument], to path: String, database: DatabaseName, collectionIDs: [String]? = nil,
        replaces: Bool = false
    ) throws(Status) -> ExportFolderWriter {
        let writer = try ExportFolderWriter(
            path, name: "n", database: database, collectionIDs: collectionIDs,
            startTime: Timestamp(microseconds: 1), fileBytesMax: 1000)
        for document in documents { try writer.write(path: document.path, fields: document.fields) }
        try writer.finish(endTime: Timestamp(microseconds: 2), replaces: replaces)
        return writer
    }

    @Test(arguments: TestData.exports)
    func exportsAreWrittenAsTheyWereRead(_ name: String) throws {
        let folder = TemporaryFolder()
        let documents = try TestData.read(TestData.folder(name))
        let database = documents.values.first?.database ?? DatabaseName(project: "demo-empty")
        let writer = try Self.write(Array(documents.values), to: folder.path + "/x", database: database)
        #expect(try TestData.read(folder.path + "/x") == documents)
        #expect(name != "types" || writer.fileCount > 5)
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path) == ["x"])
        if name == "empty" {
            #expect(
                try FileManager.default.contentsOfDirectory(atPath: folder.path + "/x") == ["n.overall_export_metadata"]
            )
        }
    }

    @Test func collectionGroupsHaveFilesOfTheirOwn() throws {
        let folder = TemporaryFolder()
        let documents = try TestData.read(TestData.folder("production-form-filtered"))
        let path = folder.path + "/x"
        _ = try Self.write(
            Array(documents.values), to: path, database: DatabaseName(project: "my-prod"),
            collectionIDs: ["users", "orders", "none"])
        #expect(try TestData.read(path) == documents)
        let parts = try ExportFolder(path).parts
        #expect(parts.map(\.collectionID) == ["users", "orders", "none"])
        #expect(parts.map(\.documentCount) == [6, 1, 0])
        #expect(FileManager.default.fileExists(atPath: path + "/all_namespaces/kind_orders/output-0"))
        #expect(throws: Status.self) {
            try Self.write(
                Array(documents.values), to: folder.path + "/y", database: DatabaseName(project: "my-prod"),
                collectionIDs: ["orders"])
        }
    }

    @Test func idsThatDifferInTheirBytesOnlyAreTwo() throws {
        let folder = TemporaryFolder()
        let path = folder.path + "/x"
        let ids = ["caf\u{E9}", "cafe\u{301}"]
        let documents = ids.map { ExportedDocument(path: $0 + "/d", fields: []) }
        _ = try Self.write(documents, to: path, database: DatabaseName(project: "p"), collectionIDs: ids)
        let parts = try ExportFolder(path).parts
        #expect(parts.map(\.documentCount) == [1, 1])
    }

    /// Many groups must not need as many descriptors.
    @Test func theFileOfAGroupIsClosedBehindItsLastDocument() throws {
        let folder = TemporaryFolder()
        let writer = try ExportFolderWriter(
            folder.path + "/x", partial: folder.path + "/y", name: "n", database: DatabaseName(project: "p"),
            collectionIDs: ["a", "b"], startTime: Timestamp(microseconds: 1))
        func isWritten(_ id: String) throws -> Bool {
            let path = folder.path + "/y/all_namespaces/kind_\(id)/output-0"
            return try FileManager.default.attributesOfItem(atPath: path)[.size] as? Int != 0
        }
        try writer.write(path: "a/1", fields: [])
        try writer.write(path: "b/1", fields: [])
        try writer.end(collectionID: "a")
        #expect(try isWritten("a") && !isWritten("b"))
        try writer.finish(endTime: Timestamp(microseconds: 2), replaces: false)
        #expect(try ExportFolder(folder.path + "/x").parts.map(\.documentCount) == [1, 1])
    }

    @Test func manyMayMakeTheSameFolders() throws {
        let folder = TemporaryFolder()
        for round in 0..<20 {
            let path = folder.path + "/\(round)/a/b/c/out"
            let made = Mutex<[String]>([])
            let failures = Mutex<[Status]>([])
            let threads = (0..<4).map { _ in
                testThread {
                    do throws(Status) {
                        let new = try Folders.createParents(of: path)
                        made.withLock { $0 += new }
                    } catch {
                        failures.withLock { $0.append(error) }
                    }
                }
            }
            for thread in threads { thread.join() }
            #expect(failures.withLock { $0 } == [])
            let expected = ["", "/a", "/a/b", "/a/b/c"].map { "\(folder.path)/\(round)\($0)" }
            #expect(made.withLock { $0.sorted() } == expected)
        }
    }

    @Test func namesAndRootsOfFolders() {
        let folder = TemporaryFolder()
        let accent = "a/\u{301}"
        for (path, trimmed) in [("/", "/"), ("//", "/"), ("a//", "a"), ("/a/", "/a"), ("", ""), (accent, accent)] {
            #expect(Array(Folders.withoutEnd(path).utf8) == Array(trimmed.utf8))
        }
        #expect(Folders.isRootOfFileSystem("/") && Folders.isRootOfFileSystem("/proc"))
        #expect(!Folders.isRootOfFileSystem(folder.path) && !Folders.isRootOfFileSystem(folder.path + "/absent"))
    }

    /// What a process that was killed has left is removed, unless somebody fills it.
    @Test func unfinishedFoldersAreTakenOver() throws {
        let folder = TemporaryFolder()
        let (path, partial) = (folder.path + "/x", folder.path + "/y")
        func writer() throws -> ExportFolderWriter {
            try ExportFolderWriter(
                path, partial: partial, name: "n", database: DatabaseName(project: "p"),
                startTime: Timestamp(microseconds: 1))
        }
        try Folders.create(partial)
        folder.write("y/rest", "")
        let first = try writer()
        #expect(try FileManager.default.contentsOfDirectory(atPath: partial).isEmpty)
        #expect(throws: Status(.alreadyExists, "An export to \(path) is under way.")) { _ = try writer() }
        try first.finish(endTime: Timestamp(microseconds: 2), replaces: false)
        #expect(try ExportFolder.find(path) != nil)
    }

    @Test func nothingIsLeftOfAnUnfinishedExport() throws {
        let folder = TemporaryFolder()
        do {
            let writer = try ExportFolderWriter(
                folder.path + "/x/", name: "n", database: DatabaseName(project: "p"),
                startTime: Timestamp(microseconds: 1))
            try writer.write(path: "a/b", fields: [])
            #expect(
                try FileManager.default.contentsOfDirectory(atPath: folder.path).first?.hasPrefix("x.partial-") == true)
            writer.abandon()
        }
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path).isEmpty)
    }

    @Test func namesThatFilesCannotHaveAreRefusedAtTheBeginning() throws {
        let folder = TemporaryFolder()
        let long = String(repeating: "é", count: 120)
        for (name, ids) in [(long, nil), ("n", ["c", long])] {
            #expect(throws: Status.self) {
                _ = try ExportFolderWriter(
                    folder.path + "/x", name: name, database: DatabaseName(project: "p"), collectionIDs: ids,
                    startTime: Timestamp(microseconds: 1))
            }
        }
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path).isEmpty)
    }

    @Test func onlyAnEmptyFolderIsReplacedUnasked() throws {
        let folder = TemporaryFolder()
        let path = folder.path + "/x"
        let document = ExportedDocument(path: "a/b", fields: [])
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
        _ = try Self.write([document], to: path, database: DatabaseName(project: "p"))
        #expect(throws: Status.self) { _ = try Self.write([], to: path, database: DatabaseName(project: "p")) }
        #expect(try TestData.read(path).keys.sorted() == ["a/b"])
        _ = try Self.write([], to: path, database: DatabaseName(project: "p"), replaces: true)
        #expect(try TestData.read(path).isEmpty)
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path) == ["x"])
    }

    // MARK: Files outside, and twice

    /// The same, with another name of the file in the metadata.
    private static func rename(_ name: String, in copy: String) throws {
        let path = try TestData.file(".export_metadata", in: copy)
        var bytes = try TestData.bytes(path)
        let old: [UInt8] = [0x12, 8] + Array("output-0".utf8)
        let start = try #require(bytes.indices.first { bytes[$0...].starts(with: old) })
        let new: [UInt8] = [0x12, UInt8(name.utf8.count)] + Array(name.utf8)
        bytes.replaceSubrange(start..<(start + old.count), with: new)
        // The length of the message around it.
        bytes[start - 3] = UInt8(Int(bytes[start - 3]) + name.utf8.count - 8)
        try TestData.write(bytes, to: path)
    }

    @Test(arguments: [
        ("../../../outside", "outside of the export"), ("/etc/passwd", "cannot be read"), ("../all_kinds/output-0", ""),
        ("link", "outside of the export"), ("", "cannot be"), ("output-0\0x", "cannot be"), (".", "not a file"),
        ("fifo", "not a file"), ("output-1", "No such file"),
    ])
    func filesAreInsideOfTheFolder(_ name: String, _ reason: String) throws {
        let folder = TemporaryFolder()
        let copy = try TestData.copy(TestData.folder("suite"), to: folder)
        let output = try TestData.file("output-0", in: copy)
        let own = String(output.dropLast("output-0".count))
        try FileManager.default.copyItem(atPath: output, toPath: folder.path + "/outside")
        try FileManager.default.createSymbolicLink(atPath: own + "link", withDestinationPath: folder.path + "/outside")
        mkfifo(own + "fifo", 0o600)
        try Self.rename(name, in: copy)
        let message = TestData.message { _ = try TestData.read(copy) }
        #expect(message?.contains(reason) ?? reason.isEmpty, "\(message ?? "nil")")
        #expect(reason.isEmpty == (message == nil))
    }

    @Test func aFileIsNamedOnce() throws {
        let folder = TemporaryFolder()
        let copy = try TestData.copy(TestData.folder("production-form"), to: folder)
        let path = try TestData.file(".export_metadata", in: copy)
        var bytes = try TestData.bytes(path)
        let second = try #require(bytes.indices.first { bytes[$0...].starts(with: Array("output-1".utf8)) })
        bytes[second + 7] = UInt8(ascii: "0")
        try TestData.write(bytes, to: path)
        #expect(TestData.message { _ = try TestData.read(copy) }?.contains("for the second time: output-0") == true)
    }

    @Test(arguments: [-1, 1 << 62, .max]) func countsThatNoExportHasAreRefused(_ count: Int64) throws {
        let folder = TemporaryFolder()
        for name in ["a", "b"] { folder.write("\(name).export_metadata", "") }
        var message = ProtobufWriter()
        for name in ["a", "b"] {
            message.varint(1 << 3 | 2)
            let start = message.beginLength()
            message.varint(2 << 3 | 2)
            message.lengthDelimited(Array("\(name).export_metadata".utf8))
            message.varint(3 << 3)
            message.varint(UInt64(bitPattern: count))
            message.endLength(start)
        }
        let writer = LogWriter(try FileSink(folder.path + "/x.overall_export_metadata"))
        try writer.append([UInt8(ascii: "3")])
        try writer.append(message.bytes)
        try writer.finish()
        #expect(TestData.message { _ = try ExportFolder(folder.path).documentCount }?.contains("malformed") == true)
    }

    @Test func aFolderWithoutOrWithTwoExportsIsRefused() throws {
        let folder = TemporaryFolder()
        #expect(TestData.message { _ = try TestData.read(folder.path) }?.contains("no export") == true)
        folder.write("a.overall_export_metadata", "")
        folder.write("b.overall_export_metadata", "")
        #expect(TestData.message { _ = try TestData.read(folder.path) }?.contains("2 exports") == true)
        #expect(
            TestData.message { _ = try TestData.read(folder.path + "/a.overall_export_metadata") }?.contains("version")
                == true)
    }

    // MARK: Lines

    @Test func linesAreRefusedWithTheirNumber() {
        func message(_ lines: String) -> String? {
            TestData.message {
                let reader = LineReader(MemorySource(Array(lines.utf8), name: "f"))
                while try reader.next() != nil {}
            }
        }
        #expect(message("") == nil)
        #expect(
            message("\n \r\n{\"name\":\"a/b\",\"createTime\":\"2024-01-01T00:00:00Z\"}\n\n{\"name\":\"a/c\"}") == nil)
        #expect(message("{\"name\":\"a/b\"}\n{\"name\":")?.hasPrefix("f:2: ") == true)
        #expect(message("\n\n{}")?.hasPrefix("f:3: ") == true)
        #expect(message("{\"name\":\"a/b\",\"x\":1}")?.hasPrefix("f:1: ") == true)
        #expect(
            message("{\"name\":\"\u{0}\(String(repeating: "a", count: 32 << 20))")?.hasPrefix("f:1: the line is longer")
                == true)
    }
}
