import HearthFirestore

enum Offline {
    static func network(_ db: Firestore) async throws {
        // sample: network-off
        try await db.disableNetwork()
        // end
    }

    static func write(_ db: Firestore, _ show: @escaping @Sendable (String) -> Void) {
        // sample: write-offline
        db.document("notes/train").setData(["title": "Written in the train"]) { error in
            show(error.map { "refused: \($0.localizedDescription)" } ?? "The server has it.")
        }
        // end
    }

    static func saving(_ db: Firestore, _ show: @escaping @Sendable (String) -> Void) async throws {
        // sample: pending-writes
        for try await count in db.pendingWriteCounts {
            show(count == 0 ? "saved" : "saving \(count)")
        }
        // end
    }

    static func read(_ db: Firestore) async throws -> (String?, Bool) {
        // sample: read-offline
        let note = try await db.document("notes/train").getDocument()
        print(note.metadata.isFromCache, note.metadata.hasPendingWrites)  // true true
        // end
        return (note.get("title") as? String, note.metadata.hasPendingWrites)
    }

    static func online(_ db: Firestore) async throws {
        // sample: network-on
        try await db.enableNetwork()
        try await db.waitForPendingWrites()
        // end
    }

    static func clear(_ db: Firestore) async throws {
        // sample: clear
        try await db.terminate()
        try await db.clearPersistence()
        // end
    }

    static func indexes(_ db: Firestore) {
        // sample: indexes
        db.persistentCacheIndexManager?.enableIndexAutoCreation()
        // end
    }

    static func estimate(_ note: DocumentSnapshot) -> Timestamp? {
        // sample: estimate
        let data = note.data(with: .estimate)
        let changed = data?["changed"] as? Timestamp
        // end
        return changed
    }
}
