import HearthModel
import HearthWire

/// Google's error object.
package enum ErrorBody {
    /// - Parameter http: the HTTP status; nil for that of the code.
    package static func json(_ status: Status, http: Int? = nil) -> [UInt8] {
        var writer = JSONWriter()
        writer.raw("{\"error\":{\"code\":")
        writer.integer(Int64(http ?? status.code.httpStatus))
        writer.raw(",\"message\":")
        writer.string(status.message)
        writer.raw(",\"status\":\"")
        writer.raw(status.code.name)
        writer.raw("\"")
        if status.message.hasPrefix("Invalid JSON payload received.") {
            // An error in the request's form is reported a second time, by field.
            writer.raw(",\"details\":[{\"@type\":\"type.googleapis.com/google.rpc.BadRequest\",\"fieldViolations\":[{")
            if let field = field(status.message) {
                writer.raw("\"field\":")
                writer.string(field)
                writer.raw(",")
            }
            writer.raw("\"description\":")
            writer.string(status.message)
            writer.raw("}]}]")
        }
        writer.raw("}}")
        return writer.bytes
    }

    /// The path in `… at 'structured_query.where': …`.
    private static func field(_ message: String) -> String? {
        let parts = message.split(separator: "'", maxSplits: 2, omittingEmptySubsequences: false)
        return parts.count == 3 && parts[0].hasSuffix(" at ") ? String(parts[1]) : nil
    }
}
