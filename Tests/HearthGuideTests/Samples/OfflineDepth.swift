import HearthFirestore

enum OfflineDepth {
    static func new(_ db: Firestore) -> DocumentReference {
        // sample: new-offline
        let note = db.collection("notes").document()
        note.setData(["title": "Written in the train"], completion: nil)
        print(note.documentID)  // known at once
        // end
        return note
    }

    static func patient(
        _ db: Firestore, _ patience: Duration, _ show: @escaping @Sendable (String) -> Void
    ) async throws {
        // sample: wait-a-while
        let write = Task { try await db.document("notes/plan").setData(["title": "Plan"]) }
        let timer = Task {
            try await Task.sleep(for: patience)
            write.cancel()
        }
        do {
            try await write.value
            timer.cancel()
            show("The server has it.")
        } catch is CancellationError {
            show("Saved on this device; it is sent later.")
        }
        // end
    }

    static func merge(_ db: Firestore) {
        // sample: merge-offline
        db.document("notes/trip").updateData(
            [
                "title": "Trip on Sunday",
                "reads": FieldValue.increment(Int64(1)),
                "tags": FieldValue.arrayUnion(["weekend"]),
            ], completion: nil)
        // end
    }

    static func version(
        _ note: DocumentSnapshot, _ show: @escaping @Sendable (String) -> Void
    ) {
        // sample: version
        let version = note.get("version") as? Int ?? 0
        note.reference.updateData(["title": "Trip on Monday", "version": version + 1]) { error in
            guard let error else { return show("The server has it.") }
            if FirestoreErrorCode.permissionDenied ~= error { show("Somebody else changed it before.") }
        }
        // end
    }

    static func metadata(_ note: DocumentSnapshot) -> String {
        // sample: metadata-state
        func state(_ metadata: SnapshotMetadata) -> String {
            if metadata.hasPendingWrites { return "on this device, not yet at the server" }
            return metadata.isFromCache ? "from this device, perhaps out of date" : "as at the server"
        }
        // end
        return state(note.metadata)
    }

    static func signOut(_ db: Firestore, _ app: FirebaseApp) async throws {
        // sample: sign-out-clear
        try await db.waitForPendingWrites()
        try Auth.auth(app: app).signOut()
        try await db.terminate()
        try await db.clearPersistence()
        // end
    }
}
