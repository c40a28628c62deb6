@testable import HearthToolSupport
import HearthFirestoreServer
import HearthModel
import HearthRules
import HearthTestSupport
import Testing

@testable import hearth

/// Flaws of the files of a Firebase project. What Firebase's tools take is taken, most with a warning that names file, line
/// and member; what they refuse, and what would leave data open, is refused.
@Suite struct ProjectFlawTests {
    private enum File: String, CaseIterable {
        case firebase = "firebase.json"
        case projects = ".firebaserc"
        case indexes = "firestore.indexes.json"
        case settings = "hearth.json"
        case databaseRules = "database.rules.json"
        case cases = "cases.json"
        case export = "firebase-export-metadata.json"

        /// A valid file, without the brace at its end.
        var start: String {
            switch self {
            case .firebase: #"{"firestore": {"indexes": "i.json"}"#
            case .projects: #"{"projects": {"default": "p"}"#
            case .indexes: #"{"indexes": []"#
            case .settings: #"{"host": "127.0.0.1""#
            case .databaseRules: #"{"rules": {".read": true}"#
            case .cases: #"{"testCases": []"#
            case .export: #"{"version": "1""#
            }
        }

        /// The same with a member twice.
        var startWithDuplicate: String {
            switch self {
            case .firebase: #"{"firestore": {"indexes": "a.json"}, "firestore": {"indexes": "i.json"}"#
            case .projects: #"{"projects": {"default": "a", "default": "p"}"#
            case .indexes: #"{"indexes": [], "indexes": []"#
            case .settings: #"{"host": "::1", "host": "127.0.0.1""#
            case .databaseRules: #"{"rules": {".read": false, ".read": true}"#
            case .cases: #"{"testCases": [], "testCases": []"#
            case .export: #"{"version": "0", "version": "1""#
            }
        }
    }

    private enum Flaw: CaseIterable {
        case none, byteOrderMark, comments, duplicate, invalidUTF8, trailingComma, empty, list, truncated

        func bytes(_ file: File) -> [UInt8] {
            switch self {
            case .none: Array("\(file.start)}".utf8)
            case .byteOrderMark: [0xEF, 0xBB, 0xBF] + Flaw.none.bytes(file)
            case .comments: Array("// one\n/* two */ \(file.start) /* three */ }".utf8)
            case .duplicate: Array("\(file.startWithDuplicate)}".utf8)
            case .invalidUTF8: Array("\(file.start), \"x".utf8) + [0xFF] + Array("\": 1}".utf8)
            case .trailingComma: Array("\(file.start),}".utf8)
            case .empty: []
            case .list: Array("[]".utf8)
            case .truncated: Array(file.start.utf8)
            }
        }
    }

    private enum Outcome: Equatable {
        case taken
        case warned(String)
        case refused(String)

        func matches(_ expected: Outcome) -> Bool {
            switch (self, expected) {
            case (.taken, .taken): true
            case (.warned(let text), .warned(let words)), (.refused(let text), .refused(let words)):
                text.contains(words)
            default: false
            }
        }
    }

    private static let utf8 = "The line is not valid UTF-8"
    private static let json = "This is not valid JSON"

