import HearthModel

/// The keys of the `entries` keyspace.
///
///     01 COLLECTION STR(field path) VALUE NAME           automatic index of a field, ascending
///     02 COLLECTION STR(field path) VALUE NAME           automatic index of an array's distinct elements
///     03 ID COLLECTION VALUE… NAME                       a definition with collection scope
///     04 ID VALUE… PATH                                  a definition with collection group scope, or of expiry times
///     05 STR(collection id) PATH                         documents of nested collections, by collection id
///
/// COLLECTION is the collection's path key, NAME the document's SEG and a terminator, PATH its path key (see
/// `DocumentKey`), ID the definition's number in 4 bytes. VALUE is the cut form of `IndexValue`, complemented in
/// descending fields; NAME and PATH are complemented where the definition orders names downwards.
///
/// A root collection needs no 05 entries: its documents are a range of the `documents` keyspace already.
///
/// An entry's value is empty, except in 01 for a number that is a double: one byte 01, so that sums and averages can be
/// taken from the index alone.
package enum IndexKey {
    static let fieldKind: UInt8 = 0x01
    static let containsKind: UInt8 = 0x02
    static let collectionKind: UInt8 = 0x03
    static let groupKind: UInt8 = 0x04
    static let groupNameKind: UInt8 = 0x05

    static let doubleMark: [UInt8] = [0x01]

    static func fieldPrefix(collectionPrefix: some Collection<UInt8>, path: FieldPath, contains: Bool) -> [UInt8] {
        fieldPrefix(collectionPrefix: collectionPrefix, pathString: path.string, contains: contains)
    }

    static func fieldPrefix(
        collectionPrefix: some Collection<UInt8>, pathString string: String, contains: Bool
    ) -> [UInt8] {
        var key: [UInt8] = []
        // Capacity for a short value and name.
        key.reserveCapacity(collectionPrefix.count + string.utf8.count + 64)
        key.append(contains ? containsKind : fieldKind)
        key.append(contentsOf: collectionPrefix)
        IndexValue.appendString(string, to: &key)
        return key
    }

    /// Appends STR(field path) for a top-level field.
    /// - Parameter name: its UTF-8 bytes.
    static func appendFieldPath(_ name: UnsafeRawBufferPointer, to key: inout [UInt8]) {
        if FieldPath.isPlain(name) {
            IndexValue.appendString(name, to: &key)
        } else {
            IndexValue.appendString(FieldPath.quoted(String(decoding: name, as: UTF8.self)), to: &key)
        }
    }

    static func definitionPrefix(_ definition: IndexDefinition, collectionPrefix: some Collection<UInt8>) -> [UInt8] {
        var key = idPrefix(definition)
        if definition.scope == .collection { key.append(contentsOf: collectionPrefix) }
        return key
    }

    /// The common prefix of all entries of a definition.
    static func idPrefix(_ definition: IndexDefinition) -> [UInt8] {
        var key: [UInt8] = [definition.scope == .collection ? collectionKind : groupKind]
        for shift in [24, 16, 8, 0] { key.append(UInt8(truncatingIfNeeded: definition.id >> UInt32(shift))) }
        return key
    }

    static func groupNamePrefix(_ collectionID: String) -> [UInt8] {
        var key: [UInt8] = [groupNameKind]
        IndexValue.appendString(collectionID, to: &key)
        return key
    }

    /// The document of an entry; nil when the key is unreadable or of no index in the catalog.
    package static func documentKey(of entry: [UInt8], catalog: IndexCatalog) -> [UInt8]? {
        switch entry.first {
        case fieldKind, containsKind:
            guard let collectionEnd = collectionEnd(entry, from: 1),
                let pathEnd = DocumentKey.stringEnd(entry, collectionEnd),
                let valueEnd = IndexValue.end(of: entry, from: pathEnd + 2, complemented: false)?.end
            else { return nil }
            return Array(entry[1..<collectionEnd]) + entry[valueEnd...]
        case collectionKind, groupKind:
            guard entry.count > 5,
                let definition = catalog.definitions.first(where: { entry.starts(with: idPrefix($0)) })
            else { return nil }
            return documentKey(of: entry, definition)
        case groupNameKind:
            guard let end = DocumentKey.stringEnd(entry, 1) else { return nil }
            return DocumentKey.fromPathKey(Array(entry[(end + 2)...]))
        default: return nil
        }
    }

    static func documentKey(of entry: [UInt8], _ definition: IndexDefinition) -> [UInt8]? {
        var position = 5
        if definition.scope == .collection {
            guard let end = collectionEnd(entry, from: position) else { return nil }
            position = end
        }
        let collection = entry[5..<position]
        for field in definition.fields {
            let complemented = field.kind == .descending
            guard let end = IndexValue.end(of: entry, from: position, complemented: complemented)?.end else {
                return nil
            }
            position = end
        }
        let name = entry[position...].map { definition.nameDescending ? ~$0 : $0 }
        return definition.scope == .collection ? Array(collection) + name : DocumentKey.fromPathKey(name)
    }

    /// Where the path key of a collection ends.
    private static func collectionEnd(_ entry: [UInt8], from start: Int) -> Int? {
        var position = start
        while position < entry.count, entry[position] != IndexValue.Tag.terminator {
            guard let end = DocumentKey.segmentEnd(entry, position) else { return nil }
            position = end
        }
        return position < entry.count ? position + 1 : nil
    }
}
