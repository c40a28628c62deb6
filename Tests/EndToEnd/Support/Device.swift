import Foundation
import Glibc
import HearthFirestore
import HearthTestSupport

/// A program on its own device: an app, its cache, and its network. A restart uses the same cache.
final class Device: Sendable {
    let app: FirebaseApp
    private let port: Int
    /// The folder of the cache; nil for a cache in memory.
    let folder: TemporaryFolder?
    private let secureHost: String?
    private let tls: TLSSettings
    private let provider: (any AuthTokenProvider)?
    /// Runs listeners: the main queue does not run in tests.
    private let queue = DispatchQueue(label: "end-to-end.listeners")

    /// - Parameters:
    ///   - isPersistent: whether the cache is on the disk; otherwise it is in memory, and nothing is removed from it.
    ///   - provider: a source of tokens without a user.
    ///   - secureHost: the name of the backend for connections over TLS.
    init(
        _ backend: Backend, isPersistent: Bool = false, provider: (any AuthTokenProvider)? = nil,
        secureHost: String? = nil, tls: TLSSettings = TLSSettings()
    ) throws {
        let name = "device-\(UUID().uuidString)"
        FirebaseApp.configure(name: name, options: FirebaseOptions(projectID: Backend.project))
        app = FirebaseApp.app(name: name)!
        port = backend.network.port
        folder = isPersistent ? TemporaryFolder() : nil
        self.provider = provider
        self.secureHost = secureHost
        self.tls = tls
        start()
    }

    var db: Firestore { Firestore.firestore(app: app) }

    /// A database other than the default one. Do not use it after a restart.
    func database(_ name: String) -> Firestore {
        let db = Firestore.firestore(app: app, database: name)
        configure(db)
        return db
    }

    func start() {
        configure(db)
        if let provider { db.authTokenProvider = provider }
    }

    private func configure(_ db: Firestore) {
        let settings = FirestoreSettings()
        settings.dispatchQueue = queue
        settings.host = "\(secureHost ?? "127.0.0.1"):\(port)"
        settings.isSSLEnabled = secureHost != nil
        settings.tls = tls
        if let folder {
            settings.cacheSettings = PersistentCacheSettings(
                sizeBytes: NSNumber(value: FirestoreCacheSizeUnlimited), directory: URL(fileURLWithPath: folder.path))
        } else {
            settings.cacheSettings = MemoryCacheSettings(garbageCollectorSettings: MemoryLRUGCSettings())
        }
        db.settings = settings
    }

    /// Ends the program and starts it again.
    func restart() async throws {
        try await db.terminate()
        start()
    }

    /// Ends the program so that no further write reaches the cache, as when it is killed, and starts it again.
    /// - Parameter meanwhile: changes the cache's files before the start.
    func kill(_ meanwhile: () throws -> Void = {}) async throws {
        guard let folder else { preconditionFailure("only a cache on the disk survives") }
        DiskFaults.plant(DiskFaults.Plan(folder: folder.path, code: EIO) { _ in true })
        try await db.terminate()
        DiskFaults.remove(from: folder.path)
        try meanwhile()
        start()
    }

    func signIn(_ uid: String) async throws {
        try await Auth.auth(app: app).signIn(withCustomToken: UnsignedToken.of(uid))
    }

    func end() async { await app.delete() }
}

/// Tokens that only servers for local development accept.
enum UnsignedToken {
    static func of(_ uid: String) -> String {
        [#"{"alg":"none","typ":"JWT"}"#, #"{"sub":"\#(uid)","user_id":"\#(uid)","iat":0}"#]
            .map { Data($0.utf8).base64EncodedString().replacing("=", with: "") }
            .joined(separator: ".") + "."
    }
}

/// A provider whose requests bypass the rules.
final class OwnerToken: AuthTokenProvider {
    func token(forcingRefresh isForcingRefresh: Bool) async throws -> AuthToken? {
        AuthToken(uid: "owner", token: "owner")
    }

    func observeUser(_ changed: (@Sendable (String?) -> Void)?) { changed?("owner") }
}

/// One event of a query's listener, in a form that tests compare.
struct QueryEvent: Sendable, CustomStringConvertible {
    var snapshot: QuerySnapshot?
    var error: NSError?

    /// `a=1 b=2* pending cache`: the documents with the field `n`, a star for pending writes, and the metadata.
    var string: String {
        guard let snapshot else { return "error \(error?.code ?? -1)" }
        var words = snapshot.documents.map { document in
            let n = document.get("n").map { "\($0)" } ?? "-"
            return "\(document.documentID)=\(n)\(document.metadata.hasPendingWrites ? "*" : "")"
        }
        if snapshot.metadata.hasPendingWrites { words.append("pending") }
        if snapshot.metadata.isFromCache { words.append("cache") }
        return words.joined(separator: " ")
    }

    /// `+a ~b -c`: added, changed and removed documents.
    var changes: String {
        guard let snapshot else { return "error" }
        return snapshot.documentChanges.map { change in
            let sign =
                switch change.type {
                case .added: "+"
                case .modified: "~"
                case .removed: "-"
                }
            return sign + change.document.documentID
        }.joined(separator: " ")
    }

    var description: String { string }
}

extension Query {
    /// Listens until the registration is removed.
    func record(includeMetadataChanges: Bool = true) -> (Recorder<QueryEvent>, any ListenerRegistration & Sendable) {
        let recorder = Recorder<QueryEvent>()
        let registration = addSnapshotListener(includeMetadataChanges: includeMetadataChanges) { snapshot, error in
            recorder.append(QueryEvent(snapshot: snapshot, error: error as NSError?))
        }
        return (recorder, registration)
    }
}