    private static func expected(_ file: File, _ flaw: Flaw) -> Outcome {
        let twice = Outcome.warned("The member is in the object more than once; the last one counts.")
        let mark = Outcome.warned("\(file.rawValue):1:1: The file begins with a byte order mark")
        switch (file, flaw) {
        case (_, .none): return .taken
        case (.firebase, .byteOrderMark), (.projects, .byteOrderMark), (.indexes, .byteOrderMark),
            (.settings, .byteOrderMark):
            return mark
        case (.firebase, .comments), (.projects, .comments), (.indexes, .comments), (.settings, .comments):
            return .taken
        case (.firebase, .duplicate), (.projects, .duplicate), (.indexes, .duplicate), (.settings, .duplicate):
            return twice
        case (.firebase, .invalidUTF8), (.projects, .invalidUTF8), (.indexes, .invalidUTF8): return .warned(Self.utf8)
        case (.settings, .invalidUTF8): return .refused("not valid UTF-8")
        case (.firebase, .empty): return .warned("firebase.json:1:1: The file is empty, and counts as absent.")
        case (.projects, .trailingComma), (.projects, .empty), (.projects, .truncated), (.projects, .list):
            return .warned("no project and no target is known")
        case (.firebase, .list), (.indexes, .list), (.settings, .list): return .refused("Expected an object")
        case (.firebase, _), (.indexes, _), (.settings, _): return .refused(Self.json)
        // Rules of the Realtime Database are JavaScript's literals rather than JSON: they may have comments and a comma at
        // the end of an object.
        case (.databaseRules, .byteOrderMark), (.databaseRules, .comments), (.databaseRules, .trailingComma):
            return .taken
        case (.databaseRules, _): return .refused("")
        // A list alone is a form of its own.
        case (.cases, .byteOrderMark), (.cases, .duplicate), (.cases, .list): return .taken
        case (.cases, _): return .refused("cases.json")
        // Firebase's tools read it as plain JSON.
        case (.export, .duplicate): return .taken
        case (.export, _): return .refused("firebase-export-metadata.json")
        default: return .taken
        }
    }

