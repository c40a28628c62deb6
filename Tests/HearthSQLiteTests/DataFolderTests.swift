import Glibc
import HearthModel
import HearthStorage
import Testing

@testable import HearthSQLite

/// File names, and who may use a folder.
struct DataFolderTests {
    static let ids = [
        "demo-shop", "(default)", "example.com:app", "a/b", "..", ".", ".hidden", "a.b", "%2f", "a%", "ÄÖ", "e\u{301}",
        "\u{E9}", "日本語", "😀", "A", "a", "~", "x.sqlite", "lock", "new line\n", " ", "\u{0}", "x.id",
        String(repeating: "p", count: 100), String(repeating: "p", count: 101), String(repeating: "ü", count: 200),
        String(repeating: "ü", count: 199) + "u", String(repeating: "/", count: 1500),
    ]

    @Test func namesAreSafeAndDistinct() {
        var seen: Set<String> = []
        for id in Self.ids {
            let component = DatabaseFileName.component(id)
            #expect(seen.insert(component).inserted, "\(id)")
            #expect(component.utf8.count + "\(DatabaseFileName.suffix)-wal".utf8.count <= 255)
            #expect(component.first != "." && !component.isEmpty)
            #expect(component.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: "/") })
            #expect(component.lowercased() == component)
            if !DatabaseFileName.isShortened(component) {
                #expect(DatabaseFileName.id(ofComponent: component).map { Array($0.utf8) } == Array(id.utf8))
            }
        }
        #expect(DatabaseFileName.component("demo-shop") == "demo-shop")
        #expect(DatabaseFileName.component("example.com:app") == "example.com%3aapp")
        for foreign in ["", "A", "%2F", "%61", "%f", ".x", "a b", "%ff"] {
            #expect(DatabaseFileName.id(ofComponent: foreign) == nil, "\(foreign)")
        }
    }

    @Test func oddIdsComeBackFromAFolder() throws {
        let folder = TemporaryFolder()
        var expected: Set<[UInt8]> = []
        do {
            let provider = try SQLiteStoreProvider(path: folder.path + "/new/data")
            for id in Self.ids {
                for name in [DatabaseName(project: id), DatabaseName(project: "p", database: id)] {
                    expected.insert(Array(name.text.utf8))
                    let store = try provider.open(name)
                    try store.write { transaction throws(Status) in
                        try transaction.put(.meta, [], Array(name.text.utf8))
                    }
                    store.close()
                }
            }
        }
        let provider = try SQLiteStoreProvider(path: folder.path + "/new/data")
        let found = try provider.databases()
        #expect(Set(found.map { Array($0.text.utf8) }) == expected)
        #expect(found.count == expected.count)
        for name in found {
            let store = try provider.open(name)
            #expect(try store.snapshot().get(.meta, []) == Array(name.text.utf8))
            store.close()
            try provider.delete(name)
        }
        #expect(try provider.databases() == [])
        #expect(try DataFolder.names(folder.path + "/new/data") == [".lock"])
    }

    @Test func anIdWithTheFileNameOfAnotherIsRefused() throws {
        let folder = TemporaryFolder()
        let provider = try SQLiteStoreProvider(path: folder.path)
        let id = String(repeating: "p", count: 200)
        try provider.open(DatabaseName(project: id)).close()
        try DataFolder.write("another", folder.path + "/" + DatabaseFileName.component(id) + ".id")
        #expect(throws: Status.self) { try provider.open(DatabaseName(project: id)) }
        #expect(throws: Status.self) { try provider.delete(DatabaseName(project: id)) }
    }

    @Test func emptyAndEndlessIdsAreRefused() throws {
        let folder = TemporaryFolder()
        let provider = try SQLiteStoreProvider(path: folder.path)
        for id in ["", String(repeating: "p", count: 1501)] {
            #expect(throws: Status.self) { try provider.open(DatabaseName(project: id)) }
            #expect(throws: Status.self) { try provider.open(DatabaseName(project: "p", database: id)) }
        }
        #expect(try provider.databases() == [])
    }

    @Test func aFolderHasOneProcess() throws {
        let folder = TemporaryFolder()
        var first: SQLiteStoreProvider? = try SQLiteStoreProvider(path: folder.path)
        #expect(
            throws: Status.failedPrecondition(
                "Another hearth process (\(getpid())) uses the data folder \(folder.path).")
        ) { try SQLiteStoreProvider(path: folder.path) }
        var store: (any Store)? = try first?.open(DatabaseName(project: "p"))
        first = nil
        // A store in use keeps the folder.
        #expect(throws: Status.self) { try SQLiteStoreProvider(path: folder.path) }
        store?.close()
        store = nil
        _ = try SQLiteStoreProvider(path: folder.path)
    }

    @Test func aFolderThatCannotBeUsedIsNamed() throws {
        let folder = TemporaryFolder()
        try DataFolder.write("text", folder.path + "/file")
        #expect(
            throws: Status.failedPrecondition("Cannot make the folder \(folder.path)/file/data: Not a directory.")
        ) { try SQLiteStoreProvider(path: folder.path + "/file/data") }
    }

    @Test func otherFilesInAFolderAreNoDatabases() throws {
        let folder = TemporaryFolder()
        let provider = try SQLiteStoreProvider(path: folder.path)
        try DataFolder.makeFolder(folder.path + "/Project/with/more")
        try DataFolder.makeFolder(folder.path + "/p")
        for file in ["notes.txt", "p/UPPER.sqlite", "p/x.sqlite-wal", "p/y.db", "Project/d.sqlite"] {
            try DataFolder.write("", folder.path + "/" + file)
        }
        #expect(try provider.databases() == [])
    }
}
