import Glibc

/// An `errno` with its message.
struct SystemError {
    let code: Int32

    static var last: SystemError { SystemError(code: errno) }

    var string: String {
        var buffer = [CChar](repeating: 0, count: 256)
        guard strerror_r(code, &buffer, buffer.count) == 0 else { return "error \(code)" }
        return String(decoding: buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}
