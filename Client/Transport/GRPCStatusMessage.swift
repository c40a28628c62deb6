import HearthHTTPClient
import HearthModel

/// The status in a gRPC response's fields.
enum GRPCStatusMessage {
    /// `grpc-status` and `grpc-message`; nil when there is no status.
    static func status(in fields: [HTTPField]) -> Status? {
        guard let string = fields.firstValue("grpc-status") else { return nil }
        let message = fields.firstValue("grpc-message").map(percentDecoded) ?? ""
        guard let number = Int(string) else { return Status(.unknown, "grpc-status is \"\(string)\": \(message)") }
        guard let code = Status.Code(rawValue: number) else {
            return Status(.unknown, "grpc-status is \(number): \(message)")
        }
        return Status(code, message)
    }

    /// Source: gRPC, HTTP to gRPC status code mapping. Only for answers without `grpc-status`.
    static func code(ofHTTPStatus status: Int) -> Status.Code {
        switch status {
        case 400: .internal
        case 401: .unauthenticated
        case 403: .permissionDenied
        case 404: .unimplemented
        case 429, 502, 503, 504: .unavailable
        default: .unknown
        }
    }

    /// Invalid escapes stay as they are: an encoding error must not lose a message.
    static func percentDecoded(_ string: String) -> String {
        let bytes = Array(string.utf8)
        var decoded: [UInt8] = []
        decoded.reserveCapacity(bytes.count)
        var position = 0
        while position < bytes.count {
            if bytes[position] == UInt8(ascii: "%"), position + 2 < bytes.count,
                let high = Character(Unicode.Scalar(bytes[position + 1])).hexDigitValue,
                let low = Character(Unicode.Scalar(bytes[position + 2])).hexDigitValue
            {
                decoded.append(UInt8(high << 4 | low))
                position += 3
            } else {
                decoded.append(bytes[position])
                position += 1
            }
        }
        return String(decoding: decoded, as: UTF8.self)
    }

    /// The value of `grpc-timeout`: at most eight digits and a unit, rounded up.
    static func timeout(milliseconds: Int) -> String {
        let milliseconds = max(1, milliseconds)
        if milliseconds < 100_000_000 { return "\(milliseconds)m" }
        let seconds = milliseconds / 1_000
        if seconds < 100_000_000 { return "\(seconds)S" }
        return "\(min(seconds / 3_600, 99_999_999))H"
    }
}