    private func outcome(_ file: File, _ bytes: [UInt8]) throws -> Outcome {
        let folder = TemporaryFolder()
        folder.write(file.rawValue, bytes)
        let path = "\(folder.path)/\(file.rawValue)"
        do {
            switch file {
            case .firebase, .projects, .indexes, .settings:
                if file == .firebase { folder.write("i.json", #"{"indexes": []}"#) }
                let warnings = try ServeResolution.settings([], environment: [:], folder: folder.path).warnings
                return warnings.isEmpty ? .taken : .warned(warnings.joined(separator: "\n"))
            case .databaseRules: _ = try TreeRuleset.compile(bytes)
            case .cases: _ = try RulesCommand.cases(path)
            case .export: _ = try SuiteFolder(folder.path)
            }
            return .taken
        } catch let error as ToolFailure {
            return .refused(error.message)
        } catch let error as Status {
            return .refused(error.message)
        } catch let error as TreeRulesError {
            return .refused(error.message)
        }
    }

    @Test func everyFlawInEveryFile() throws {
        for file in File.allCases {
            for flaw in Flaw.allCases {
                let outcome = try outcome(file, flaw.bytes(file))
                #expect(outcome.matches(Self.expected(file, flaw)), "\(file.rawValue), \(flaw): \(outcome)")
            }
        }
    }

    // MARK: Members

    private struct Row {
        /// `firebase.json`.
        var firebase: String
        var projects: String?
        var indexes: String?
        var options: [String] = []
        var outcome: Outcome
        var check: @Sendable (ServeSettings, String) -> Bool = { _, _ in true }
    }

    private static let two = #"{"fieldPath": "a", "order": "ASCENDING"}, {"fieldPath": "b", "order": "ASCENDING"}"#
    private static let named =
        #"{"fieldPath": "a", "order": "ASCENDING"}, {"fieldPath": "b", "order": "ASCENDING"}, {"fieldPath": "__name__", "order": "ASCENDING"}"#

    private static let shapes: [Row] = [
        Row(
            firebase: #"{"emulators": {"firestore": {"port": "9099"}}}"#,
            outcome: .warned("emulators.firestore.port: A port is a number; 9099 is used."),
            check: { s, _ in s.port == 9099 }),
        Row(
            firebase: #"{"emulators": {"database": {"port": " 9001x"}}}"#,
            outcome: .warned("emulators.database.port: A port is a number; 9001 is used."),
            check: { s, _ in s.databasePort == 9001 }),
        Row(
            firebase: #"{"emulators": {"firestore": {"port": 9099.7}}}"#, outcome: .warned("9099 is used"),
            check: { s, _ in s.port == 9099 }),
        Row(
            firebase: #"{"emulators": {"firestore": {"port": "", "host": ""}}}"#,
            outcome: .warned("This counts as absent."),
            check: { s, _ in s.port == 8080 && s.host == "127.0.0.1" }),
        Row(firebase: #"{"emulators": {"firestore": {"port": "x"}}}"#, outcome: .refused("emulators.firestore.port:")),
        Row(
            firebase: #"{"emulators": {"firestore": {"port": "99999"}}}"#,
            outcome: .refused("emulators.firestore.port:")),
        Row(
            firebase: #"{"emulators": {"firestore": 8080}}"#,
            outcome: .warned("emulators.firestore: Expected an object")),
        Row(firebase: #"{"emulators": []}"#, outcome: .warned("emulators: Expected an object; it is ignored.")),
        Row(
            firebase: #"{"emulators": {"singleProjectMode": false, "ui": {"enabled": true}, "auth": {"port": 1}}}"#,
            outcome: .taken),
        Row(
            firebase: #"{"emulators": {"firestore": {"prt": 1}}}"#,
            outcome: .warned(#"emulators.firestore.prt: Unknown member, ignored; did you mean "port"?"#)),
        Row(firebase: #"{"$schema": "x", "hosting": {"public": "p"}, "remoteconfig": {}}"#, outcome: .taken),
        Row(
            firebase: #"{"firestor": {}}"#,
            outcome: .warned(#"firestor: Unknown member, ignored; did you mean "firestore"?"#)),
        Row(firebase: #"{"firestore": false}"#, outcome: .warned("firestore: This counts as absent.")),
        Row(firebase: #"{"firestore": "firestore.json"}"#, outcome: .refused("firestore: Expected an object")),
        Row(
            firebase: #"{"firestore": {"rule": "r"}}"#,
            outcome: .warned(#"firestore.rule: Unknown member, ignored; did you mean "rules"?"#)),
        Row(
            firebase: #"{"firestore": {"rules": ""}}"#,
            outcome: .refused("firestore.rules: Expected the name of a file.")),
        Row(firebase: #"{"firestore": {"rules": ["r"]}}"#, outcome: .refused("firestore.rules: Expected a string")),
        Row(
            firebase: #"{"firestore": [{"rules": "r"}, {"rules": "r"}]}"#,
            outcome: .warned("firestore[1]: The database (default) is in")),
        Row(
            firebase: #"{"firestore": [{"rules": "r"}, {"rules": "s"}]}"#,
            outcome: .refused("firestore[1]: The database (default) is in")),
        Row(firebase: #"{"firestore": {"edition": "standard", "location": "eur3", "database": "x"}}"#, outcome: .taken),
        Row(
            firebase: #"{"rules": "old.json"}"#, outcome: .warned(#"The rules belong into "database""#),
            check: { s, folder in s.databaseRules == "\(folder)/old.json" }),
        Row(
            firebase: #"{"rules": "old.json", "database": [{"instance": "i", "rules": "r"}]}"#,
            outcome: .refused("rules:")),
        Row(
            firebase: #"{"firebase": "old"}"#, outcome: .warned("firebase: The project belongs into .firebaserc"),
            check: { s, _ in s.project == "old" }),
        Row(
            firebase: #"{"database": [{"instance": "i"}]}"#,
            outcome: .refused("database[0]: The member \"rules\" is missing.")),
        Row(
            firebase: #"{"database": [{"instance": "i", "rules": "r"}, {"instance": "i", "rules": "s"}]}"#,
            outcome: .warned("database[1]: The database i has rules already"),
            check: { s, folder in s.databaseRulesByName == ["i": "\(folder)/s"] }),
    ]

    private static let targets: [Row] = [
        Row(
            firebase: #"{"database": [{"target": "main", "rules": "r"}]}"#,
            projects: #"{"projects": {"default": "p"}}"#,
            outcome: .refused("database[0].target: The target main is not in .firebaserc")),
        Row(firebase: #"{"database": [{"target": "main", "rules": "r"}]}"#, outcome: .refused("none is named")),
        Row(
            firebase: #"{"database": [{"target": "main", "rules": "r"}]}"#,
            projects: #"{"projects": {"default": "p"},}"#,
            outcome: .refused("database[0].target: The target main is not in .firebaserc")),
        Row(
            firebase: #"{"database": [{"target": "main", "rules": "r"}]}"#,
            projects: #"{"projects": {"default": "p"}, "targets": {"p": {"database": {"main": []}}}}"#,
            outcome: .refused("targets.p.database.main: The target main names no database.")),
        Row(
            firebase: #"{"database": [{"target": "main", "rules": "r"}]}"#,
            projects: #"{"projects": {"default": "p"}, "targets": {"p": {"database": {"main": "p-1"}}}}"#,
            outcome: .warned("targets.p.database.main: Expected a list"),
            check: { s, folder in s.databaseRulesByName == ["p-1": "\(folder)/r"] }),
        Row(
            firebase: #"{"database": [{"target": "main", "rules": "r"}]}"#,
            projects:
                #"{"projects": {"default": "p", "stage": "q"}, "targets": {"q": {"database": {"main": ["q-1"]}}}}"#,
            options: ["--project", "q"], outcome: .taken,
            check: { s, folder in s.databaseRulesByName == ["q-1": "\(folder)/r"] }),
        Row(
            firebase: #"{"firestore": [{"target": "eu", "rules": "r"}]}"#,
            projects: #"{"projects": {"default": "p"}, "targets": {"p": {"firestore": {"eu": ["a", "b"]}}}}"#,
            outcome: .taken,
            check: { s, folder in s.rules == ["a": "\(folder)/r", "b": "\(folder)/r"] }),
        Row(
            firebase: #"{"firestore": [{"target": "eu", "rules": "r"}]}"#, projects: #"{"projects": {"default": "p"}}"#,
            outcome: .refused("firestore[0].target: The target eu is not in .firebaserc")),
        Row(
            firebase: "{}", projects: #"{"projects": {"prod": "p"}}"#, outcome: .taken,
            check: { s, _ in s.project == "p" }),
        Row(
            firebase: "{}", projects: #"{"projects": {"default": 1}}"#,
            outcome: .warned("projects.default: Expected the id of a project; it is ignored."),
            check: { s, _ in s.project == "demo-hearth" }),
        Row(
            firebase: "{}", projects: #"{"projects": []}"#,
            outcome: .warned("projects: Expected an object; it is ignored.")),
    ]

    private static let indexes: [Row] = [
        Row(
            firebase: #"{"firestore": {"indexes": "none.json"}}"#,
            outcome: .warned("firebase.json:1:27: firestore.indexes: The index file"),
            check: { s, _ in s.indexes.isEmpty }),
        Row(
            firebase: #"{"firestore": {"indexes": "none.json"}}"#, options: ["--require-indexes"],
            outcome: .refused("firestore.indexes: The index file")),
        Row(
            firebase: #"{"firestore": {"indexes": ""}}"#, outcome: .warned("firestore.indexes: This counts as absent.")),
        Row(
            firebase: #"{"firestore": {"indexes": "i.json"}}"#,
            indexes:
                #"{"indexes": [{"collectionGroup": "c", "fields": [\#(two)]}, {"collectionGroup": "c", "fields": [\#(named)]}]}"#,
            outcome: .warned("indexes[1]: This index is in the file more than once."),
            check: { s, _ in s.indexes["(default)"]?.indexes.count == 1 }),
        Row(
            firebase: #"{"firestore": {"indexes": "i.json"}}"#,
            indexes: #"{"indexes": [], "fieldOverrides": [{"collectionGroup": "c", "fieldPath": "a", "indexes": []}, "#
                + #"{"collectionGroup": "c", "fieldPath": "`a`", "indexes": []}]}"#,
            outcome: .warned("fieldOverrides[1]: This field is in the file more than once."),
            check: { s, _ in s.indexes["(default)"]?.overrides.count == 1 }),
        Row(
            firebase: #"{"firestore": {"indexes": "i.json"}}"#,
            indexes:
                #"{"indexes": [], "fieldOverrides": [{"collectionGroup": "c", "fieldPath": "a", "ttl": true, "indexes": []}, "#
                + #"{"collectionGroup": "c", "fieldPath": "a", "indexes": [{"order": "ASCENDING"}]}]}"#,
            outcome: .warned("with other settings; the last ones count"),
            check: { s, _ in s.indexes["(default)"]?.overrides.map(\.indexes.count) == [1] }),
        Row(
            firebase: #"{"firestore": {"indexes": "i.json"}}"#, indexes: #"{"fieldOverrides": []}"#,
            outcome: .warned(#"The member "indexes" is missing"#)),
        Row(
            firebase: #"{"firestore": {"indexes": "i.json"}}"#,
            indexes: #"{"indexes": [{"collectionGroup": "c", "fields": [{"fieldPath": "a", "searchConfig": {}}]}]}"#,
            outcome: .warned("indexes[0].fields[0].searchConfig: A search index")),
        Row(
            firebase: #"{"firestore": {"indexes": "i.json"}}"#,
            indexes:
                #"{"indexes": [{"collectionGroup": "c", "queryScope": "COLLECTION", "fields": [{"fieldPath": "__name__", "order": "DESCENDING"}]}]}"#,
            outcome: .taken, check: { s, _ in s.indexes["(default)"]?.indexes.count == 1 }),
        Row(
            firebase: #"{"firestore": {"indexes": "i.json"}}"#,
            indexes:
                #"{"indexes": [{"collectionGroup": "c", "fields": [{"fieldPath": "v", "vectorConfig": {"dimension": "3", "flat": {}}}]}]}"#,
            outcome: .refused("vectorConfig.dimension: Expected a number")),
    ]

    @Test func flawsOfMembers() throws {
        for row in Self.shapes + Self.targets + Self.indexes {
            let folder = TemporaryFolder()
            folder.write("firebase.json", row.firebase)
            if let projects = row.projects { folder.write(".firebaserc", projects) }
            if let indexes = row.indexes { folder.write("i.json", indexes) }
            let outcome: Outcome
            do throws(ToolFailure) {
                let settings = try ServeResolution.settings(row.options, environment: [:], folder: folder.path)
                outcome = settings.warnings.isEmpty ? .taken : .warned(settings.warnings.joined(separator: "\n"))
                #expect(row.check(settings, folder.path), "\(row.firebase), \(row.projects ?? ""): \(settings)")
            } catch {
                outcome = .refused(error.message)
            }
            #expect(outcome.matches(row.outcome), "\(row.firebase), \(row.projects ?? row.indexes ?? ""): \(outcome)")
        }
    }

    /// git keeps no empty folders, and an emulator without data exports one.
    @Test func anExportWithoutTheFolderOfAnEmptyDatabaseIsTaken() throws {
        let folder = TemporaryFolder()
        folder.write(
            "firebase-export-metadata.json",
            #"{"version": "1", "database": {"version": "1", "path": "database_export"}}"#)
        let suite = try SuiteFolder(folder.path)
        #expect(suite.namespaces.isEmpty)
        #expect(suite.warnings.count == 1)
        #expect(suite.warnings.first?.contains("firebase-export-metadata.json: database.path: The folder ") == true)
        for (path, words) in [("../x", "outside"), ("a\\u0000b", "cannot be"), ("..", "outside")] {
            folder.write("firebase-export-metadata.json", #"{"database": {"version": "1", "path": "\#(path)"}}"#)
            let failure = #expect(throws: Status.self, "\(path)") { try SuiteFolder(folder.path) }
            #expect(
                failure?.message.contains(words) == true || failure?.message.contains("cannot be read") == true,
                "\(path): \(failure as Any)")
        }
    }
}
