/// The token with which a client resumes a target: the version up to which it knows everything, and the history of that
/// version.
///
///     incarnation of the database (8 bytes, big-endian) · version (8 bytes, big-endian)
struct ResumeToken: Equatable {
    var incarnation: Int64
    var version: Int64

    init(incarnation: Int64, version: Int64) {
        self.incarnation = incarnation
        self.version = version
    }

    /// Nil for bytes that are not a token of this server.
    init?(_ bytes: [UInt8]) {
        guard bytes.count == 16 else { return nil }
        func number(_ part: ArraySlice<UInt8>) -> Int64 {
            Int64(bitPattern: part.reduce(0) { $0 << 8 | UInt64($1) })
        }
        incarnation = number(bytes[..<8])
        version = number(bytes[8...])
    }

    var bytes: [UInt8] {
        [incarnation, version].flatMap { number in withUnsafeBytes(of: number.bigEndian) { Array($0) } }
    }
}
