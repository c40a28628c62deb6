import HearthModel

/// The keys of the `entries` keyspace.
///
///     01 COLLECTION TEXT(field path) VALUE NAME          automatic index of a field, ascending
///     02 COLLECTION TEXT(field path) VALUE NAME          automatic index of an array's distinct elements
///     03 ID COLLECTION VALUE… NAME                       a definition with collection scope
///     04 ID VALUE… PATH                                  a definition with collection group scope
///     05 TEXT(collection id) PATH                        documents of nested collections, by collection id
///
/// COLLECTION is the collection's path key, NAME the document's SEG and a terminator, PATH its path key (see
/// `DocumentKey`), ID the definition's number in 4 bytes. VALUE is the cut form of `IndexValue`, complemented in
/// descending fields; NAME and PATH are complemented where the definition orders names downwards.
///
/// A root collection needs no 05 entries: its documents are a range of the `documents` keyspace already.
///
/// An entry's value is empty, except in 01 for a number that is a double: one byte 01, so that sums and averages can be
/// taken from the index alone.
enum IndexKey {
    static let fieldKind: UInt8 = 0x01
    static let containsKind: UInt8 = 0x02
    static let collectionKind: UInt8 = 0x03
    static let groupKind: UInt8 = 0x04
    static let groupNameKind: UInt8 = 0x05

    static let doubleMark: [UInt8] = [0x01]

    static func fieldPrefix(collectionPrefix: some Collection<UInt8>, path: FieldPath, contains: Bool) -> [UInt8] {
        var key: [UInt8] = [contains ? containsKind : fieldKind]
        key.append(contentsOf: collectionPrefix)
        IndexValue.appendText(path.text, to: &key)
        return key
    }

    static func definitionPrefix(_ definition: IndexDefinition, collectionPrefix: some Collection<UInt8>) -> [UInt8] {
        var key: [UInt8] = [definition.scope == .collection ? collectionKind : groupKind]
        for shift in [24, 16, 8, 0] { key.append(UInt8(truncatingIfNeeded: definition.id >> UInt32(shift))) }
        if definition.scope == .collection { key.append(contentsOf: collectionPrefix) }
        return key
    }

    static func groupNamePrefix(_ collectionID: String) -> [UInt8] {
        var key: [UInt8] = [groupNameKind]
        IndexValue.appendText(collectionID, to: &key)
        return key
    }
}
