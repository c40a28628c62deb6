import HearthModel

import Glibc

/// The image of a base whose file has the mark that there is a log: without the mark, because an image has no log.
///
/// The base can't be written for this: its store goes on with a log, which would have no mark meanwhile. So the flag is
/// changed in the bytes that are read. The record is found by its key and value: SQLite has them one behind the other in one
/// page, because they are short, and no client knows the owner's number in them.
///
/// `@unchecked Sendable`: used by one thread at a time.
final class UnmarkedImage: StoreImage, @unchecked Sendable {
    private let inner: any StoreImage
    private let marked: [UInt8]
    /// What was read from the beginning on.
    private var readBytes = 0
    private var isFound = false

    /// The image itself when it has no mark. Closes it when this throws.
    static func of(_ image: any StoreImage) throws(Status) -> any StoreImage {
        do throws(Status) {
            let position = try LogPosition(image.contents)
            return position.hasLog ? UnmarkedImage(image, position) : image
        } catch {
            image.close()
            throw error
        }
    }

    private init(_ inner: any StoreImage, _ position: LogPosition) {
        self.inner = inner
        marked = LogPosition.key + position.bytes
    }

    var sizeBytes: Int { inner.sizeBytes }
    var contents: any Snapshot { inner.contents }
    func close() { inner.close() }

    func read(at offset: Int, into buffer: UnsafeMutableRawBufferPointer) throws(Status) {
        try inner.read(at: offset, into: buffer)
        removeMark(buffer)
        if offset == readBytes { readBytes += buffer.count }
        if readBytes >= sizeBytes, !isFound { throw .internalError("The image has no position of the log.") }
    }

    /// Free space of a page may have it as well.
    private func removeMark(_ buffer: UnsafeMutableRawBufferPointer) {
        guard var position = buffer.baseAddress else { return }
        let end = position + buffer.count
        while end - position >= marked.count, let found = memchr(position, Int32(marked[0]), end - position) {
            position = found + 1
            if end - found < marked.count || memcmp(found, marked, marked.count) != 0 { continue }
            isFound = true
            // The flags are the last number, big-endian.
            found.storeBytes(of: 0, toByteOffset: marked.count - 1, as: UInt8.self)
        }
    }
}
