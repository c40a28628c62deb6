import HearthFirestore

/// The notes on this device at one moment.
struct NoteList {
    struct Entry {
        var id: String
        var text: String
        /// Whether the server does not have the present text yet.
        var isPending: Bool
    }

    var entries: [Entry]
    /// Whether the server cannot be reached, so that others' changes may be missing.
    var isOffline: Bool

    init(_ snapshot: QuerySnapshot) throws {
        entries = try snapshot.documents.map { document in
            Entry(
                id: document.documentID, text: try document.data(as: Note.self).text,
                isPending: document.metadata.hasPendingWrites)
        }
        isOffline = snapshot.metadata.isFromCache
    }
}
