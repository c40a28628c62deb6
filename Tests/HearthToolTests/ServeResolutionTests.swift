import HearthBackup
@testable import HearthToolSupport
import HearthTestSupport
import HearthHost
import HearthModel
import HearthServer
import HearthTriggers
import Testing

@testable import hearth

@Suite struct ServeResolutionTests {
    private let folder = TemporaryFolder()

    private func settings(_ words: [String] = [], _ environment: [String: String] = [:]) throws(ToolFailure)
        -> ServeSettings
    {
        try ServeResolution.settings(words, environment: environment, folder: folder.path)
    }

    @Test func defaults() throws {
        var expected = ServeSettings()
        expected.triggerFile = TriggerFile(path: "\(folder.path)/hearth.json", project: "demo-hearth")
        #expect(try settings() == expected)
    }

    @Test func triggersAreReadAndRefusedByName() throws {
        let good = #""event": "google.cloud.firestore.document.v1.written", "document": "a/{b}""#
        folder.write(
            "hearth.json",
            "{\"project\": \"p\", \"location\": \"europe-west1\", \"triggers\": {\"one\": {\(good), \"url\": \"http://h/\"}}}"
        )
        let found = try settings()
        #expect(found.triggers.map(\.name) == ["one"] && found.triggers.first?.project == "p")
        #expect(found.location == "europe-west1")
        for (members, name) in [
            (good, "triggers.one: \"url\""), ("\(good), \"url\": \"ftp://h/\"", "triggers.one.url"),
            ("\(good), \"url\": \"http://h/\", \"retries\": 3", "triggers.one.retries"),
        ] {
            folder.write("hearth.json", "{\"triggers\": {\"one\": {\(members)}}}")
            let failure = #expect(throws: ToolFailure.self) { try settings() }
            #expect(failure?.code == .configuration && failure?.message.contains(name) == true, "\(failure as Any)")
        }
    }

