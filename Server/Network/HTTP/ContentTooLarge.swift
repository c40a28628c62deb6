/// The response to a request whose body is too large for every handler: 413 with the error object that clients of
/// Google's APIs read.
enum ContentTooLarge {
    static let contentType = HTTPHeader("content-type", "application/json; charset=UTF-8")

    static func body(limitBytes: Int) -> [UInt8] {
        Array(
            "{\"error\":{\"code\":413,\"message\":\"Request payload size exceeds the limit: \(limitBytes) bytes.\",\"status\":\"INVALID_ARGUMENT\"}}"
                .utf8)
    }
}
