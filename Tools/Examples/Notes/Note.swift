import HearthFirestore

/// A stored note.
struct Note: Codable {
    @DocumentID var id: String?
    var text: String
    /// The words of the text that begin with #, without the # and in lower case: `find` searches them.
    var tags: [String]
    /// nil is written as the server's time.
    @ServerTimestamp var changed: Date?

    init(text: String) {
        self.text = text
        tags = Self.tags(in: text)
    }

    static func tags(in text: String) -> [String] {
        var tags: [String] = []
        for word in text.split(whereSeparator: \.isWhitespace) where word.hasPrefix("#") && word.count > 1 {
            let tag = word.dropFirst().lowercased()
            if !tags.contains(tag) { tags.append(tag) }
        }
        return tags
    }
}

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
