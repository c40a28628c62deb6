import HearthFirestore

enum Connecting {
    static func connect() -> Firestore {
        // sample: connect
        FirebaseApp.configure(options: FirebaseOptions(projectID: "demo"))
        let db = Firestore.firestore()
        db.useEmulator(withHost: "127.0.0.1", port: 8080)
        // end
        return db
    }

    static func first(_ db: Firestore) async throws -> String? {
        // sample: first
        try await db.document("notes/first").setData(["title": "Hello", "tags": ["greeting"]])
        let note = try await db.document("notes/first").getDocument()
        let title = note.get("title") as? String
        print(title ?? "no title")
        // end
        return title
    }

    static func settings(_ db: Firestore) {
        // sample: settings
        let settings = FirestoreSettings()
        settings.host = "firestore.example.com:8443"
        settings.isSSLEnabled = true
        settings.cacheSettings = PersistentCacheSettings(sizeBytes: 200 * 1024 * 1024 as NSNumber)
        settings.dispatchQueue = DispatchQueue(label: "notes.firestore")
        db.settings = settings
        // end
    }

    static func folder(_ db: Firestore, _ folder: URL) {
        let settings = db.settings
        // sample: cache-folder
        settings.cacheSettings = PersistentCacheSettings(sizeBytes: 50 * 1024 * 1024 as NSNumber, directory: folder)
        // end
        db.settings = settings
    }

    static func memory(_ db: Firestore) {
        let settings = db.settings
        // sample: memory-cache
        settings.cacheSettings = MemoryCacheSettings(garbageCollectorSettings: MemoryLRUGCSettings())
        // end
        db.settings = settings
    }

    static func more(_ app: FirebaseApp) -> [Firestore] {
        // sample: databases
        let notes = Firestore.firestore(app: app)
        let archive = Firestore.firestore(app: app, database: "archive")
        // end
        return [notes, archive]
    }

    static func end(_ db: Firestore) async throws {
        // sample: terminate
        try await db.terminate()
        // end
    }
}
