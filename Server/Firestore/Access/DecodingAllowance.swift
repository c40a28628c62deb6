import HearthModel
import HearthDocuments

/// The number of stored bytes that rules may make a thread read and decode.
final class DecodingAllowance {
    private let bytesMax: Int
    private var bytesLeft: Int

    init(bytesMax: Int) {
        self.bytesMax = bytesMax
        bytesLeft = bytesMax
    }

    /// Resets the allowance for the next judgement.
    func renew() { bytesLeft = bytesMax }

    /// Reading a document costs about as much as decoding this part of it.
    static let readBytesPerByte = 16
    /// Passing this many names on the way to a field costs about as much as decoding a byte.
    static let namesPerByte = 2

    /// - Throws: `WorkMeter.isHeavier` when the allowance is used up.
    func charge(_ bytes: Int) throws(Status) {
        bytesLeft -= bytes
        if bytesLeft < 0 { throw WorkMeter.isHeavier }
    }
}
