import Foundation
import HearthExport
import HearthModel
import HearthTestDoubles
import HearthTestSupport
import HearthWire
import Testing

@testable import HearthDocuments
@testable import HearthFirestoreServer

/// `ExportDocuments` and `ImportDocuments`.
@Suite struct AdminTransferTests {
    private let folder = TemporaryFolder()
    private let harness: AdminHarness
    private let clock = StoppedClock()

    init() throws {
        harness = try AdminHarness(exportFolder: folder.path + "/exports", clock: clock)
    }

    private var root: String { folder.path + "/exports" }

    private func begin(_ method: String, _ body: String) async throws -> OperationMessage {
        try await harness.call("POST", "\(harness.root):\(method)Documents", body, as: OperationMessage.self)
    }

    private func refusal(_ method: String, _ body: String) async throws -> Status.Code? {
        try await harness.refusal("POST", "\(harness.root):\(method)Documents", body)?.code
    }

    private func put(_ count: Int) async throws {
        for number in 0..<count { try await harness.database.put("c/\(number)", ["n": .integer(Int64(number))]) }
        try await harness.database.put("c/0/d/x", ["n": .integer(1)])
    }

    @Test func anExportIsImportedAgain() async throws {
        try await put(20)
        let begun = try await begin("export", #"{"outputUriPrefix": "a b/one", "collectionIds": ["c"]}"#)
        let early = try #require(try begun.metadata?.unpacked(ExportDocumentsMetadata.self))
        let uri = "file://\(root)/a%20b/one"
        #expect(early.outputUriPrefix == uri && early.collectionIds == ["c"] && early.startTime != nil)
        let ended = try await harness.end(of: begun)
        #expect(ended.error == nil)
        #expect(try ended.response?.unpacked(ExportDocumentsResponse.self)?.outputUriPrefix == uri)
        let metadata = try #require(try ended.metadata?.unpacked(ExportDocumentsMetadata.self))
        #expect(metadata.operationState == .successful && metadata.endTime != nil && metadata.snapshotTime != nil)
        let documents = try #require(metadata.progressDocuments)
        #expect(documents.completedWork == 20 && documents.estimatedWork == 20)
        let bytes = try #require(metadata.progressBytes)
        #expect(bytes.completedWork > 20 && bytes.estimatedWork == bytes.completedWork)
        #expect(try TransferData.names(root + "/a b").contains("one/one.overall_export_metadata"))

        let before = try TransferData.documents(harness.database)
        try await harness.database.put("c/3", ["changed": .integer(1)])
        let again = try await harness.end(of: try await begin("import", #"{"inputUriPrefix": "\#(uri)"}"#))
        #expect(again.error == nil && again.response?.typeURL == "type.googleapis.com/google.protobuf.Empty")
        let imported = try #require(try again.metadata?.unpacked(ImportDocumentsMetadata.self))
        #expect(imported.operationState == .successful && imported.inputUriPrefix == uri)
        #expect(imported.progressDocuments?.completedWork == 20 && imported.progressDocuments?.estimatedWork == 20)
        #expect(try TransferData.documents(harness.database) == before)
        #expect(try await refusal("export", #"{"outputUriPrefix": "\#(uri)"}"#) == .alreadyExists)
    }

    @Test func namesAreGenerated() async throws {
        let begun = try await begin("export", "{}")
        let ended = try await harness.end(of: begun)
        let uri = try #require(try ended.response?.unpacked(ExportDocumentsResponse.self)).outputUriPrefix
        #expect(uri == "file://\(root)/2023-11-14T22:13:20_00000")
        #expect(try TransferData.names(root).contains { $0.hasSuffix("_00000.overall_export_metadata") })
    }

    @Test func urisOutsideOfTheFolderAreRefused() async throws {
        try FileManager.default.createDirectory(atPath: folder.path + "/outside", withIntermediateDirectories: true)
        try FileManager.default.createSymbolicLink(
            atPath: root + "/link", withDestinationPath: folder.path + "/outside")
        try FileManager.default.createSymbolicLink(atPath: root + "/round", withDestinationPath: "round")
        for (uri, code) in [
            ("gs://bucket/x", Status.Code.invalidArgument), ("s3://bucket/x", .invalidArgument),
            ("file://host/x", .invalidArgument), ("file:x%zz", .notFound), ("../x", .permissionDenied),
            ("a/../../x", .permissionDenied), ("../\u{301}x", .permissionDenied), ("/etc", .permissionDenied),
            ("file:///etc", .permissionDenied),
            ("link/x", .permissionDenied), ("link", .permissionDenied), ("file://\(root)-more/x", .permissionDenied),
            ("round/x", .invalidArgument), ("absent", .notFound), ("a/./../absent", .notFound), (".", .invalidArgument),
            ("", .invalidArgument),
        ] {
            #expect(try await refusal("import", #"{"inputUriPrefix": "\#(uri)"}"#) == code, "\(uri)")
            if code == .permissionDenied || uri.hasPrefix("gs:") {
                #expect(try await refusal("export", #"{"outputUriPrefix": "\#(uri)"}"#) == code, "\(uri)")
            }
        }
        #expect(try TransferData.names(folder.path + "/outside").isEmpty)
        // A file of an export that is a link.
        folder.write("outside/x.overall_export_metadata", "")
        try FileManager.default.createDirectory(atPath: root + "/linked", withIntermediateDirectories: true)
        try FileManager.default.createSymbolicLink(
            atPath: root + "/linked/linked.overall_export_metadata",
            withDestinationPath: folder.path + "/outside/x.overall_export_metadata")
        #expect(try await refusal("import", #"{"inputUriPrefix": "linked"}"#) == .permissionDenied)
        let without = AdminHarness()
        let status = try await without.refusal("POST", "\(without.root):exportDocuments", "{}")
        #expect(status?.code == .failedPrecondition && status?.message.contains("--export-folder") == true)
    }

    /// As one character, a slash and the accent behind it would not be a slash.
    @Test func namesMayBeginWithAnAccent() async throws {
        try await put(3)
        let ended = try await harness.end(of: try await begin("export", #"{"outputUriPrefix": "a/\u0301x"}"#))
        #expect(ended.error == nil)
        #expect(try FileManager.default.contentsOfDirectory(atPath: root + "/a") == ["\u{301}x"])
        #expect(try TransferData.export(root + "/a/\u{301}x") == TransferData.documents(harness.database))
    }

    /// The next start would remove it.
    @Test func namesOfUnfinishedExportsAreNoNames() async throws {
        for uri in [".partial-x", "a/.partial-x/b", "file://\(root)/.partial-"] {
            #expect(try await refusal("export", #"{"outputUriPrefix": "\#(uri)"}"#) == .invalidArgument, "\(uri)")
        }
        #expect(try await refusal("export", #"{"outputUriPrefix": "a.partial-x/partial-x"}"#) == nil)
    }

    /// Noticed before documents are read, not when all else is written.
    @Test func namesThatFilesCannotHaveAreRefused() async throws {
        let long = String(repeating: "x", count: 240)
        for body in [#"{"outputUriPrefix": "\#(long)"}"#, #"{"outputUriPrefix": "y", "collectionIds": ["\#(long)"]}"#] {
            let ended = try await harness.end(of: try await begin("export", body))
            #expect(ended.error?.code == 3 && ended.error?.message.contains("longer than 255 bytes") == true)
        }
        #expect(try TransferData.names(root).isEmpty)
        let uri = String(repeating: "./", count: 2049)
        #expect(try await refusal("import", #"{"inputUriPrefix": "\#(uri)"}"#) == .invalidArgument)
    }

    @Test func membersAreChecked() async throws {
        let many = (0...100).map { "\"c\($0)\"" }.joined(separator: ", ")
        for (body, code) in [
            (#"{"collectionIds": [\#(many)]}"#, Status.Code.invalidArgument),
            (#"{"namespaceIds": ["", ""]}"#, .invalidArgument),
            (#"{"namespaceIds": ["x"]}"#, .invalidArgument),
            (#"{"collectionIds": ["a", "a"]}"#, .invalidArgument), (#"{"collectionIds": ["a/b"]}"#, .invalidArgument),
            (#"{"snapshotTime": "2023-11-14T22:13:00.5Z"}"#, .invalidArgument),
            (#"{"snapshotTime": "2023-11-14T22:12:30Z"}"#, .invalidArgument),
            (#"{"snapshotTime": "2023-11-14T22:14:00Z"}"#, .invalidArgument),
            (#"{"snapshotTime": "2023-11-14T21:00:00Z"}"#, .failedPrecondition),
        ] {
            #expect(try await refusal("export", body) == code, "\(body)")
        }
        let absent = try await harness.refusal("POST", "projects/p/databases/absent:exportDocuments", "{}")
        #expect(absent?.code == .notFound)
        #expect(try TransferData.names(root).isEmpty)
    }

    /// Bytes are compared: Unicode's two forms of "é" are two collections.
    @Test func idsAreTheSameByTheirBytes() throws {
        let ids = ["\u{e9}", "e\u{301}", "c"]
        #expect(try AdminService.collectionIDs(ids, [])?.map { Array($0.utf8) } == ids.map { Array($0.utf8) })
        let distinct = try AdminService.collectionIDs(ids + ids, [], ignoresRepeats: true)
        #expect(distinct?.map { Array($0.utf8) } == ids.map { Array($0.utf8) })
        #expect(throws: Status.self) { try AdminService.collectionIDs(["c", "c"], []) }
        let many = (0..<Limits.collectionFiltersMax).map { "c\($0)" }
        #expect(try AdminService.collectionIDs(many, [])?.count == many.count)
        #expect(try AdminService.collectionIDs([], [], ignoresRepeats: true) == nil)
    }

    @Test func longPathsAreRefused() async throws {
        let longest = "a" + String(repeating: "/a", count: 2047)
        #expect(try await refusal("export", #"{"outputUriPrefix": "\#(longest)/"}"#) == .invalidArgument)
        #expect(try await refusal("import", #"{"inputUriPrefix": "\#(longest)"}"#) == .notFound)
    }

    @Test func aSnapshotTimeIsThatMoment() async throws {
        clock.advance(seconds: 30)
        try await put(3)
        clock.advance(seconds: 60)
        let before = try TransferData.documents(harness.database)
        try await harness.database.put("c/0", ["n": .integer(9)])
        let body = #"{"outputUriPrefix": "past", "snapshotTime": "2023-11-14T22:14:00Z", "namespaceIds": [""]}"#
        let ended = try await harness.end(of: try await begin("export", body))
        #expect(ended.error == nil)
        #expect(try TransferData.export(root + "/past") == before)
        let metadata = try #require(try ended.metadata?.unpacked(ExportDocumentsMetadata.self))
        #expect(metadata.snapshotTime?.seconds == 1_700_000_040)
    }

    @Test func damagedExportsFailAsOperations() async throws {
        try FileManager.default.copyItem(atPath: TransferData.folder("types"), toPath: root + "/types")
        let file = try TransferData.file("output-0", in: root + "/types")
        var bytes = [UInt8](try Data(contentsOf: URL(filePath: file)))
        bytes[5000] ^= 1
        try Data(bytes).write(to: URL(filePath: file))
        let ended = try await harness.end(of: try await begin("import", #"{"inputUriPrefix": "types"}"#))
        #expect(ended.error?.code == 3 && ended.error?.message.contains("checksum differs") == true)
        #expect(try ended.metadata?.unpacked(ImportDocumentsMetadata.self)?.operationState == .failed)
        #expect(try TransferData.documents(harness.database).isEmpty)
    }

    @Test func tooManyAtATimeAreRefused() async throws {
        let controls = (0..<Limits.transfersMax).map { _ in TransferControl() }
        for control in controls { try harness.transfers.enter(control) }
        #expect(try await refusal("export", #"{"outputUriPrefix": "x"}"#) == .resourceExhausted)
        for control in controls { harness.transfers.leave(control) }
        #expect(try await refusal("export", #"{"outputUriPrefix": "x"}"#) == nil)
    }

    /// One that could not be stored is not counted.
    @Test func operationsThatDoNotBeginAreNotUnderWay() async throws {
        let store = FaultyStore()
        let harness = try AdminHarness(provider: OneStore(store), exportFolder: root, clock: clock)
        try await harness.database.put("c/d", ["n": .integer(1)])
        let path = "\(harness.root):exportDocuments"
        for _ in 0...Limits.transfersMax {
            store.refuse(transactions: 1)
            #expect(try await harness.refusal("POST", path, #"{"outputUriPrefix": "x"}"#)?.code == .unavailable)
        }
        #expect(try await harness.refusal("POST", path, #"{"outputUriPrefix": "x"}"#) == nil)
    }

    /// What an earlier process left is removed at the start, and nothing else.
    @Test func unfinishedExportsAreRemovedAtTheStart() throws {
        let manager = FileManager.default
        for path in ["a/.partial-x/all_namespaces", "a/b/.partial-y", "a/partial-z"] {
            try manager.createDirectory(atPath: "\(root)/\(path)", withIntermediateDirectories: true)
        }
        _ = try ExportRoot(root)
        #expect(try TransferData.names(root) == ["a", "a/b", "a/partial-z"])
    }

    @Test func exportsAndDataAreApart() throws {
        for (exports, data) in [("a", "a"), ("a/b", "a"), ("a", "a/b"), ("a/../a/b", "a")] {
            for path in ["a", "a/b"] {
                try FileManager.default.createDirectory(
                    atPath: "\(folder.path)/\(path)", withIntermediateDirectories: true)
            }
            #expect(throws: Status.self, "\(exports) \(data)") {
                try ExportRoot("\(folder.path)/\(exports)", dataFolder: "\(folder.path)/\(data)")
            }
        }
        _ = try ExportRoot("\(folder.path)/ab", dataFolder: "\(folder.path)/a")
    }
}
