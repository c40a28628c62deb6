import HearthModel

/// The keys of documents in the store, and the two forms of a document's name in order keys.
///
///     path key:     SEG(collection) SEG(id) … SEG(collection) SEG(id) 02
///     document key: SEG(collection) SEG(id) … SEG(collection) 02 SEG(id) 02
///
/// SEG is that of `IndexValue`. Path keys have the order of names: segment by segment, a parent before its descendants.
/// Document keys differ only by a terminator after the last collection: so the documents of one collection are
/// adjacent (a scan of the prefix up to that terminator), and everything below a document or in and below a
/// collection is one range too. `documents` is ordered by document keys.
package enum DocumentKey {
    private typealias Tag = IndexValue.Tag

    package static func encode(_ path: ResourcePath) -> [UInt8] {
        var key: [UInt8] = []
        key.reserveCapacity(path.segments.reduce(2) { $0 + $1.utf8.count + 3 })
        let last = path.segments.count - 1
        for (index, segment) in path.segments.enumerated() {
            if index == last { key.append(Tag.terminator) }
            IndexValue.appendSegment(segment, to: &key)
        }
        key.append(Tag.terminator)
        return key
    }

    /// The path key of a path with any number of segments.
    package static func encodePath(_ path: ResourcePath) -> [UInt8] {
        encodeSegments(path) + [Tag.terminator]
    }

    /// The segments alone, without terminator: the prefix of everything at and below the path.
    static func encodeSegments(_ path: ResourcePath) -> [UInt8] {
        var key: [UInt8] = []
        for segment in path.segments { IndexValue.appendSegment(segment, to: &key) }
        return key
    }

    /// The prefix of the documents directly in a collection.
    package static func collectionPrefix(_ collection: ResourcePath) -> [UInt8] {
        encodePath(collection)
    }

    /// The path of a document key; nil when the bytes are not one.
    package static func decode(_ key: [UInt8]) -> ResourcePath? {
        var position = 0
        var segments: [String] = []
        // One terminator after the collection, one after the document; a damaged key may have them elsewhere.
        var collectionSegments: Int?
        while position < key.count {
            if key[position] == Tag.terminator {
                position += 1
                guard collectionSegments != nil else {
                    collectionSegments = segments.count
                    continue
                }
                guard position == key.count else { return nil }
                break
            }
            guard let segment = readSegment(key, &position) else { return nil }
            segments.append(segment)
        }
        guard let collectionSegments, segments.count == collectionSegments + 1, segments.count.isMultiple(of: 2),
            key.last == Tag.terminator
        else { return nil }
        return ResourcePath(segments)
    }

    /// The path of a document key as bytes, with a slash between segments; nil when the bytes are no document's key. Costs less
    /// than `decode`.
    package static func pathBytes(_ key: [UInt8]) -> [UInt8]? {
        var path: [UInt8] = []
        path.reserveCapacity(key.count)
        var position = 0
        var terminators = 0
        while position < key.count {
            if key[position] == Tag.terminator {
                position += 1
                terminators += 1
                continue
            }
            if !path.isEmpty { path.append(UInt8(ascii: "/")) }
            guard key[position] == Tag.stringSegment else {
                guard let segment = readSegment(key, &position) else { return nil }
                path.append(contentsOf: segment.utf8)
                continue
            }
            var index = position + 1
            while index + 1 < key.count, key[index] != 0 || key[index + 1] != 1 {
                path.append(key[index])
                index += key[index] == 0 ? 2 : 1
            }
            guard index + 1 < key.count else { return nil }
            position = index + 2
        }
        return terminators == 2 ? path : nil
    }

    /// Reads one SEG at `position` and moves after it.
    package static func readSegment(_ key: [UInt8], _ position: inout Int) -> String? {
        guard position < key.count else { return nil }
        switch key[position] {
        case Tag.numericSegment:
            guard position + 9 <= key.count else { return nil }
            let bits = IndexValue.readBigEndian(key[(position + 1)...])
            position += 9
            return "__id\(Int64(bitPattern: bits ^ (1 << 63)))__"
        case Tag.stringSegment:
            let start = position + 1
            guard let end = stringEnd(key, start) else { return nil }
            position = end + 2
            return string(key, start, end)
        default: return nil
        }
    }

    /// The index of the terminator of a STR that begins at `start`.
    static func stringEnd(_ key: [UInt8], _ start: Int) -> Int? {
        var index = start
        while index + 1 < key.count {
            if key[index] == 0 {
                if key[index + 1] == 1 { return index }
                index += 1
            }
            index += 1
        }
        return nil
    }

    private static func string(_ key: [UInt8], _ start: Int, _ end: Int) -> String {
        let raw = key[start..<end]
        guard raw.contains(0) else { return String(decoding: raw, as: UTF8.self) }
        var unescaped: [UInt8] = []
        var index = start
        while index < end {
            unescaped.append(key[index])
            index += key[index] == 0 ? 2 : 1
        }
        return String(decoding: unescaped, as: UTF8.self)
    }

    /// The end of the SEG at `position`; nil when there is none.
    static func segmentEnd(_ key: [UInt8], _ position: Int) -> Int? {
        guard position < key.count else { return nil }
        switch key[position] {
        case Tag.numericSegment: return position + 9 <= key.count ? position + 9 : nil
        case Tag.stringSegment: return stringEnd(key, position + 1).map { $0 + 2 }
        default: return nil
        }
    }

    /// A document key from a path key: inserts the terminator of the last collection.
    package static func fromPathKey(_ pathKey: [UInt8]) -> [UInt8]? {
        var position = 0
        var lastStart = 0
        while position < pathKey.count, pathKey[position] != Tag.terminator {
            guard let end = segmentEnd(pathKey, position) else { return nil }
            lastStart = position
            position = end
        }
        var key = pathKey
        key.insert(Tag.terminator, at: lastStart)
        return key
    }

    /// A path key from a document key.
    package static func toPathKey(_ key: [UInt8]) -> [UInt8]? {
        var position = 0
        while position < key.count, key[position] != Tag.terminator {
            guard let end = segmentEnd(key, position) else { return nil }
            position = end
        }
        guard position < key.count else { return nil }
        var pathKey = key
        pathKey.remove(at: position)
        return pathKey
    }

    /// The prefix that the keys of a document's collection have in common; nil when the bytes are not a key.
    package static func collectionPrefix(of key: [UInt8]) -> [UInt8]? {
        collectionPrefixEnd(key).map { Array(key[..<$0]) }
    }

    /// The id of a document of the collection with a prefix; nil for documents elsewhere.
    package static func id(_ key: [UInt8], inCollection prefix: [UInt8]) -> String? {
        guard key.count > prefix.count else { return nil }
        let isInside = key.withUnsafeBytes { key in
            prefix.withUnsafeBytes { UTF8Order.compare(UnsafeRawBufferPointer(rebasing: key[..<$0.count]), $0) == 0 }
        }
        guard isInside else { return nil }
        var position = prefix.count
        guard let id = readSegment(key, &position), position == key.count - 1 else { return nil }
        return id
    }

    /// Appends the id of a document of the collection with a prefix; false, and nothing appended, for documents
    /// elsewhere.
    package static func appendID(of key: [UInt8], inCollection prefix: [UInt8], to bytes: inout [UInt8]) -> Bool {
        // Nearly all ids are strings without zeros: the tag, the id, and three bytes.
        let start = prefix.count + 1
        let isAppended = key.withUnsafeBytes { key in
            let end = key.count - 3
            guard start < end, key[start - 1] == Tag.stringSegment, key[end] == 0, key[end + 1] == 1,
                key[end + 2] == Tag.terminator
            else { return false }
            let own = UnsafeRawBufferPointer(rebasing: key[..<prefix.count])
            let id = UnsafeRawBufferPointer(rebasing: key[start..<end])
            guard prefix.withUnsafeBytes({ UTF8Order.compare($0, own) == 0 }), !id.contains(0) else { return false }
            bytes.append(contentsOf: id)
            return true
        }
        if isAppended { return true }
        guard let id = id(key, inCollection: prefix) else { return false }
        bytes.append(contentsOf: id.utf8)
        return true
    }

    /// The start of the part that distinguishes a document from the others of its collection: after the first
    /// terminator.
    static func collectionPrefixEnd(_ key: [UInt8]) -> Int? {
        var position = 0
        while position < key.count, key[position] != Tag.terminator {
            guard let end = segmentEnd(key, position) else { return nil }
            position = end
        }
        return position < key.count ? position + 1 : nil
    }
}