    @Test func unknownMembersGetTheNearestName() throws {
        for (name, nearest) in [
            ("trigers", "triggers"), ("auht", "auth"), ("change", "changes"), ("bundle", "bundles"),
            ("tlsCrt", "tlsCert"),
        ] {
            folder.write("hearth.json", "{\"\(name)\": {}}")
            let failure = #expect(throws: ToolFailure.self) { try settings() }
            #expect(failure?.message.hasSuffix("\(name): Unknown setting; did you mean \"\(nearest)\"?") == true)
        }
        for (json, end) in [
            (
                #"{"credentials": [{"name": "a", "secretFile": "s", "scpoe": "read-only"}]}"#,
                #"scpoe: Unknown setting; did you mean "scope"?"#
            ),
            (#"{"keys": [{"idd": "1", "secretFile": "s"}]}"#, #"idd: Unknown setting; did you mean "id"?"#),
            (#"{"issuers": [{"isuer": "x"}]}"#, #"isuer: Unknown setting; did you mean "issuer"?"#),
        ] {
            folder.write("hearth.json", "{\"auth\": \(json)}")
            let failure = #expect(throws: ToolFailure.self) { try settings() }
            #expect(failure?.message.hasSuffix(end) == true, "\(failure as Any)")
        }
        let all =
            #"{"port": 1, "tls-cert": "", "auth": {}, "bundles": {}, "changes": {}, "triggers": {}, "x": 1, "prot": 2}"#
        let root = try ConfigurationValue(parsing: Array(all.utf8), file: "f")
        #expect(
            try ServeResolution.unknownMembers(of: root).map(\.message) == [
                "f:1:92: x: Unknown setting.", "f:1:103: prot: Unknown setting; did you mean \"port\"?",
            ])
    }

    @Test func backupsOnATimer() throws {
        folder.write("hearth.json", #"{"backups": {"folder": "b"}}"#)
        var wanted = BackupSchedule.Configuration(folder: "\(folder.path)/b", everySeconds: 86_400, keep: 7)
        #expect(try settings().backups == wanted)
        folder.write("hearth.json", #"{"backups": {"folder": "/b", "every": "90m", "keep": 3}}"#)
        wanted = BackupSchedule.Configuration(folder: "/b", everySeconds: 5400, keep: 3)
        #expect(try settings().backups == wanted)
        for (json, end) in [
            (#"{"every": "1h"}"#, "backups: \"folder\" is missing: where to keep the backups."),
            (#"{"folder": "b", "evry": "1h"}"#, "evry: Unknown setting; did you mean \"every\"?"),
            (
                #"{"folder": "b", "every": "59s"}"#,
                "every: Expected a duration from 60s to 366d, such as \"24h\"."
            ),
            (#"{"folder": "b", "keep": 0}"#, "keep: Expected a whole number from 1 to 10000."),
        ] {
            folder.write("hearth.json", "{\"backups\": \(json)}")
            let failure = #expect(throws: ToolFailure.self) { try settings() }
            #expect(failure?.message.hasSuffix(end) == true, "\(failure as Any)")
        }
    }

    @Test func exportsBeforeAndAfter() throws {
        let seed = try settings(["--import", "seed", "--export-on-exit"])
        #expect(seed.importPath == "seed" && seed.exportPath == "seed")
        let other = try settings(["--export-on-exit", "out", "--import=seed"])
        #expect(other.importPath == "seed" && other.exportPath == "out")
        #expect(try settings(["--export-on-exit=out", "--memory"]).exportPath == "out")
        #expect(try settings(["--seed_from_export", "a/b"]).importPath == "a/b")
        let variables = ["HEARTH_IMPORT": "seed", "HEARTH_EXPORT_ON_EXIT": "true"]
        #expect(try settings([], variables).exportPath == "seed")
        #expect(try settings([], ["HEARTH_EXPORT_ON_EXIT": "false"]).exportPath == nil)
        folder.write("hearth.json", #"{"import": "seed", "exportOnExit": true}"#)
        #expect(try settings().exportPath == "seed")
        folder.write("hearth.json", "{}")
        for (words, message) in [
            (
                ["--export-on-exit", "--memory"],
                "--export-on-exit: expected the name of a folder where there is no --import FOLDER, found \"\"."
            ),
            (["--import", "a", "--seed-from-export", "b"], "--seed-from-export and --import exclude each other."),
            (["--import="], "--import: expected a name, found \"\"."),
        ] {
            let failure = #expect(throws: ToolFailure.self) { try settings(words) }
            #expect(failure?.message == message && failure?.code == .usage)
        }
    }

    @Test(arguments: [
        (["--port", "65536"], "--port: expected a whole number from 0 to 65535, found \"65536\"."),
        (
            ["--host-port", "h:99999"],
            "--host-port: expected ADDRESS:PORT, with a port from 0 to 65535, found \"h:99999\"."
        ),
        (
            ["--functions-emulator", "h:70000"],
            "--functions-emulator: expected HOST:PORT, with a port from 1 to 65535, found \"h:70000\"."
        ),
        (
            ["--functions-emulator-port", "70000"],
            "--functions-emulator-port: expected a whole number from 1 to 65535, found \"70000\"."
        ),
    ])
    func portsHaveARange(words: [String], message: String) {
        let failure = #expect(throws: ToolFailure.self) { try settings(words) }
        #expect(failure?.message == message)
    }

    @Test func theFunctionsEmulatorHasThreeSources() throws {
        folder.write("firebase.json", #"{"emulators": {"functions": {"port": 5001}}}"#)
        #expect(try settings().functionsEmulator == "127.0.0.1:5001")
        #expect(try settings(["--functions_emulator", "localhost:1"]).functionsEmulator == "localhost:1")
        #expect(try settings([], ["HEARTH_FUNCTIONS_EMULATOR": "h:2"]).functionsEmulator == "h:2")
        let parts = ["--functions_emulator_host=::1", "--functions_emulator_port=5002"]
        #expect(try settings(parts).functionsEmulator == "[::1]:5002")
        #expect(try settings(["--functions_emulator_port=5002"]).functionsEmulator == "127.0.0.1:5002")
        #expect(throws: ToolFailure.self) { try settings(["--functions_emulator_host", "h"]) }
        #expect(throws: ToolFailure.self) { try settings(parts + ["--functions_emulator_host", "a/b"]) }
        #expect(try settings(["--no-emulator"]).functionsEmulator == nil)
        #expect(throws: ToolFailure.self) { try settings(["--functions-emulator", "http://h:1/"]) }
    }

    @Test func optionsOverrideTheEnvironmentThenTheFileThenFirebase() throws {
        folder.write("firebase.json", #"{"emulators": {"firestore": {"port": 1, "host": "a"}}}"#)
        #expect(try settings().port == 1)
        folder.write("hearth.json", #"{"port": 2, "project": "from-file"}"#)
        #expect(try settings().port == 2)
        #expect(try settings().host == "a")
        #expect(try settings([], ["HEARTH_PORT": "3"]).port == 3)
        #expect(try settings(["--port", "4"], ["HEARTH_PORT": "3"]).port == 4)
        folder.write(".firebaserc", #"{"projects": {"default": "from-rc"}}"#)
        #expect(try settings().project == "from-file")
        #expect(try settings([], ["HEARTH_PROJECT": "from-environment"]).project == "from-environment")
    }

    @Test func everySettingHasThreeSources() throws {
        let values = [
            "host": "::1", "port": "0", "data": "/d", "project": "p", "log-format": "json", "log-level": "debug",
            "log-requests": "true", "require-indexes": "true", "emulator": "false", "loops": "3", "workers": "9",
            "checkpoint-kib": "64", "grace": "0", "allow-clock-skew": "true", "tls-cert": "c.pem", "tls-key": "k.pem",
            "rules": "r", "once-collection": "done", "ttl": "false", "export-folder": "/e",
            "shared-sign-in": "true",
        ]
        var expected = ServeSettings()
        expected.host = "::1"
        expected.port = 0
        expected.dataFolder = "/d"
        expected.project = "p"
        expected.logFormat = .json
        expected.logLevel = .debug
        expected.logsRequests = true
        expected.requiresIndexes = true
        expected.allowsClockSkew = true
        expected.isEmulator = false
        expected.loops = 3
        expected.workers = 9
        expected.checkpointKiB = 64
        expected.graceSeconds = 0
        expected.tlsCertificate = "c.pem"
        expected.tlsKey = "k.pem"
        expected.rules = ["(default)": "r"]
        expected.triggerFile = TriggerFile(path: "\(folder.path)/hearth.json", project: "p")
        expected.onceCollection = "done"
        expected.identity.sharesSignIn = true
        expected.deletesExpired = false
        expected.exportFolder = "/e"
        expected.warnings = [
            "No issuer of tokens and no credential is configured (\"auth\" in hearth.json): all clients are anonymous."
        ]
        #expect(try settings(values.sorted { $0.key < $1.key }.map { "--\($0.key)=\($0.value)" }) == expected)
        let environment = values.map { (Option($0.key, "X", "").environmentName, $0.value) }
        #expect(try settings([], Dictionary(uniqueKeysWithValues: environment)) == expected)
        let members = values.map { key, value in
            let isBare = Int(value) != nil || value == "true" || value == "false"
            return "\"\(Option(key, "X", "").memberName)\": \(isBare ? value : "\"\(value)\"")"
        }
        folder.write("hearth.json", "{ // all of them\n" + members.joined(separator: ",\n") + "}")
        // Files that a configuration names are relative to it.
        expected.tlsCertificate = "\(folder.path)/c.pem"
        expected.tlsKey = "\(folder.path)/k.pem"
        expected.rules = ["(default)": "\(folder.path)/r"]
        #expect(try settings() == expected)
    }

    @Test func filesOfAConfigurationAreRelativeToIt() throws {
        folder.write("token.secret", String(repeating: "s", count: 40))
        folder.write(
            "my.json",
            #"{"rules": "a.rules", "tlsCert": "c.pem", "tlsKey": "/k.pem", "databaseRules": "d.json", "#
                + #""data": "stays", "emulator": true, "#
                + #""auth": {"credentials": [{"name": "n", "secretFile": "token.secret"}]}}"#)
        let found = try ServeResolution.settings(["--config", "\(folder.path)/my.json"], environment: [:])
        #expect(found.rules == ["(default)": "\(folder.path)/a.rules"])
        #expect(found.tlsCertificate == "\(folder.path)/c.pem")
        #expect(found.tlsKey == "/k.pem")
        #expect(found.databaseRules == "\(folder.path)/d.json")
        #expect(found.identity.credentials.map(\.name) == ["n"])
        // The data folder must not depend on the path of the configuration.
        #expect(found.dataFolder == "stays")
    }

    @Test func originsAndHostsAreLists() throws {
        #expect(
            try settings(["--allow-origin", "https://a.example", "--allow-origin", "null"]).allowedOrigins
                == ["https://a.example", "null"])
        #expect(
            try settings([], ["HEARTH_ALLOW_HOST": "a.test,b.test"]).allowedHosts == ["a.test", "b.test"])
        folder.write("hearth.json", #"{"allowOrigin": ["https://a.example:1", "app://x"]}"#)
        #expect(try settings().allowedOrigins == ["https://a.example:1", "app://x"])
        #expect(throws: ToolFailure.self) { try settings(["--allow-origin", "a.example"]) }
        #expect(throws: ToolFailure.self) { try settings(["--allow-origin", "https://a.example/path"]) }
    }

    @Test func memoryAndData() throws {
        #expect(try settings(["--memory"]).dataFolder == nil)
        #expect(try settings(["--no-memory"], ["HEARTH_MEMORY": "1"]).dataFolder == "hearth-data")
        #expect(try settings(["--memory"], ["HEARTH_DATA": "/x"]).dataFolder == nil)
        #expect(throws: ToolFailure.usage("--memory and --data exclude each other.")) {
            try settings(["--memory", "--data", "x"])
        }
    }

    @Test func hostAndPortTogether() throws {
        #expect(try settings(["--host-port", "[::1]:99"]).host == "::1")
        #expect(try settings(["--host-port=0.0.0.0:99"]).port == 99)
        #expect(throws: ToolFailure.self) { try settings(["--host-port", "99"]) }
    }

    @Test func optionsOfTheEmulatorAreAccepted() throws {
        let found = try settings(["--project_id=x", "--single_project_mode=true", "--websocket_port", "9150"])
        #expect(found.project == "x")
        #expect(found.warnings.count == 2)
    }

    @Test func indexFiles() throws {
        folder.write("other.json", #"{"fieldOverrides": [{"collectionGroup": "c", "fieldPath": "a", "indexes": []}]}"#)
        let found = try settings(["--indexes", folder.path + "/other.json"])
        #expect(found.indexes["(default)"]?.overrides.count == 1)
        #expect(throws: ToolFailure.configuration("The index file nowhere.json is not there.")) {
            try settings(["--indexes", "nowhere.json"])
        }
    }

    @Test func rulesFiles() throws {
        folder.write("firestore.rules", "")
        #expect(try settings().rules == ["(default)": folder.path + "/firestore.rules"])
        folder.write(
            "firebase.json", #"{"firestore": [{"rules": "a.rules"}, {"database": "b", "rules": "b.rules"}]}"#)
        #expect(try settings().rules == ["(default)": folder.path + "/a.rules", "b": folder.path + "/b.rules"])
        #expect(try settings(["--rules", "c.rules"]).rules["(default)"] == "c.rules")
    }

    @Test func localDevelopmentIsForLoopbackAddresses() throws {
        for host in ["127.0.0.1", "localhost", "::1", "127.0.0.2"] {
            #expect(try settings(["--host", host]).isEmulator)
        }
        for host in ["*", "0.0.0.0", "::", "192.168.1.2", "example.com"] {
            #expect(try !settings(["--host", host]).isEmulator)
            #expect(
                try settings(["--host", host, "--emulator"]).warnings.contains { $0.contains("may do everything") })
        }
        #expect(try settings(["--no-emulator"]).warnings.contains { $0.contains("There are no security rules") })
    }

    @Test func identity() throws {
        folder.write("secret", "0123456789abcdef0123456789abcdef\n")
        folder.write(
            "hearth.json",
            #"""
            {"auth": {"firebaseProject": "p", "keys": [{"id": "1", "secretFile": "secret"}],
              "issuers": [{"issuer": "i", "audience": "a", "jwks": "keys.json"}],
              "credentials": [{"name": "c", "secretFile": "secret", "scope": "read-only", "project": "p"}]}}
            """#)
        let identity = try settings().identity
        #expect(identity.issuers.map(\.audience) == ["p", "a"])
        #expect(identity.issuers[1].keys == folder.path + "/keys.json")
        #expect(identity.keys.map(\.id) == ["1"])
        #expect(identity.credentials.first?.secret == "0123456789abcdef0123456789abcdef")
        #expect(identity.credentials.first?.isReadOnly == true)
        folder.write("secret", "short")
        #expect(throws: ToolFailure.self) { try settings() }
        folder.write("hearth.json", #"{"auth": {"isuers": []}}"#)
        #expect(throws: ToolFailure.self) { try settings() }
    }

    @Test func noCollectionIsTheLedger() throws {
        #expect(try settings(["--once-collection="]).onceCollection == "")
        #expect(try settings([], ["HEARTH_ONCE_COLLECTION": ""]).onceCollection == "")
        folder.write("hearth.json", #"{"onceCollection": ""}"#)
        #expect(try settings().onceCollection == "")
    }

    @Test func refusals() throws {
        let path = folder.path
        let cases: [(words: [String], environment: [String: String], file: String?, failure: ToolFailure)] = [
            (["--port", "x"], [:], nil, .usage("--port: expected a whole number from 0 to 65535, found \"x\".")),
            (
                ["--port", "65536"], [:], nil,
                .usage("--port: expected a whole number from 0 to 65535, found \"65536\".")
            ),
            (
                [], ["HEARTH_PORT": "x"], nil,
                .configuration("HEARTH_PORT: expected a whole number from 0 to 65535, found \"x\".")
            ),
            (
                [], [:], #"{"port": "x"}"#,
                .configuration("\(path)/hearth.json: port: expected a whole number from 0 to 65535, found \"x\".")
            ),
            (
                [], [:], #"{"port": 1.5}"#,
                .configuration(
                    "\(path)/hearth.json:1:10: port: Expected a whole number from -2147483648 to 2147483647.")
            ),
            (
                [], [:], #"{"prot": 1}"#,
                .configuration("\(path)/hearth.json:1:10: prot: Unknown setting; did you mean \"port\"?")
            ),
            (
                [], [:], #"{"data": []}"#,
                .configuration(
                    "\(path)/hearth.json:1:10: data: Expected a string, a number, true or false.")
            ),
            (
                [], [:], "{\n\"port\"}",
                .configuration("\(path)/hearth.json:2:7: This is not valid JSON: unexpected text here.")
            ),
            (
                ["--once-collection", "a/b"], [:], nil,
                .usage("--once-collection: expected the id of a collection, or nothing, found \"a/b\".")
            ),
            (
                [], [:], #"{"onceCollection": "__x__"}"#,
                .configuration(
                    "\(path)/hearth.json: onceCollection: expected the id of a collection, or nothing, found \"__x__\"."
                )
            ),
            (["--memory=maybe"], [:], nil, .usage("--memory: expected true or false, found \"maybe\".")),
            (["--log-format", "xml"], [:], nil, .usage("--log-format: expected text or json, found \"xml\".")),
            (
                ["--tls-cert", "x"], [:], nil,
                .usage("--tls-cert and --tls-key belong together; only one of them is given.")
            ),
            (["--config", "nowhere.json"], [:], nil, .configuration("The configuration nowhere.json is not there.")),
        ]
        for (words, environment, file, failure) in cases {
            folder.write("hearth.json", file ?? "{}")
            #expect(throws: failure, "\(words) \(environment) \(file ?? "")") { try settings(words, environment) }
        }
    }

    @Test func misspeltVariablesCauseWarnings() throws {
        #expect(try settings([], ["HEARTH_PROT": "1", "PATH": "x"]).warnings.count == 1)
        // As container platforms make them for a service called hearth.
        #expect(try settings([], ["HEARTH_SERVICE_PORT_HTTP": "1"]).warnings.isEmpty)
    }

    @Test func theRealtimeDatabaseHasSettingsOfItsOwn() throws {
        let folder = TemporaryFolder()
        folder.write(
            "firebase.json",
            #"{"database": {"rules": "d.json"}, "emulators": {"database": {"host": "0.0.0.0", "port": 9001}}}"#)
        func settings(_ words: [String], _ environment: [String: String] = [:]) throws -> ServeSettings {
            try ServeResolution.settings(words, environment: environment, folder: folder.path)
        }
        let plain = try settings([])
        #expect(plain.databasePort == 9001 && plain.databaseHost == "0.0.0.0")
        #expect(plain.databaseRules == folder.path + "/d.json")
        // Other machines can reach the second address.
        #expect(!plain.isEmulator)
        #expect(try settings(["--emulator"]).warnings.contains { $0.contains("0.0.0.0") })
        let none = try settings(["--database-port", "none"])
        #expect(none.databasePort == nil && none.databaseHost == nil && none.isEmulator)
        let other = try settings(["--host", "127.0.0.2"], ["HEARTH_DATABASE_PORT": "9100"])
        #expect(other.databasePort == 9100 && other.databaseHost == nil && other.isEmulator)
        #expect(try settings(["--host", "127.0.0.1", "--port", "9001"]).databasePort == nil)
        #expect(try settings(["--database-rules", "x.json"]).databaseRules == "x.json")
        #expect(throws: ToolFailure.usage("--database-port: expected a whole number from 0 to 65535, found \"x\".")) {
            try settings(["--database-port", "x"])
        }
    }

    @Test func theStartMessageContainsTheExports() {
        var settings = ServeSettings()
        settings.host = "0.0.0.0"
        let string = StartMessage.block(settings, port: 4567, folder: "/data")
        #expect(string.contains("  address   http://0.0.0.0:4567  (gRPC and REST)\n"))
        #expect(string.contains("  export FIRESTORE_EMULATOR_HOST=127.0.0.1:4567\n"))
        #expect(string.contains("  export FIREBASE_DATABASE_EMULATOR_HOST=127.0.0.1:4567\n"))
        #expect(
            StartMessage.block(settings, port: 4567, databasePort: 9000, folder: nil)
                .contains("  database  http://127.0.0.1:9000/?ns=demo-hearth-default-rtdb"))
        settings.host = "::"
        #expect(StartMessage.block(settings, port: 1, folder: nil).contains("FIRESTORE_EMULATOR_HOST=[::1]:1\n"))
        // Programs that start a server read the port there, also of one that refuses clients with these variables.
        settings.isEmulator = false
        #expect(StartMessage.block(settings, port: 1, folder: nil).contains("FIRESTORE_EMULATOR_HOST=[::1]:1\n"))
    }
}
