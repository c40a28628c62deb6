import HearthModel
import HearthCache
import HearthDocuments

/// Paths of documents and collections as bytes with the order of the paths: segment by segment, a parent before its
/// descendants.
///
///     SEG SEG … 02
///
/// SEG is the encoding of `IndexValue`; none begins with 02.
enum CacheKey {
    static func encode(_ path: ResourcePath) -> [UInt8] {
        var key = prefix(path)
        key.append(IndexValue.Tag.terminator)
        return key
    }

    /// The segments without terminator: the common prefix of all keys at and below the path.
    static func prefix(_ path: ResourcePath) -> [UInt8] {
        var key: [UInt8] = []
        key.reserveCapacity(path.segments.reduce(1) { $0 + $1.utf8.count + 3 })
        for segment in path.segments { IndexValue.appendSegment(segment, to: &key) }
        return key
    }

    /// - Throws: `DATA_LOSS` when the bytes are not a key.
    static func decode(_ key: [UInt8], in database: CacheDatabase) throws(Status) -> ResourcePath {
        var segments: [String] = []
        var position = 0
        while position < key.count, key[position] != IndexValue.Tag.terminator {
            guard let segment = DocumentKey.readSegment(key, &position) else { break }
            segments.append(segment)
        }
        guard position == key.count - 1, key[position] == IndexValue.Tag.terminator else {
            throw database.damaged("The cache \(database.path) is damaged: a document's key cannot be read.")
        }
        return ResourcePath(segments)
    }

    /// The first bytes after all that begin with these; nil when there are none.
    static func successor(_ bytes: [UInt8]) -> [UInt8]? {
        var successor = bytes
        while let last = successor.last {
            if last < 0xFF {
                successor[successor.count - 1] = last + 1
                return successor
            }
            successor.removeLast()
        }
        return nil
    }
}
