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
