import HearthFirestore

enum Reading {
    static func get(_ db: Firestore) async throws -> [String: Any]? {
        // sample: get
        let note = try await db.document("notes/shopping").getDocument()
        if let data = note.data() {
            print(note.documentID, data["title"] as? String ?? "", data["stars"] as? Int ?? 0)
        } else {
            print("There is no such note.")
        }
        // end
        return note.data()
    }

    static func all(_ db: Firestore) async throws -> [String] {
        // sample: get-all
        let notes = try await db.collection("notes").order(by: "title").getDocuments()
        for note in notes.documents {
            print(note.documentID, note.data())
        }
        // end
        return notes.documents.map(\.documentID)
    }

    static func sources(_ db: Firestore) async throws -> [Bool] {
        // sample: sources
        let fresh = try await db.document("notes/shopping").getDocument(source: .server)
        let known = try await db.document("notes/shopping").getDocument(source: .cache)
        print(fresh.metadata.isFromCache, known.metadata.isFromCache)  // false true
        // end
        return [fresh.metadata.isFromCache, known.metadata.isFromCache]
    }

    static func codable(_ db: Firestore) async throws -> Note {
        // sample: read-codable
        let note = try await db.document("notes/shopping").getDocument(as: Note.self)
        print(note.id ?? "", note.title, note.changed ?? Date())
        // end
        return note
    }

    static func codableQuery(_ db: Firestore) async throws -> [Note] {
        // sample: read-codable-query
        let found = try await db.collection("notes").whereField("tags", arrayContains: "home").getDocuments()
        let notes = try found.documents.map { try $0.data(as: Note.self) }
        // end
        return notes
    }

    static func fields(_ note: DocumentSnapshot) -> (Int?, String?, Date?) {
        // sample: fields
        let stars = note.get("stars") as? Int
        let author = note.get("by.name") as? String
        let changed = (note.get("changed") as? Timestamp)?.dateValue()
        // end
        return (stars, author, changed)
    }
}
