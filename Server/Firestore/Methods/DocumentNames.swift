import HearthModel
import HearthDocuments

/// The names of the documents of one database.
struct DocumentNames {
    private let root: String
    /// The collection of the last name: most lists are of one collection. `nameCount` bytes of `utf8` are its own name.
    private var collection: (prefix: [UInt8], nameCount: Int)?
    /// The last name that was found.
    private(set) var utf8: [UInt8] = []

    init(_ database: DatabaseName) {
        root = database.documentsRoot + "/"
    }

    /// Finds the name of a document's key.
    mutating func find(_ key: [UInt8]) throws(Status) {
        if let collection {
            utf8.removeLast(utf8.count - collection.nameCount)
            if DocumentKey.appendID(of: key, inCollection: collection.prefix, to: &utf8) { return }
        }
        guard let path = DocumentKey.decode(key), let prefix = DocumentKey.collectionPrefix(of: key) else {
            throw Status(.dataLoss, "A document key can't be read.")
        }
        utf8 = Array((root + path.string).utf8)
        collection = (prefix, root.utf8.count + path.parent.string.utf8.count + 1)
    }

    var found: String { String(decoding: utf8, as: UTF8.self) }

    mutating func name(key: [UInt8]) throws(Status) -> String {
        try find(key)
        return found
    }
}
