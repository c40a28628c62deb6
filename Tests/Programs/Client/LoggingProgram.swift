import Foundation
import HearthDatabase
import HearthFirestore

/// Has both clients write messages to standard error, then ends.
struct LoggingProgram {
    func start() {
        Firestore.enableLogging(true)
        Database.setLoggingEnabled(true)
        FirebaseApp.configure(options: FirebaseOptions(projectID: "demo-end-to-end"))
        let queue = DispatchQueue(label: "logging")
        let firestore = Firestore.firestore()
        let settings = FirestoreSettings()
        settings.host = "127.0.0.1:1"
        settings.isSSLEnabled = false
        settings.dispatchQueue = queue
        settings.cacheSettings = MemoryCacheSettings()
        firestore.settings = settings
        let database = Database.database(url: "http://127.0.0.1:1?ns=shop")
        database.callbackQueue = queue
        let group = DispatchGroup()
        group.enter()
        firestore.document("a/b").getDocument(source: .server) { _, _ in group.leave() }
        group.enter()
        database.reference(withPath: "a").getData { _, _ in group.leave() }
        group.wait()
        exit(0)
    }
}
