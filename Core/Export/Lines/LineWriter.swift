import HearthModel
import HearthWire

/// Writes documents as lines of NDJSON: `{"name": "cities/LA", "fields": {…}}`, values as in REST.
package struct LineWriter {
    package init() {}

    /// - Throws: DATA_LOSS when the fields are malformed.
    /// - Returns: the line, with its end.
    package func line(path: String, fields: [UInt8]) throws(Status) -> [UInt8] {
        var writer = JSONWriter()
        writer.writesEmptyMembers = true
        writer.raw("{\"name\":" as StaticString)
        writer.string(path)
        writer.raw(",\"fields\":" as StaticString)
        try writer.fields(encoded: fields)
        writer.raw("}\n" as StaticString)
        return writer.bytes
    }
}
