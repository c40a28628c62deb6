import HearthModel

extension WireMessage {
    /// Sets a field from a parameter of a request's URL: `mask.fieldPaths=a`, `pageSize=10`. Each call adds one element
    /// to a list.
    /// - Parameters:
    ///   - path: names joined by dots, in camel or snake case.
    ///   - value: the string, percent-decoded.
    /// - Throws: `INVALID_ARGUMENT` in Google's wording when the field does not exist or the value has the wrong type.
    package mutating func set(parameter path: String, _ value: String) throws(Status) {
        let names = path.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        if names.count > Self.parameterDepthMax { throw Self.unbindable(path) }
        // A parameter is treated as a JSON object with one member.
        var writer = JSONWriter()
        for name in names {
            writer.byte(UInt8(ascii: "{"))
            writer.string(String(Substring(name)))
            writer.byte(UInt8(ascii: ":"))
        }
        writer.string(value)
        for _ in names { writer.byte(UInt8(ascii: "}")) }
        try writer.bytes.withBytes { buffer throws(Status) in
            var decoder = try JSONFieldDecoder(buffer)
            decoder.isLenient = true
            do throws(Status) {
                try decode(&decoder)
            } catch {
                if decoder.failedOnName { throw Self.unbindable(path) }
                throw decoder.status(error, at: "")
            }
        }
    }

    /// More levels than any message has.
    private static var parameterDepthMax: Int { 10 }

    private static func unbindable(_ path: String) -> Status {
        .invalidArgument(
            "Invalid JSON payload received. Unknown name \"\(path)\": Cannot bind query parameter. "
                + "Field '\(path)' could not be found in request message.")
    }
}
