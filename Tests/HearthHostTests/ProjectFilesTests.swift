import HearthTestSupport
import HearthModel
import Testing

@testable import HearthHost

@Suite struct ProjectFilesTests {
    private static let indexes = """
        {"indexes": [{"collectionGroup": "c", "fields": [
            {"fieldPath": "a", "order": "ASCENDING"}, {"fieldPath": "b", "order": "ASCENDING"}]}]}
        """

    @Test func anEmptyFolderConfiguresNothing() throws {
        #expect(try ProjectFiles(folder: TemporaryFolder().path) == ProjectFiles())
    }

    @Test func oneDatabase() throws {
        let folder = TemporaryFolder()
        folder.write(".firebaserc", #"{"projects": {"default": "shop", "staging": "shop-2"}}"#)
        folder.write(
            "firebase.json",
            """
            {"hosting": {"public": "x"}, "firestore": {"rules": "r.rules", "indexes": "i.json"},
             "emulators": {"firestore": {"port": 9099, "host": "::1"}, "ui": {"port": 1}}}
            """)
        folder.write("i.json", Self.indexes)
        let files = try ProjectFiles(folder: folder.path)
        #expect(files.defaultProject == "shop")
        #expect(files.port == 9099)
        #expect(files.host == "::1")
        #expect(
            files.databases == [
                .init(database: "(default)", indexes: folder.path + "/i.json", rules: folder.path + "/r.rules")
            ])
        #expect(try files.indexConfigurations()["(default)"]?.indexes.count == 1)
    }

    @Test func severalDatabases() throws {
        let folder = TemporaryFolder()
        let path = "\(folder.path)/elsewhere.json"
        folder.write("elsewhere.json", Self.indexes)
        folder.write(
            "firebase.json", #"{"firestore": [{"database": "(default)"}, {"database": "eu", "indexes": "\#(path)"}]}"#)
        var files = try ProjectFiles(folder: folder.path)
        #expect(files.databases.map(\.database) == ["(default)", "eu"])
        #expect(files.databases[1].indexes == path)
        files.databases[1].indexes = "/abs/i.json"
        #expect(throws: Status.failedPrecondition("The index file /abs/i.json is not there.")) {
            try files.indexConfigurations()
        }
    }

    @Test func rulesOfTheRealtimeDatabase() throws {
        let folder = TemporaryFolder()
        folder.write(
            "firebase.json",
            #"{"database": {"rules": "d.json"}, "emulators": {"database": {"host": "::1", "port": 9001}}}"#)
        let files = try ProjectFiles(folder: folder.path).realtime
        #expect(files.rules == folder.path + "/d.json")
        #expect(files.host == "::1" && files.port == 9001)
    }

    @Test func rulesOfSeveralRealtimeDatabases() throws {
        let folder = TemporaryFolder()
        folder.write(
            ".firebaserc",
            #"{"projects": {"default": "p"}, "targets": {"p": {"database": {"main": ["p-1", "p-2"]}}}}"#)
        folder.write(
            "firebase.json",
            """
            {"database": [{"target": "main", "rules": "m.json"}, {"instance": "i", "rules": "i.json"},
                          {"rules": "all.json"}]}
            """)
        let files = try ProjectFiles(folder: folder.path)
        #expect(files.realtime.rules == folder.path + "/all.json")
        #expect(
            files.realtime.rulesByName == [
                "p-1": folder.path + "/m.json", "p-2": folder.path + "/m.json", "i": folder.path + "/i.json",
            ])
        #expect(files.warnings.isEmpty)
    }

    @Test func rulesOfTheRealtimeDatabaseAloneAreUsed() throws {
        let folder = TemporaryFolder()
        folder.write("database.rules.json", "{}")
        #expect(try ProjectFiles(folder: folder.path).realtime.rules == folder.path + "/database.rules.json")
    }

    @Test func anIndexFileAloneIsUsed() throws {
        let folder = TemporaryFolder()
        folder.write("firestore.indexes.json", Self.indexes)
        #expect(try ProjectFiles(folder: folder.path).indexConfigurations()["(default)"]?.indexes.count == 1)
    }

    @Test func errorsNameTheirLocation() {
        let cases: [(file: String, string: String, words: String)] = [
            ("firebase.json", "{\n  \"firestore\": tru }", "/firebase.json:2:16: This is not valid JSON"),
            ("firebase.json", #"{"firestore": 1}"#, "firestore: Expected an object, found a number."),
            ("firebase.json", #"{"emulators": {"firestore": {"port": 99999}}}"#, "emulators.firestore.port: "),
            (
                "firebase.json", #"{"firestore": [{}, {"rules": "r"}]}"#,
                "firestore[1]: The database (default) is in the list"
            ),
        ]
        for (file, string, words) in cases {
            let folder = TemporaryFolder()
            folder.write(file, string)
            let failure = #expect(throws: Status.self, "\(string)") { try ProjectFiles(folder: folder.path) }
            #expect(failure?.message.contains(words) == true, "\(failure?.message ?? "")")
        }
    }
}
