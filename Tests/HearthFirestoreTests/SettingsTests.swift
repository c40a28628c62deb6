import Foundation
import HearthModel
import HearthSync
import HearthTLS
import HearthTestSupport
import HearthTransport
import Testing

@testable import HearthFirestore

struct SettingsTests {
    @Test func defaults() {
        let settings = FirestoreSettings()
        #expect(settings.host == "firestore.googleapis.com")
        #expect(settings.isSSLEnabled)
        #expect(settings.resolved.usesMainQueue)
        #expect(FirestoreSettings() == settings)
        #expect(settings.isPersistenceEnabled)
        #expect(settings.cacheSizeBytes == 104_857_600)
        #expect(settings.resolved.cache == .persistent(folder: nil, sizeBytes: 104_857_600))
    }

    @Test func caches() {
        let settings = FirestoreSettings()
        settings.isPersistenceEnabled = false
        #expect(settings.resolved.cache == .memoryEager)
        settings.cacheSettings = MemoryCacheSettings(
            garbageCollectorSettings: MemoryLRUGCSettings(sizeBytes: 5_000_000))
        #expect(settings.resolved.cache == .memoryLRU(sizeBytes: 5_000_000))
        settings.cacheSettings = PersistentCacheSettings(
            sizeBytes: 200 * 1024 * 1024 as NSNumber, directory: URL(fileURLWithPath: "/tmp/x"))
        #expect(settings.resolved.cache == .persistent(folder: "/tmp/x", sizeBytes: 209_715_200))
        let legacy = FirestoreSettings()
        legacy.cacheSizeBytes = FirestoreCacheSizeUnlimited
        #expect(legacy.resolved.cache == .persistent(folder: nil, sizeBytes: -1))
        #expect(throws: Status.self) { try FirestoreSettings.validate(cacheSizeBytes: 1_048_575) }
        #expect(throws: Status.self) { try FirestoreSettings.validate(cacheSizeBytes: 0) }
    }

    /// As Apple's samples do: read, change, set.
    @Test func changesOfReadSettings() throws {
        let app = try Bench().app
        let db = Firestore.instance(app: app, database: "another", factory: .standard)
        let settings = db.settings
        #expect(settings == FirestoreSettings())
        settings.isPersistenceEnabled = false
        db.settings = settings
        #expect(db.persistentCacheIndexManager == nil)
        #expect(!db.settings.isPersistenceEnabled)
        settings.isPersistenceEnabled = true
        settings.cacheSizeBytes = 2_000_000
        db.settings = settings
        #expect(db.settings.resolved.cache == .persistent(folder: nil, sizeBytes: 2_000_000))
    }

    @Test func copiesAndEquality() {
        let settings = FirestoreSettings()
        settings.host = "localhost:1"
        let copy = settings.copy() as! FirestoreSettings
        #expect(copy == settings)
        copy.isSSLEnabled = false
        #expect(copy != settings)
        #expect(PersistentCacheSettings() == PersistentCacheSettings(sizeBytes: 104_857_600))
        #expect(MemoryCacheSettings() == MemoryCacheSettings(garbageCollectorSettings: MemoryEagerGCSetting()))
        #expect(MemoryCacheSettings() != MemoryCacheSettings(garbageCollectorSettings: MemoryLRUGCSettings()))
    }

    @Test func onlyBeforeFirstUse() throws {
        let bench = try Bench { $0.useEmulator(withHost: "localhost", port: 8080) }
        let read = bench.firestore.settings
        #expect(read.host == "localhost:8080")
        #expect(!read.isSSLEnabled)
        read.host = "changed"
        #expect(bench.firestore.settings.host == "localhost:8080", "settings are read as a copy")
        #expect(bench.engine.request.host == "localhost:8080")
        #expect(!bench.engine.request.isSSLEnabled)
        try bench.firestore.change(to: bench.firestore.settings.resolved)
        #expect(throws: Status.self) { try bench.firestore.change(to: read.resolved) }
    }

