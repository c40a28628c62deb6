import HearthBundle
import HearthModel
import HearthWire

/// The content of a bundle, and its problems. Continues after an element that a client would reject, as long as the
/// elements can be separated.
struct BundleInspection {
    struct Query {
        var name: String
        var readTime: TimestampMessage?
        var bundled: BundledQueryMessage?
        var documentCount = 0
    }

    struct Document {
        var name: String
        var exists: Bool
        var readTime: TimestampMessage?
        var updateTime: TimestampMessage?
        var queries: [String]
        var sizeBytes = 0
    }

    private(set) var metadata: BundleMetadataMessage?
    private(set) var queries: [Query] = []
    private(set) var documents: [Document] = []
    private(set) var problems: [Status] = []
    private(set) var sizeBytes: Int64 = 0
    private(set) var isBroken = false
    private var metadataBytes: Int64 = 0
    private var framing = BundleFraming()
    private var check = BundleCheck(database: nil)

    /// The number of reported problems.
    private static let problemsMax = 20

    mutating func feed(_ piece: ArraySlice<UInt8>) {
        framing.feed(piece)
        takeElements()
    }

    mutating func finish() {
        if isBroken { return }
        framing.finish()
        takeElements()
        if isBroken { return }
        do throws(Status) { try check.finish() } catch { note(error) }
    }

    private mutating func takeElements() {
        if isBroken { return }
        do throws(Status) {
            while let frame = try framing.next() {
                sizeBytes = framing.offset
                take(try BundleReader.decode(framing.buffer, frame), frame)
            }
        } catch {
            note(error)
            isBroken = true
        }
    }

    private mutating func take(_ message: BundleElementMessage, _ frame: BundleFraming.Frame) {
        do throws(Status) { _ = try check.take(message) } catch { note(error) }
        if let message = message.metadata, metadata == nil {
            metadata = message
            metadataBytes = Int64(frame.sizeBytes)
        }
        if let message = message.namedQuery {
            queries.append(Query(name: message.name, readTime: message.readTime, bundled: message.bundledQuery))
        }
        if let message = message.documentMetadata {
            documents.append(
                Document(
                    name: message.name, exists: message.exists, readTime: message.readTime, queries: message.queries,
                    sizeBytes: frame.sizeBytes))
            for name in message.queries {
                if let index = queries.firstIndex(where: { UTF8Order.equal($0.name, name) }) {
                    queries[index].documentCount += 1
                }
            }
        }
        if let message = message.document, let last = documents.indices.last,
            UTF8Order.equal(documents[last].name, message.name)
        {
            documents[last].updateTime = message.updateTime
            documents[last].sizeBytes += frame.sizeBytes
        }
    }

    private mutating func note(_ problem: Status) {
        if problems.count < Self.problemsMax { problems.append(problem) }
    }

    /// The number of bytes after the metadata, which the metadata should contain.
    private var totalBytes: Int64 { sizeBytes - metadataBytes }
}

extension BundleInspection {
    /// Documents that are listed for people.
    private static let documentsMax = 20

    func string(_ path: String) -> String {
        var lines = ["\(path): \(problems.isEmpty ? "can be loaded" : "can't be loaded"), \(sizeBytes) bytes", ""]
        if let metadata {
            lines += [
                "  id         \(metadata.id)", "  created    \(Self.string(metadata.createTime))",
                "  documents  \(documents.count) (\(documents.count { !$0.exists }) missing)",
                "  bytes      \(totalBytes)"
                    + (UInt64(totalBytes) == metadata.totalBytes ? "" : ", the metadata says \(metadata.totalBytes)"),
            ]
        }
        if !queries.isEmpty { lines += ["", "  queries"] }
        for query in queries {
            let count = CheckReport.count(query.documentCount, "document")
            lines.append("    \(query.name): \(count) at \(Self.string(query.readTime))")
        }
        if !documents.isEmpty { lines += ["", "  documents"] }
        for document in documents.prefix(Self.documentsMax) {
            let size = "\(document.sizeBytes) bytes, of \(Self.string(document.updateTime))"
            let state = document.exists ? size : "missing"
            let queries = document.queries.isEmpty ? "" : " (\(document.queries.joined(separator: ", ")))"
            lines.append("    \(Self.path(document.name)): \(state)\(queries)")
        }
        if documents.count > Self.documentsMax { lines.append("    and \(documents.count - Self.documentsMax) more") }
        if !problems.isEmpty { lines += ["", "  problems"] + problems.map { "    \($0.description)" } }
        return (lines + [""]).joined(separator: "\n")
    }

    private static func string(_ time: TimestampMessage?) -> String {
        time.map { RFC3339.format(seconds: $0.seconds, nanoseconds: $0.nanos) } ?? "no time"
    }

    /// The part of a name after `documents`.
    private static func path(_ name: String) -> String {
        let segments = name.split(separator: "/", omittingEmptySubsequences: false)
        return segments.count > 5 ? segments.dropFirst(5).joined(separator: "/") : name
    }
}

extension BundleInspection {
    /// `{"loadable", "sizeBytes", "totalBytes", "metadata", "queries", "documents", "problems"}`
    var json: String {
        var writer = JSONWriter()
        writer.raw("{\"loadable\":")
        writer.bool(problems.isEmpty)
        writer.raw(",\"sizeBytes\":\(sizeBytes),\"totalBytes\":\(totalBytes),\"metadata\":")
        if let metadata { writer.bytes += metadata.json() } else { writer.raw("null") }
        writer.raw(",\"queries\":[")
        for (index, query) in queries.enumerated() {
            if index > 0 { writer.raw(",") }
            writer.raw("{\"name\":")
            writer.string(query.name)
            Self.append(query.readTime, "readTime", to: &writer)
            if let bundled = query.bundled {
                writer.raw(",\"bundledQuery\":")
                writer.bytes += bundled.json()
            }
            writer.raw(",\"documents\":\(query.documentCount)}")
        }
        writer.raw("],\"documents\":[")
        for (index, document) in documents.enumerated() {
            if index > 0 { writer.raw(",") }
            Self.append(document, to: &writer)
        }
        writer.raw("],\"problems\":[")
        for (index, problem) in problems.enumerated() {
            if index > 0 { writer.raw(",") }
            writer.raw("{\"code\":\"\(problem.code.name)\",\"message\":")
            writer.string(problem.message)
            writer.raw("}")
        }
        writer.raw("]}")
        return String(decoding: writer.bytes, as: UTF8.self)
    }

    private static func append(_ document: Document, to writer: inout JSONWriter) {
        writer.raw("{\"name\":")
        writer.string(document.name)
        writer.raw(",\"exists\":")
        writer.bool(document.exists)
        append(document.readTime, "readTime", to: &writer)
        append(document.updateTime, "updateTime", to: &writer)
        writer.raw(",\"sizeBytes\":\(document.sizeBytes),\"queries\":[")
        for (index, query) in document.queries.enumerated() {
            if index > 0 { writer.raw(",") }
            writer.string(query)
        }
        writer.raw("]}")
    }

    private static func append(_ time: TimestampMessage?, _ name: String, to writer: inout JSONWriter) {
        guard let time else { return }
        writer.raw(",\"\(name)\":")
        writer.timestamp(seconds: time.seconds, nanoseconds: time.nanos)
    }
}
