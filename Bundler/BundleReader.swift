import HearthModel
import HearthWire

/// Reads a bundle as a stream: feed bytes, take elements.
///
///     var reader = BundleReader(database: database)
///     repeat {
///         let piece = read(65_536)
///         piece.isEmpty ? reader.finish() : reader.feed(piece)
///         while let element = try reader.next() { … }
///     } while !reader.isAtEnd
///
/// Once it has thrown, it throws the same again.
package struct BundleReader: Sendable {
    private var framing = BundleFraming()
    private var check: BundleCheck
    private var failure: Status?
    private var hasEnded = false
    private var sizeOfMetadata: Int64 = 0
    /// Whether everything was read and the end was checked.
    package private(set) var isAtEnd = false

    /// A reader without bytes.
    /// - Parameter database: the database of all names; nil takes that of the first name.
    package init(database: DatabaseName?) {
        check = BundleCheck(database: database)
    }

    /// Available after the first element.
    package var metadata: BundleMetadata? { check.metadata }
    /// The given database, or that of the first name.
    package var database: DatabaseName? { check.database }
    /// The number of distinct complete documents.
    package var documentCount: Int { check.documentCount }
    /// The size of the elements read so far, without the metadata: progress towards `BundleMetadata.totalBytes`.
    package var bytesRead: Int64 { framing.offset - sizeOfMetadata }

    /// Adds the next piece of the source.
    /// - Parameter piece: bytes of any number.
    package mutating func feed(_ piece: some Collection<UInt8>) { framing.feed(piece) }

    /// Marks the end of the source; `next` then checks the end.
    package mutating func finish() {
        framing.finish()
        hasEnded = true
    }

    /// Takes the next element.
    /// - Returns: the element; nil when more bytes are needed or, after `finish`, at the end.
    /// - Throws: `DATA_LOSS` when the bytes are malformed or truncated; `INVALID_ARGUMENT` when the elements contradict
    ///   each other, or the version is unknown.
    package mutating func next() throws(Status) -> BundleElement? {
        if let failure { throw failure }
        do throws(Status) { return try readElement() } catch {
            failure = error
            throw error
        }
    }

    private mutating func readElement() throws(Status) -> BundleElement? {
        while let frame = try framing.next() {
            let message = try Self.decode(framing.buffer, frame)
            let isFirst = check.metadata == nil
            guard let element = try check.take(message) else { continue }
            if isFirst { sizeOfMetadata = framing.offset }
            return element
        }
        if hasEnded, !isAtEnd {
            try check.finish()
            isAtEnd = true
        }
        return nil
    }

    /// Decodes one element.
    /// - Parameters:
    ///   - buffer: the buffer of a `BundleFraming`.
    ///   - frame: the location of the element in it.
    /// - Returns: the element.
    /// - Throws: `DATA_LOSS` when it is malformed.
    package static func decode(
        _ buffer: [UInt8], _ frame: BundleFraming.Frame
    ) throws(Status) -> BundleElementMessage {
        let result = buffer.withUnsafeBytes { bytes -> Result<BundleElementMessage, Status> in
            let json = UnsafeRawBufferPointer(rebasing: bytes[frame.json])
            do throws(Status) { return .success(try BundleElementMessage(json: json, forms: .bundle)) } catch {
                return .failure(error)
            }
        }
        do throws(Status) { return try result.get() } catch {
            throw Status(.dataLoss, "The bundle's element at byte \(frame.offset) is damaged: \(error.message)")
        }
    }
}
