import HearthModel
import HearthWire

/// The JSON form of elements: compact, members in the order of the protos. `exists` and the metadata's numbers are
/// always written, `limitType` only with a limit, `queries` only when there are some.
enum BundleElementWriter {
    static func metadata(
        id: String, createTime: TimestampMessage, totalDocuments: Int, totalBytes: Int64
    ) -> [UInt8] {
        var writer = JSONWriter()
        writer.raw("{\"metadata\":{\"id\":")
        writer.string(id)
        writer.raw(",\"createTime\":")
        writer.timestamp(seconds: createTime.seconds, nanoseconds: createTime.nanos)
        writer.raw(",\"version\":")
        writer.integer(Int64(BundleMetadata.currentVersion))
        writer.raw(",\"totalDocuments\":")
        writer.integer(Int64(totalDocuments))
        writer.raw(",\"totalBytes\":")
        writer.integer(totalBytes)
        writer.raw("}}")
        return writer.bytes
    }

    static func namedQuery(
        _ name: String, parent: ResourceName, _ query: StructuredQueryMessage, _ limitType: BundleQuery.LimitType,
        readTime: TimestampMessage
    ) -> [UInt8] {
        var writer = JSONWriter()
        writer.raw("{\"namedQuery\":{\"name\":")
        writer.string(name)
        writer.raw(",\"bundledQuery\":{\"parent\":")
        writer.string(parent.string)
        writer.raw(",\"structuredQuery\":")
        writer.bytes += query.json()
        if query.limit != nil {
            switch limitType {
            case .first: writer.raw(",\"limitType\":\"FIRST\"")
            case .last: writer.raw(",\"limitType\":\"LAST\"")
            }
        }
        writer.raw("},\"readTime\":")
        writer.timestamp(seconds: readTime.seconds, nanoseconds: readTime.nanos)
        writer.raw("}}")
        return writer.bytes
    }

    static func documentMetadata(
        _ name: String, readTime: TimestampMessage, exists: Bool, queries: [String]
    ) -> [UInt8] {
        var writer = JSONWriter()
        writer.raw("{\"documentMetadata\":{\"name\":")
        writer.string(name)
        writer.raw(",\"readTime\":")
        writer.timestamp(seconds: readTime.seconds, nanoseconds: readTime.nanos)
        writer.raw(",\"exists\":")
        writer.bool(exists)
        if !queries.isEmpty {
            writer.raw(",\"queries\":[")
            for (index, query) in queries.enumerated() {
                if index > 0 { writer.byte(UInt8(ascii: ",")) }
                writer.string(query)
            }
            writer.byte(UInt8(ascii: "]"))
        }
        writer.raw("}}")
        return writer.bytes
    }

    static func document(_ document: EncodedDocument, updateTime: Timestamp) throws(Status) -> [UInt8] {
        var writer = JSONWriter()
        writer.writesEmptyMembers = true
        writer.raw("{\"document\":{\"name\":")
        writer.string(document.name)
        writer.raw(",\"fields\":")
        try writer.fields(encoded: document.fields)
        if let time = document.createTime {
            writer.raw(",\"createTime\":")
            writer.timestamp(TimestampMessage(time))
        }
        writer.raw(",\"updateTime\":")
        writer.timestamp(TimestampMessage(updateTime))
        writer.raw("}}")
        return writer.bytes
    }

    /// An element preceded by its length.
    static func framed(_ json: [UInt8]) -> [UInt8] {
        var writer = JSONWriter()
        writer.reserve(json.count + Limits.bundlePrefixDigitsMax)
        writer.unsigned(UInt64(json.count))
        writer.bytes += json
        return writer.bytes
    }
}

extension JSONWriter {
    fileprivate mutating func timestamp(_ time: TimestampMessage) {
        timestamp(seconds: time.seconds, nanoseconds: time.nanos)
    }
}
