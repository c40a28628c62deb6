import HearthFirestore

enum Listening {
    static func document(
        _ db: Firestore, _ show: @escaping @Sendable (String) -> Void
    ) -> any ListenerRegistration {
        // sample: listen-document
        let registration = db.document("notes/shopping").addSnapshotListener { note, error in
            guard let note else { return show("Listening ended: \(error!.localizedDescription)") }
            show(note.get("title") as? String ?? "gone")
        }
        // end
        return registration
    }

    static func stop(_ registration: any ListenerRegistration) {
        // sample: listen-remove
        registration.remove()
        // end
    }

    static func query(
        _ db: Firestore, _ show: @escaping @Sendable (String) -> Void
    ) -> any ListenerRegistration {
        // sample: listen-query
        let notes = db.collection("notes").whereField("tags", arrayContains: "home").order(by: "title")
        let registration = notes.addSnapshotListener { snapshot, _ in
            for change in snapshot?.documentChanges ?? [] {
                let title = change.document.get("title") as? String ?? ""
                switch change.type {
                case .added: show("+ \(title)")
                case .modified: show("~ \(title)")
                case .removed: show("- \(title)")
                }
            }
        }
        // end
        return registration
    }

    static func sequence(_ db: Firestore, _ show: @escaping @Sendable (String) -> Void) async throws {
        // sample: listen-sequence
        for try await snapshot in db.collection("notes").snapshots {
            show("\(snapshot.count) notes")
            if snapshot.count == 3 { break }
        }
        // end
    }

    static func metadata(
        _ db: Firestore, _ show: @escaping @Sendable (String) -> Void
    ) -> any ListenerRegistration {
        // sample: listen-metadata
        let registration = db.document("notes/shopping").addSnapshotListener(includeMetadataChanges: true) { note, _ in
            guard let note else { return }
            if note.metadata.hasPendingWrites {
                show("saved on this device")
            } else if note.metadata.isFromCache {
                show("from the cache")
            } else {
                show("as at the server")
            }
        }
        // end
        return registration
    }
}
