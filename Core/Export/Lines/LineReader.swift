import Glibc
import HearthModel
import HearthWire

/// Reads documents from NDJSON, a line each. Holds one line. Blank lines are skipped; `createTime` and `updateTime` are
/// ignored.
package final class LineReader {
    private let source: any ByteSource
    private let target: DatabaseName?
    private var buffer: [UInt8] = []
    /// The unread part of `buffer`, and where the search for the end of the line goes on.
    private var position = 0
    private var searched = 0
    private var isAtEnd = false
    /// The number of the line that was read last, from 1.
    package private(set) var lineNumber = 0
    /// Bytes that were consumed.
    package private(set) var consumedBytes = 0

    private let piece = UnsafeMutableRawBufferPointer.allocate(byteCount: 256 << 10, alignment: 16)

    /// - Parameter target: the database that references into that of a full name are moved to; nil keeps them.
    package init(_ source: any ByteSource, target: DatabaseName? = nil) {
        self.source = source
        self.target = target
    }

    deinit { piece.deallocate() }

    /// The next document; nil at the end.
    /// - Throws: INVALID_ARGUMENT with the file and the line.
    package func next() throws(Status) -> ExportedDocument? {
        while let line = try nextLine() {
            do throws(Status) {
                if let document = try document(line) { return document }
            } catch {
                throw failure(error.message)
            }
        }
        return nil
    }

    /// An error of the line that was read last.
    package func failure(_ message: String) -> Status { .invalidArgument("\(source.name):\(lineNumber): \(message)") }

    private func document(_ line: ArraySlice<UInt8>) throws(Status) -> ExportedDocument? {
        let isBlank = line.allSatisfy {
            $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\t") || $0 == UInt8(ascii: "\r")
        }
        if isBlank { return nil }
        let message = try DocumentMessage(json: Array(line))
        if message.name.isEmpty { throw .invalidArgument("The document has no name.") }
        // A full name has an odd number of segments, a path below the database an even one.
        if message.name.utf8.count(where: { $0 == UInt8(ascii: "/") }).isMultiple(of: 2) {
            let name = try ResourceName(document: message.name)
            return ExportedDocument(
                database: name.database, path: name.path.string,
                fields: FieldsCodec.encode(moved(message.fields, from: name.database)))
        }
        return ExportedDocument(path: message.name, fields: FieldsCodec.encode(message.fields))
    }

    private func moved(_ fields: MapValue, from source: DatabaseName) -> MapValue {
        guard let target, target != source else { return fields }
        return moved(fields, source.documentsRoot + "/", target.documentsRoot + "/")
    }

    private func moved(_ map: MapValue, _ source: String, _ target: String) -> MapValue {
        MapValue(sorted: map.fields.map { MapValue.Field(name: $0.name, value: moved($0.value, source, target)) })
    }

    private func moved(_ value: Value, _ source: String, _ target: String) -> Value {
        switch value {
        case .reference(let name) where name.utf8.starts(with: source.utf8):
            .reference(target + String(Substring(name.utf8.dropFirst(source.utf8.count))))
        case .array(let elements): .array(elements.map { moved($0, source, target) })
        case .map(let map): .map(moved(map, source, target))
        default: value
        }
    }

    // MARK: Lines

    private func nextLine() throws(Status) -> ArraySlice<UInt8>? {
        while true {
            if let end = lineEnd() { return take(end, next: end + 1) }
            searched = buffer.count
            if isAtEnd { return position == buffer.count ? nil : take(buffer.count, next: buffer.count) }
            if buffer.count - position > Limits.exportLineBytesMax {
                lineNumber += 1
                throw failure("the line is longer than \(Limits.exportLineBytesMax >> 20) MiB.")
            }
            try readMore()
        }
    }

    private func lineEnd() -> Int? {
        buffer.withUnsafeBytes { bytes in
            guard let base = bytes.baseAddress, searched < bytes.count,
                let found = memchr(base + searched, Int32(UInt8(ascii: "\n")), bytes.count - searched)
            else { return nil }
            return UnsafeRawPointer(found) - base
        }
    }

    private func take(_ end: Int, next: Int) -> ArraySlice<UInt8> {
        let line = buffer[position..<end]
        consumedBytes += next - position
        position = next
        searched = next
        lineNumber += 1
        return line
    }

    private func readMore() throws(Status) {
        if position > 0 {
            buffer.removeSubrange(..<position)
            searched -= position
            position = 0
        }
        let count = try source.read(into: piece)
        buffer.append(contentsOf: UnsafeRawBufferPointer(rebasing: piece[..<count]))
        if count == 0 { isAtEnd = true }
    }
}
