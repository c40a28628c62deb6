import CCurl
import HearthModel

/// Maps libcurl's failures to gRPC's status codes.
package enum CurlFailure {
    /// - Parameters:
    ///   - message: libcurl's message.
    ///   - peer: `host:port`, for the message.
    package static func status(_ code: CURLcode, _ message: String, peer: String) -> Status {
        let string = "\(peer): \(message)"
        switch code {
        case CURLE_HTTP2_STREAM: return streamReset(resetCode(in: message), string)
        case CURLE_URL_MALFORMAT, CURLE_UNSUPPORTED_PROTOCOL: return .invalidArgument(string)
        case CURLE_OUT_OF_MEMORY: return .resourceExhausted(string)
        case CURLE_SSL_CACERT_BADFILE, CURLE_SSL_CERTPROBLEM, CURLE_SSL_CIPHER: return .failedPrecondition(string)
        case CURLE_BAD_FUNCTION_ARGUMENT, CURLE_UNKNOWN_OPTION, CURLE_NOT_BUILT_IN, CURLE_FAILED_INIT,
            CURLE_TOO_MANY_REDIRECTS:
            return .internalError(string)
        // All other failures concern a connection that could not be made or that broke.
        default: return .unavailable(string)
        }
    }

    /// Source: "gRPC over HTTP2", section Errors.
    package static func streamReset(_ code: Int?, _ string: String) -> Status {
        switch code {
        case 7: .unavailable(string)
        case 8: Status(.cancelled, string)
        case 11: .resourceExhausted(string)
        case 12: Status(.permissionDenied, string)
        default: .internalError(string)
        }
    }

    /// libcurl reports the code in its message: `… (err 8)`.
    package static func resetCode(in message: String) -> Int? {
        guard let start = message.index(after: "(err ") else { return nil }
        let digits = message[start...].prefix { $0.isASCII && $0.isNumber }
        return Int(digits)
    }
}

extension String {
    /// The start of the string after the first occurrence of a part.
    package func index(after piece: String) -> String.Index? {
        var position = startIndex
        while position < endIndex {
            if self[position...].hasPrefix(piece) { return index(position, offsetBy: piece.count) }
            position = index(after: position)
        }
        return nil
    }
}
