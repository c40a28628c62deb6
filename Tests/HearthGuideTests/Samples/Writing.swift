import HearthFirestore

// sample: note
struct Note: Codable {
    @DocumentID var id: String?
    var title: String
    var body = ""
    var tags: [String] = []
    /// nil is written as the server's time.
    @ServerTimestamp var changed: Date?
}
// end

enum Writing {
    static func set(_ db: Firestore) async throws {
        // sample: set
        try await db.document("notes/shopping").setData([
            "title": "Shopping",
            "body": "Bread, cheese",
            "tags": ["home"],
            "stars": 3,
            "due": Date(timeIntervalSinceNow: 86_400),
            "place": GeoPoint(latitude: 46.948, longitude: 7.447),
            "by": ["name": "Eva", "reads": 0],
            "changed": FieldValue.serverTimestamp(),
        ])
        // end
    }

    static func merge(_ db: Firestore) async throws {
        // sample: merge
        try await db.document("notes/shopping").setData(["body": "Bread, cheese, plums"], merge: true)
        // end
    }

    static func add(_ db: Firestore) async throws -> String {
        // sample: add
        let note = try await db.collection("notes").addDocument(data: ["title": "Untitled"])
        print(note.documentID)  // twenty random characters
        // end
        return note.documentID
    }

    static func update(_ db: Firestore) async throws {
        // sample: update
        try await db.document("notes/shopping").updateData([
            "title": "Shopping on Saturday",
            "by.name": "Adam",
            "by.reads": FieldValue.increment(Int64(1)),
            "tags": FieldValue.arrayUnion(["weekend"]),
            "due": FieldValue.delete(),
        ])
        // end
    }

    static func codable(_ db: Firestore) async throws {
        // sample: write-codable
        let note = Note(title: "Call Mia", tags: ["phone"])
        let reference = db.collection("notes").document()
        try await reference.setData(encoding: note)
        // end
    }

    static func codableWithCompletion(_ db: Firestore, _ done: @escaping @Sendable ((any Error)?) -> Void) throws {
        let note = Note(title: "Call Eva", tags: ["phone"])
        // sample: write-codable-completion
        try db.document("notes/call").setData(from: note) { error in
            done(error)
        }
        // end
    }

    static func delete(_ db: Firestore) async throws {
        // sample: delete
        try await db.document("notes/shopping").delete()
        // end
    }
}
