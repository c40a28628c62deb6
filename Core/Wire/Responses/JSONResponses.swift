import HearthModel

/// Complete responses as JSON, directly from stored documents and the model's results. The counterpart of
/// `ProtobufResponses`.
extension JSONWriter {
    // MARK: Documents

    /// Appends a google.firestore.v1.Document.
    /// - Throws: `DATA_LOSS` when the stored bytes are malformed.
    package mutating func document(_ document: EncodedDocument) throws(Status) {
        byte(UInt8(ascii: "{"))
        var isFirst = true
        if !document.name.isEmpty {
            member("name", &isFirst)
            string(document.name)
        }
        if !document.fields.isEmpty {
            member("fields", &isFirst)
            try fields(encoded: document.fields)
        }
        if let time = document.createTime {
            member("createTime", &isFirst)
            timestamp(time)
        }
        if let time = document.updateTime {
            member("updateTime", &isFirst)
            timestamp(time)
        }
        byte(UInt8(ascii: "}"))
    }

    /// RunQueryResponse with a document.
    package mutating func runQueryResponse(
        _ document: EncodedDocument, readTime: Timestamp, explainMetrics: ExplainMetricsMessage? = nil,
        options: JSONOptions = JSONOptions()
    ) throws(Status) {
        raw("{\"document\":")
        try self.document(document)
        finish(readTime: readTime, transaction: [])
        if let explainMetrics {
            raw(",\"explainMetrics\":")
            bytes.append(contentsOf: explainMetrics.json(options))
        }
        byte(UInt8(ascii: "}"))
    }

    /// BatchGetDocumentsResponse with a document.
    package mutating func batchGetDocumentsResponse(
        found document: EncodedDocument, readTime: Timestamp, transaction: [UInt8] = []
    ) throws(Status) {
        raw("{\"found\":")
        try self.document(document)
        finish(readTime: readTime, transaction: transaction)
        byte(UInt8(ascii: "}"))
    }

    /// BatchGetDocumentsResponse with the name of a missing document.
    package mutating func batchGetDocumentsResponse(
        missing name: String, readTime: Timestamp, transaction: [UInt8] = []
    ) {
        raw("{\"missing\":")
        string(name)
        finish(readTime: readTime, transaction: transaction)
        byte(UInt8(ascii: "}"))
    }

    private mutating func finish(readTime: Timestamp, transaction: [UInt8]) {
        if !transaction.isEmpty {
            raw(",\"transaction\":")
            transaction.withUnsafeBytes { base64($0) }
        }
        raw(",\"readTime\":")
        timestamp(readTime)
    }

    /// ListDocumentsResponse.
    package mutating func listDocumentsResponse(
        _ documents: [EncodedDocument], nextPageToken: String = ""
    ) throws(Status) {
        byte(UInt8(ascii: "{"))
        var isFirst = true
        if !documents.isEmpty {
            member("documents", &isFirst)
            byte(UInt8(ascii: "["))
            for (index, document) in documents.enumerated() {
                if index > 0 { byte(UInt8(ascii: ",")) }
                try self.document(document)
            }
            byte(UInt8(ascii: "]"))
        }
        if !nextPageToken.isEmpty {
            member("nextPageToken", &isFirst)
            string(nextPageToken)
        }
        byte(UInt8(ascii: "}"))
    }

    /// ListenResponse with a document change, for WebChannel.
    package mutating func documentChangeResponse(
        _ document: EncodedDocument, targetIDs: [Int32], removedTargetIDs: [Int32] = []
    ) throws(Status) {
        raw("{\"documentChange\":{\"document\":")
        try self.document(document)
        numbers(",\"targetIds\":", targetIDs)
        numbers(",\"removedTargetIds\":", removedTargetIDs)
        raw("}}")
    }

    private mutating func numbers(_ head: StaticString, _ numbers: [Int32]) {
        if numbers.isEmpty { return }
        raw(head)
        byte(UInt8(ascii: "["))
        for (index, number) in numbers.enumerated() {
            if index > 0 { byte(UInt8(ascii: ",")) }
            integer(Int64(number))
        }
        byte(UInt8(ascii: "]"))
    }

    // MARK: Writes

    /// CommitResponse.
    package mutating func commitResponse(_ results: [WriteResult], commitTime: Timestamp) {
        byte(UInt8(ascii: "{"))
        var isFirst = true
        writeResults(results, &isFirst)
        member("commitTime", &isFirst)
        timestamp(commitTime)
        byte(UInt8(ascii: "}"))
    }

    /// WriteResponse. A handshake has no results and no commit time.
    package mutating func writeResponse(
        streamID: String = "", streamToken: [UInt8], results: [WriteResult] = [], commitTime: Timestamp? = nil
    ) {
        byte(UInt8(ascii: "{"))
        var isFirst = true
        if !streamID.isEmpty {
            member("streamId", &isFirst)
            string(streamID)
        }
        if !streamToken.isEmpty {
            member("streamToken", &isFirst)
            streamToken.withUnsafeBytes { base64($0) }
        }
        writeResults(results, &isFirst)
        if let commitTime {
            member("commitTime", &isFirst)
            timestamp(commitTime)
        }
        byte(UInt8(ascii: "}"))
    }

    private mutating func writeResults(_ results: [WriteResult], _ isFirst: inout Bool) {
        if results.isEmpty { return }
        member("writeResults", &isFirst)
        byte(UInt8(ascii: "["))
        for (index, result) in results.enumerated() {
            if index > 0 { byte(UInt8(ascii: ",")) }
            writeResult(result)
        }
        byte(UInt8(ascii: "]"))
    }

    private mutating func writeResult(_ result: WriteResult) {
        byte(UInt8(ascii: "{"))
        var isFirst = true
        if let updateTime = result.updateTime {
            member("updateTime", &isFirst)
            timestamp(updateTime)
        }
        if !result.transformResults.isEmpty {
            member("transformResults", &isFirst)
            byte(UInt8(ascii: "["))
            for (index, element) in result.transformResults.enumerated() {
                if index > 0 { byte(UInt8(ascii: ",")) }
                value(element)
            }
            byte(UInt8(ascii: "]"))
        }
        byte(UInt8(ascii: "}"))
    }

    private mutating func member(_ name: StaticString, _ isFirst: inout Bool) {
        if !isFirst { byte(UInt8(ascii: ",")) }
        isFirst = false
        byte(UInt8(ascii: "\""))
        raw(name)
        raw("\":")
    }
}

extension WriteResultMessage {
    package init(_ result: WriteResult) {
        self.init(
            updateTime: result.updateTime.map { TimestampMessage($0) }, transformResults: result.transformResults)
    }

    /// - Throws: INVALID_ARGUMENT when the time is out of range.
    package func writeResult() throws(Status) -> WriteResult {
        WriteResult(updateTime: try updateTime?.timestamp(), transformResults: transformResults)
    }
}

extension StatusMessage {
    package init(_ status: Status) {
        self.init(code: Int32(status.code.rawValue), message: status.message)
    }

    /// The status; an unknown code becomes `UNKNOWN`.
    package var status: Status {
        Status(Status.Code(rawValue: Int(code)) ?? .unknown, message)
    }
}
