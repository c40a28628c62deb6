import HearthModel
import HearthDocuments

/// The names of the documents of one database.
struct DocumentNames {
    private let root: String
    /// The collection of the last name: most lists are of one collection.
    private var collection: (prefix: [UInt8], name: String)?

    init(_ database: DatabaseName) {
        root = database.documentsRoot + "/"
    }

    mutating func name(key: [UInt8]) throws(Status) -> String {
        if let collection, let id = DocumentKey.id(key, inCollection: collection.prefix) { return collection.name + id }
        guard let path = DocumentKey.decode(key), let prefix = DocumentKey.collectionPrefix(of: key) else {
            throw Status(.dataLoss, "A document key can't be read.")
        }
        collection = (prefix, root + path.parent.string + "/")
        return root + path.string
    }
}
