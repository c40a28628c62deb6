import Foundation
import HearthDatabase
import HearthTestSupport

/// A program on its own device that uses the Realtime Database.
final class DatabaseDevice: Sendable {
    let app: FirebaseApp
    let db: Database
    private let folder: TemporaryFolder?

    /// - Parameters:
    ///   - folder: the folder of the cache; nil for none.
    ///   - base: the URL of the backend; by default its address, unencrypted.
    init(
        _ backend: Backend, name: String = "device-\(UUID().uuidString)", folder: TemporaryFolder? = nil,
        namespace: String = "shop", base: String = "http://127.0.0.1",
        tls: TLSSettings = TLSSettings()
    ) throws {
        FirebaseApp.configure(name: name, options: FirebaseOptions(projectID: Backend.project))
        app = FirebaseApp.app(name: name)!
        self.folder = folder
        db = Database.database(app: app, url: "\(base):\(backend.network.port)?ns=\(namespace)")
        db.tls = tls
        db.callbackQueue = DispatchQueue(label: "end-to-end.callbacks")
        if let folder {
            db.isPersistenceEnabled = true
            db.persistenceDirectory = URL(fileURLWithPath: folder.path)
        }
    }

    func ref(_ path: String = "") -> DatabaseReference { db.reference(withPath: path) }

    func signIn(_ uid: String) async throws {
        try await Auth.auth(app: app).signIn(withCustomToken: UnsignedToken.of(uid))
    }

    func end() async { await app.delete() }

    /// Waits for the connection, or for its end.
    func waitUntil(connected isConnected: Bool) async throws {
        let received = ref(".info/connected").record(.value)
        try await received.recorder.latest { $0 == "connected: \(isConnected)" }
        received.stop()
    }
}

/// In an `async` function Swift selects the `async` form of a call that has both forms; this closure selects the
/// synchronous one.
func plainly<Result>(_ body: () throws -> Result) rethrows -> Result { try body() }

/// The events of an observer as strings.
struct Observed: Sendable {
    let recorder: Recorder<String>
    let stop: @Sendable () -> Void
}

extension DatabaseQuery {
    /// `key: value` for each value event; for children `+key: value`, `-`, `~` and `>` with `<previous`; `error 1` at
    /// the end.
    func record(_ types: DataEventType...) -> Observed {
        let recorder = Recorder<String>()
        var handles: [DatabaseHandle] = []
        for type in types {
            handles.append(
                observe(
                    type,
                    andPreviousSiblingKeyWith: { snapshot, previous in
                        let sign =
                            switch type {
                            case .childAdded: "+"
                            case .childRemoved: "-"
                            case .childChanged: "~"
                            case .childMoved: ">"
                            case .value: ""
                            }
                        recorder.append(
                            "\(sign)\(snapshot.key): \(snapshot.string)" + (previous.map { " <\($0)" } ?? ""))
                    }, withCancel: { recorder.append("error \(($0 as NSError).code)") }))
        }
        return Observed(recorder: recorder) { [handles] in
            for handle in handles { self.removeObserver(withHandle: handle) }
        }
    }
}

extension DataSnapshot {
    /// The value as short JSON with sorted keys.
    var string: String { Self.string(value ?? NSNull()) }

    private static func string(_ value: Any) -> String {
        switch value {
        case let map as [String: Any]:
            "{" + map.sorted { $0.key < $1.key }.map { "\($0.key): \(string($0.value))" }.joined(separator: ", ") + "}"
        case let list as [Any]: "[" + list.map { string($0) }.joined(separator: ", ") + "]"
        case is NSNull: "null"
        case let number as NSNumber where number === NSNumber(value: true): "true"
        case let number as NSNumber where number === NSNumber(value: false): "false"
        default: "\(value)"
        }
    }
}
