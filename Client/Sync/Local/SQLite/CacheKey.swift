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

    /// The key of a document of the collection, of which only the last segment is decoded.
    /// - Parameter prefixBytes: the length of the collection's `prefix`.
    static func decode(
        _ key: UnsafeRawBufferPointer, in collection: ResourcePath, prefixBytes: Int, _ database: CacheDatabase
    ) throws(Status) -> ResourcePath {
        let last = UnsafeRawBufferPointer(rebasing: key[min(prefixBytes, key.count)...])
        var segments: [String] = []
        segments.reserveCapacity(collection.segments.count + 1)
        segments.append(contentsOf: collection.segments)
        if let segment = plainSegment(last) {
            segments.append(segment)
        } else {
            segments.append(contentsOf: try decode([UInt8](last), in: database).segments)
        }
        return ResourcePath(segments)
    }

    /// The segment of a key with one segment that is a string without escapes, which nearly all are.
    private static func plainSegment(_ key: UnsafeRawBufferPointer) -> String? {
        let end = key.count - 3
        guard end > 0, key[0] == IndexValue.Tag.stringSegment, key[end] == 0, key[end + 1] == 1,
            key[end + 2] == IndexValue.Tag.terminator
        else { return nil }
        let segment = UnsafeRawBufferPointer(rebasing: key[1..<end])
        return segment.contains(0) ? nil : String(decoding: segment, as: UTF8.self)
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
