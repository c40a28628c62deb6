import HearthModel

/// Complete responses in the binary form, directly from stored documents and the model's results.
///
/// Lengths are computed before they are written: the lengths of the parts are known, and no bytes need to move.
extension ProtobufWriter {
    // MARK: Documents

    /// Appends the members of a google.firestore.v1.Document.
    package mutating func document(_ document: EncodedDocument) {
        append(bound: size(of: document)) { $0.document(document) }
    }

    /// The length of what `document` appends.
    func size(of document: EncodedDocument) -> Int {
        let name = document.name.utf8.count
        return (name == 0 ? 0 : 1 + Self.lengthDelimitedSize(name)) + document.fields.count
            + Self.timeSize(document.createTime) + Self.timeSize(document.updateTime)
    }

    /// Appends a document as a field, and the other fields of the response.
    /// - Parameter restSizeMax: the capacity for the output of `rest`.
    @inline(__always)
    private mutating func document(
        _ tag: UInt8, _ document: EncodedDocument, restSizeMax: Int, _ rest: (inout ValueCursor) -> Void
    ) {
        let size = size(of: document)
        append(bound: ValueCursor.headSizeMax + size + restSizeMax) { cursor in
            cursor.byte(tag)
            cursor.varint(UInt64(size))
            cursor.document(document)
            rest(&cursor)
        }
    }

    /// RunQueryResponse with a document.
    /// - Parameters:
    ///   - document: without its name.
    ///   - name: in UTF-8.
    package mutating func runQueryResponse(
        _ document: EncodedDocument, name: [UInt8], readTime: Timestamp, explainMetrics: ExplainMetricsMessage? = nil
    ) {
        let size = 1 + Self.lengthDelimitedSize(name.count) + size(of: document)
        append(bound: 2 * ValueCursor.headSizeMax + size + ValueCursor.scalarSizeMax) { cursor in
            cursor.byte(0x0a)
            cursor.varint(UInt64(size))
            cursor.byte(0x0a)
            cursor.varint(UInt64(name.count))
            name.withUnsafeBytes { cursor.copy($0) }
            cursor.document(document)
            cursor.time(0x1a, readTime)
        }
        if let explainMetrics {
            bytes.append(0x5a)
            let start = beginLength()
            explainMetrics.append(to: &self)
            endLength(start)
        }
    }

    /// BatchGetDocumentsResponse with a document.
    package mutating func batchGetDocumentsResponse(
        found document: EncodedDocument, readTime: Timestamp, transaction: [UInt8] = []
    ) {
        self.document(0x0a, document, restSizeMax: Self.tailSizeMax(transaction)) { cursor in
            cursor.token(0x1a, transaction)
            cursor.time(0x22, readTime)
        }
    }

    /// BatchGetDocumentsResponse with the name of a missing document.
    package mutating func batchGetDocumentsResponse(
        missing name: String, readTime: Timestamp, transaction: [UInt8] = []
    ) {
        append(bound: ValueCursor.headSizeMax + name.utf8.count + Self.tailSizeMax(transaction)) { cursor in
            cursor.byte(0x12)
            cursor.string(name)
            cursor.token(0x1a, transaction)
            cursor.time(0x22, readTime)
        }
    }

    /// ListDocumentsResponse.
    package mutating func listDocumentsResponse(_ documents: [EncodedDocument], nextPageToken: String = "") {
        for document in documents { self.document(0x0a, document, restSizeMax: 0) { _ in } }
        if !nextPageToken.isEmpty {
            bytes.append(0x12)
            string(nextPageToken)
        }
    }

    /// ListenResponse with a document change.
    package mutating func documentChangeResponse(
        _ document: EncodedDocument, targetIDs: [Int32], removedTargetIDs: [Int32] = []
    ) {
        let targets = packedSize(targetIDs)
        let removed = packedSize(removedTargetIDs)
        let size = 1 + Self.lengthDelimitedSize(size(of: document)) + targets + removed
        bytes.append(0x1a)
        varint(UInt64(size))
        self.document(0x0a, document, restSizeMax: 0) { _ in }
        packed(0x2a, targetIDs)
        packed(0x32, removedTargetIDs)
    }

    // MARK: Writes

    /// CommitResponse.
    package mutating func commitResponse(_ results: [WriteResult], commitTime: Timestamp) {
        for result in results { writeResult(0x0a, result) }
        time(0x12, commitTime)
    }

    /// WriteResponse. A handshake has no results and no commit time.
    package mutating func writeResponse(
        streamID: String = "", streamToken: [UInt8], results: [WriteResult] = [], commitTime: Timestamp? = nil
    ) {
        if !streamID.isEmpty {
            bytes.append(0x0a)
            string(streamID)
        }
        if !streamToken.isEmpty {
            bytes.append(0x12)
            lengthDelimited(streamToken)
        }
        for result in results { writeResult(0x1a, result) }
        if let commitTime { time(0x22, commitTime) }
    }

    private mutating func writeResult(_ tag: UInt8, _ result: WriteResult) {
        bytes.append(tag)
        let start = beginLength()
        if let updateTime = result.updateTime { time(0x0a, updateTime) }
        for value in result.transformResults {
            bytes.append(0x12)
            nestedValue(value)
        }
        endLength(start)
    }

    // MARK: Parts

    private mutating func time(_ tag: UInt8, _ time: Timestamp) {
        append(bound: ValueCursor.scalarSizeMax) { $0.time(tag, time) }
    }

    private mutating func packed(_ tag: UInt8, _ numbers: [Int32]) {
        if numbers.isEmpty { return }
        bytes.append(tag)
        let start = beginLength()
        for number in numbers { varint(UInt64(bitPattern: Int64(number))) }
        endLength(start)
    }

    private func packedSize(_ numbers: [Int32]) -> Int {
        if numbers.isEmpty { return 0 }
        return 1 + Self.lengthDelimitedSize(numbers.reduce(0) { $0 + Self.varintSize(UInt64(bitPattern: Int64($1))) })
    }

    /// The maximum size of a time and a transaction.
    private static func tailSizeMax(_ transaction: [UInt8]) -> Int {
        ValueCursor.scalarSizeMax + ValueCursor.headSizeMax + transaction.count
    }

    /// The size of a length and its content.
    private static func lengthDelimitedSize(_ count: Int) -> Int {
        varintSize(UInt64(count)) + count
    }

    /// The size of a time as a field.
    private static func timeSize(_ time: Timestamp?) -> Int {
        guard let time else { return 0 }
        let seconds = time.seconds
        let nanoseconds = time.nanoseconds
        return 2 + (seconds == 0 ? 0 : 1 + varintSize(UInt64(bitPattern: seconds)))
            + (nanoseconds == 0 ? 0 : 1 + varintSize(UInt64(bitPattern: nanoseconds)))
    }
}

extension ValueCursor {
    @inline(__always)
    fileprivate mutating func document(_ document: EncodedDocument) {
        if !document.name.isEmpty {
            byte(0x0a)
            string(document.name)
        }
        document.fields.withUnsafeBytes { copy($0) }
        if let time = document.createTime { self.time(0x1a, time) }
        if let time = document.updateTime { self.time(0x22, time) }
    }

    @inline(__always)
    fileprivate mutating func time(_ tag: UInt8, _ time: Timestamp) {
        byte(tag)
        timestamp(time)
    }

    @inline(__always)
    fileprivate mutating func token(_ tag: UInt8, _ token: [UInt8]) {
        if token.isEmpty { return }
        byte(tag)
        varint(UInt64(token.count))
        token.withUnsafeBytes { copy($0) }
    }
}
