import HearthModel

/// Where the files of a backup go, one after the other. Calls wait for whoever takes the bytes.
package protocol BackupTarget: AnyObject {
    /// A file begins.
    /// - Parameter bytes: how many will be written.
    func begin(_ path: String, bytes: Int) throws(Status)
    func write(_ bytes: [UInt8]) throws(Status)
    /// The file is complete.
    func end() throws(Status)
    /// The last file was the manifest.
    func finish() throws(Status)
}

/// An archive that is sent as it is made.
package final class TarTarget: BackupTarget {
    private let seconds: Int
    private let send: ([UInt8]) throws(Status) -> Void
    private var bytes = 0

    /// - Parameters:
    ///   - seconds: since 1970, for the files' times.
    ///   - send: takes the next part of the archive.
    package init(seconds: Int, send: @escaping ([UInt8]) throws(Status) -> Void) {
        self.seconds = seconds
        self.send = send
    }

    package func begin(_ path: String, bytes: Int) throws(Status) {
        self.bytes = bytes
        try send(TarFormat.header(path, bytes: bytes, seconds: seconds))
    }

    package func write(_ bytes: [UInt8]) throws(Status) { try send(bytes) }

    package func end() throws(Status) {
        let padding = TarFormat.padding(bytes)
        if padding > 0 { try send([UInt8](repeating: 0, count: padding)) }
    }

    package func finish() throws(Status) { try send(TarFormat.end) }
}
