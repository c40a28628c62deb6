import HearthConcurrency
import HearthModel

/// The file of a store as it was at the end of one commit, whatever is written meanwhile: for backups.
///
/// What it needs of the engine's old data is kept until it is closed. It stays readable when its store is closed or its
/// database is deleted. Used by one thread at a time.
package protocol StoreImage: AnyObject, Sendable {
    /// The length of the file.
    var sizeBytes: Int { get }

    /// Copies a part of the file.
    /// - Parameters:
    ///   - offset: the part's first byte, a multiple of `StoreImages.pieceBytes`.
    ///   - buffer: has `StoreImages.pieceBytes` bytes, or as many as are left of the file.
    /// - Throws: UNAVAILABLE when the image was taken away because it kept too much old data, or the disk fails; DATA_LOSS
    ///   when a part of the file is missing.
    func read(at offset: Int, into buffer: UnsafeMutableRawBufferPointer) throws(Status)

    /// The contents of the file. Valid until the image is closed.
    var contents: any Snapshot { get }

    /// Ends the use; calls after it are a programmer's error. A second `close` has no effect.
    func close()
}

package enum StoreImages {
    /// Bytes that are read at a time.
    package static let pieceBytes = 256 << 10
}

/// A request for the image of a store; see `LoggedStore.begin(_:)`.
///
/// `@unchecked Sendable`: the monitor guards everything.
package final class ImageRequest: @unchecked Sendable {
    private let monitor = Monitor()
    private var isReady = false
    private var result: Result<any StoreImage, Status>?
    private var isTaken = false
    /// Whether the store stops before it decides which commit is the last one, until `LoggedStore.release(_:)`.
    package let holds: Bool
    private var moment: MonotonicTime?

    package init(holds: Bool) { self.holds = holds }

    deinit { if !isTaken, case .success(let image) = result { image.close() } }

    /// When the last commit of the image was decided; nil before that.
    package var boundary: MonotonicTime? { monitor.withLock { moment } }

    /// Whether the store holds, or has ended the request.
    package func waitUntilReady(until deadline: MonotonicTime) -> Bool {
        monitor.withLock {
            while !isReady, result == nil {
                if MonotonicTime.now >= deadline { return false }
                monitor.wait(until: deadline)
            }
            return true
        }
    }

    /// Waits for the image, which the caller closes.
    /// - Returns: nil at the deadline.
    package func wait(until deadline: MonotonicTime) throws(Status) -> (any StoreImage)? {
        let found = monitor.withLock { () -> Result<any StoreImage, Status>? in
            while result == nil {
                if MonotonicTime.now >= deadline { return nil }
                monitor.wait(until: deadline)
            }
            isTaken = true
            return result
        }
        return try found?.get()
    }

    /// Waits for the end.
    package func hasEnded(within milliseconds: Int) -> Bool {
        let deadline = MonotonicTime.now.advanced(milliseconds: milliseconds)
        return monitor.withLock {
            while result == nil {
                if MonotonicTime.now >= deadline { return false }
                monitor.wait(until: deadline)
            }
            return true
        }
    }

    /// Why there is no image.
    package var failure: Status? {
        monitor.withLock {
            guard case .failure(let status) = result else { return nil }
            return status
        }
    }

    // MARK: For the store

    func becameReady() {
        monitor.withLock {
            isReady = true
            monitor.signal()
        }
    }

    func decided() { monitor.withLock { moment = moment ?? MonotonicTime.now } }

    /// The first result counts.
    package func end(_ result: Result<any StoreImage, Status>) {
        let isFirst = monitor.withLock {
            if self.result != nil { return false }
            self.result = result
            moment = moment ?? MonotonicTime.now
            monitor.signal()
            return true
        }
        if !isFirst, case .success(let image) = result { image.close() }
    }
}