    @Test func theEnvironmentNamesAnEmulator() throws {
        let environment = ["FIRESTORE_EMULATOR_HOST": "localhost:9999"]
        let settings = FirestoreSettings()
        #expect(settings.resolved.server(environment: environment) == ("localhost:9999", false))
        #expect(settings.resolved.server(environment: [:]) == ("firestore.googleapis.com", true))
        #expect(
            settings.resolved.server(environment: ["FIRESTORE_EMULATOR_HOST": ""]) == ("firestore.googleapis.com", true)
        )
        settings.host = "db.example:8443"
        #expect(settings.resolved.server(environment: environment) == ("db.example:8443", true), "it was chosen")
    }

    @Test func tlsSettings() throws {
        let settings = FirestoreSettings()
        settings.tls = TLSSettings(authorities: URL(fileURLWithPath: "/ca.pem"), clientKeyPassword: "x")
        #expect((settings.copy() as? FirestoreSettings)?.tls == settings.tls)
        #expect(settings.resolved.settings == settings && settings != FirestoreSettings())
        let options = settings.tls.options
        #expect(options.authoritiesPath == "/ca.pem" && options.clientKeyPassword == "x")
    }

    @Test func ipv6Emulator() throws {
        let bench = try Bench { $0.useEmulator(withHost: "::1", port: 8080) }
        #expect(bench.firestore.settings.host == "[::1]:8080")
    }

    @Test func configurationOfTheEngine() throws {
        let bench = try Bench {
            let settings = $0.settings
            settings.cacheSettings = PersistentCacheSettings(
                sizeBytes: 2_000_000, directory: URL(fileURLWithPath: "/tmp/y"))
            $0.settings = settings
        }
        let configuration = bench.engine.request.configuration
        #expect(configuration.database == DatabaseName(project: "projectID"))
        #expect(configuration.appName == bench.app.name)
        guard case .persistent("/tmp/y", 2_000_000) = configuration.cache else {
            Issue.record("\(configuration.cache)")
            return
        }
        #expect(bench.firestore.persistentCacheIndexManager != nil)
        #expect(try Bench().firestore.persistentCacheIndexManager == nil)
    }

    @Test func cacheFolder() throws {
        #expect(try CacheFolder.standard(environment: ["XDG_DATA_HOME": "/data"]) == "/data/firestore")
        #expect(try CacheFolder.standard(environment: ["HOME": "/home/me"]) == "/home/me/.local/share/firestore")
        #expect(throws: Status.self) { try CacheFolder.standard(environment: [:]) }
    }

    @Test func indexManager() throws {
        let bench = try Bench {
            let settings = $0.settings
            settings.cacheSettings = PersistentCacheSettings()
            $0.settings = settings
        }
        let manager = try #require(bench.firestore.persistentCacheIndexManager)
        manager.enableIndexAutoCreation()
        manager.disableIndexAutoCreation()
        manager.deleteAllIndexes()
        #expect(bench.engine.state.with { $0.calls } == ["automatic true", "automatic false", "deleteAllIndexes"])
    }

    @Test func instances() async throws {
        let bench = try Bench()
        let app = bench.app
        #expect(Firestore.firestore(app: app) === bench.firestore)
        let second = Firestore.firestore(app: app, database: "second")
        #expect(second !== bench.firestore)
        #expect(second === Firestore.firestore(app: app, database: "second"))
        _ = bench.engine
        try await bench.firestore.terminate()
        #expect(Firestore.firestore(app: app) !== bench.firestore)
        #expect(await app.delete())
        #expect(FirebaseApp.app(name: app.name) == nil)
        #expect(await !app.delete())
    }

    @Test func clearPersistence() async throws {
        let bench = try Bench {
            let settings = $0.settings
            settings.cacheSettings = PersistentCacheSettings(
                sizeBytes: 2_000_000, directory: URL(fileURLWithPath: "/tmp/y"))
            $0.settings = settings
        }
        try await bench.firestore.clearPersistence()
        #expect(bench.cleared.with { $0.count } == 1)
        _ = bench.engine
        do {
            try await bench.firestore.clearPersistence()
            Issue.record("must fail while the client runs")
        } catch {
            #expect((error as NSError).code == FirestoreErrorCode.failedPrecondition.rawValue)
        }
        try await bench.firestore.terminate()
        try await bench.firestore.clearPersistence()
        #expect(bench.cleared.with { $0.count } == 2)
    }

    @Test func enginesThatCannotStart() async throws {
        let name = "app-\(UUID().uuidString)"
        try FirebaseApp.add(name: name, options: FirebaseOptions(projectID: "p"))
        let db = Firestore.instance(
            app: FirebaseApp.app(name: name)!, database: "(default)",
            factory: EngineFactory(
                make: { (_) throws(Status) in throw .failedPrecondition("the cache is in use") },
                clearPersistence: { (_) throws(Status) in }))
        let settings = db.settings
        settings.cacheSettings = MemoryCacheSettings()
        settings.dispatchQueue = DispatchQueue(label: "mine")
        db.settings = settings
        for call in [
            { try await db.document("c/d").setData([:]) }, { _ = try await db.document("c/d").getDocument() },
            { _ = try await db.collection("c").getDocuments(source: .cache) }, { try await db.waitForPendingWrites() },
            { _ = try await db.collection("c").count.getAggregation(source: .server) },
            { _ = try await db.loadBundle(Data()) },
        ] as [() async throws -> Void] {
            do {
                try await call()
                Issue.record("must fail")
            } catch {
                #expect((error as NSError).localizedDescription == "the cache is in use")
                #expect((error as NSError).code == 9)
            }
        }
        try await db.terminate()
    }

    // MARK: Apps

    @Test func apps() throws {
        #expect(throws: Status.self) {
            try FirebaseApp.add(name: "x-\(UUID())", options: FirebaseOptions(googleAppID: "1", gcmSenderID: "2"))
        }
        let bench = try Bench()
        #expect(throws: Status.self) {
            try FirebaseApp.add(name: bench.app.name, options: FirebaseOptions(projectID: "p"))
        }
        let options = bench.app.options
        options.projectID = "changed"
        #expect(bench.app.options.projectID == "projectID", "options are read as a copy")
        #expect(FirebaseApp.allApps?[bench.app.name] == bench.app)
    }

    @Test func optionFiles() throws {
        let json =
            #"{"project_info": {"project_id": "p1", "project_number": "5"}, "client": [{"api_key": [{"current_key": "k"}]}]}"#
        #expect(OptionsFile.parse(Data(json.utf8))?.projectID == "p1")
        #expect(OptionsFile.parse(Data(json.utf8))?.apiKey == "k")
        #expect(OptionsFile.parse(Data(#"{"projectId": "p2", "appId": "a"}"#.utf8))?.googleAppID == "a")
        let plist = try PropertyListSerialization.data(
            fromPropertyList: ["PROJECT_ID": "p3", "GOOGLE_APP_ID": "g"], format: .xml, options: 0)
        #expect(OptionsFile.parse(plist)?.projectID == "p3")
        #expect(OptionsFile.parse(Data("nonsense".utf8)) == nil)
        #expect(OptionsFile.parse(Data("{}".utf8)) == nil)
    }

    @Test func optionSearch() throws {
        func project(_ environment: [String: String], _ folders: [String] = []) -> String? {
            OptionsSearch(environment: environment, folders: folders).options()?.projectID
        }
        #expect(project(["FIREBASE_CONFIG": #"{"projectId": "a"}"#, "GCLOUD_PROJECT": "b"]) == "a")
        #expect(project(["GOOGLE_CLOUD_PROJECT": "c", "GCLOUD_PROJECT": "b"]) == "c")
        #expect(project(["GCLOUD_PROJECT": "b"]) == "b")
        #expect(project([:]) == nil)
        let folder = TemporaryFolder()
        folder.write(".firebaserc", #"{"projects": {"default": "rc"}}"#)
        #expect(project([:], [folder.path]) == "rc")
        folder.write("google-services.json", #"{"projectId": "file"}"#)
        #expect(project([:], [folder.path]) == "file")
    }
}

@Suite struct AddressTests {
    @Test func hosts() throws {
        func check(_ string: String, _ isSSL: Bool, _ host: String, _ port: Int) throws {
            let address = try NetworkDatastore.address(host: string, isSSLEnabled: isSSL)
            #expect(address.host == host)
            #expect(address.port == port)
            if case .tls = address.security { #expect(isSSL) } else { #expect(!isSSL) }
        }
        try check("firestore.googleapis.com", true, "firestore.googleapis.com", 443)
        try check("localhost:8080", false, "localhost", 8080)
        try check("localhost", false, "localhost", 80)
        try check("[::1]:8080", false, "::1", 8080)
        try check("[::1]", true, "::1", 443)
        try check("::1", true, "::1", 443)
        for bad in ["localhost:", "localhost:0", "localhost:x", ":80", "localhost:70000"] {
            #expect(throws: Status.self) { try NetworkDatastore.address(host: bad, isSSLEnabled: false) }
        }
    }

    @Test func loopbackNeedsNoProxy() throws {
        #expect(try NetworkDatastore.address(host: "127.0.0.1:1", isSSLEnabled: false).proxy == .none)
        #expect(try NetworkDatastore.address(host: "example.com", isSSLEnabled: true).proxy == .environment)
    }
}
