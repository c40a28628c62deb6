import HearthModel

/// google.firestore.v1.TransactionOptions
package struct TransactionOptionsMessage: WireMessage {
    package struct ConcurrencyMode: WireEnum {
        package var rawValue: Int32

        package init(rawValue: Int32 = 0) {
            self.rawValue = rawValue
        }

        package static let unspecified = ConcurrencyMode(rawValue: 0)
        package static let optimistic = ConcurrencyMode(rawValue: 1)
        package static let pessimistic = ConcurrencyMode(rawValue: 2)

        package static let typeName = "google.firestore.v1.TransactionOptions.ConcurrencyMode"
        package static let names: [(number: Int32, name: StaticString)] = [
            (0, "CONCURRENCY_MODE_UNSPECIFIED"), (1, "OPTIMISTIC"), (2, "PESSIMISTIC"),
        ]
    }

    package struct ReadWrite: WireMessage {
        package var retryTransaction: [UInt8]
        package var concurrencyMode: TransactionOptionsMessage.ConcurrencyMode

        package init() {
            self.init(retryTransaction: [])
        }

        package init(
            retryTransaction: [UInt8] = [],
            concurrencyMode: TransactionOptionsMessage.ConcurrencyMode = TransactionOptionsMessage.ConcurrencyMode()
        ) {
            self.retryTransaction = retryTransaction
            self.concurrencyMode = concurrencyMode
        }

        package static let typeName = "google.firestore.v1.TransactionOptions.ReadWrite"

        package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
            try visitor.bytes(1, "retry_transaction", &retryTransaction)
            try visitor.enumeration(2, "concurrency_mode", &concurrencyMode)
        }
    }

    package struct ReadOnly: WireMessage {
        package var readTime: TimestampMessage?

        package init() {
            self.init(readTime: nil)
        }

        package init(readTime: TimestampMessage? = nil) {
            self.readTime = readTime
        }

        package static let typeName = "google.firestore.v1.TransactionOptions.ReadOnly"

        package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
            try visitor.message(2, "read_time", oneof: "consistency_selector", &readTime)
        }
    }

    package var readOnly: ReadOnly?
    package var readWrite: ReadWrite?

    package init() {
        self.init(readOnly: nil)
    }

    package init(readOnly: ReadOnly? = nil, readWrite: ReadWrite? = nil) {
        self.readOnly = readOnly
        self.readWrite = readWrite
    }

    package static let typeName = "google.firestore.v1.TransactionOptions"

    package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.message(2, "read_only", oneof: "mode", &readOnly)
        try visitor.message(3, "read_write", oneof: "mode", &readWrite)
    }
}

/// google.firestore.v1.RequestOptions
package struct RequestOptionsMessage: WireMessage {
    package var requestTags: [String]

    package init() {
        self.init(requestTags: [])
    }

    package init(requestTags: [String] = []) {
        self.requestTags = requestTags
    }

    package static let typeName = "google.firestore.v1.RequestOptions"

    package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.strings(1, "request_tags", &requestTags)
    }
}

/// google.firestore.v1.BeginTransactionRequest
package struct BeginTransactionRequest: WireMessage {
    package var database: String
    package var options: TransactionOptionsMessage?
    package var requestOptions: RequestOptionsMessage?

    package init() {
        self.init(database: "")
    }

    package init(
        database: String = "", options: TransactionOptionsMessage? = nil, requestOptions: RequestOptionsMessage? = nil
    ) {
        self.database = database
        self.options = options
        self.requestOptions = requestOptions
    }

    package static let typeName = "google.firestore.v1.BeginTransactionRequest"

    package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.string(1, "database", &database)
        try visitor.message(2, "options", &options)
        try visitor.message(3, "request_options", &requestOptions)
    }
}

/// google.firestore.v1.BeginTransactionResponse
package struct BeginTransactionResponse: WireMessage {
    package var transaction: [UInt8]

    package init() {
        self.init(transaction: [])
    }

    package init(transaction: [UInt8] = []) {
        self.transaction = transaction
    }

    package static let typeName = "google.firestore.v1.BeginTransactionResponse"

    package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.bytes(1, "transaction", &transaction)
    }
}

/// google.firestore.v1.CommitRequest
package struct CommitRequest: WireMessage {
    package var database: String
    package var writes: [WriteMessage]
    package var transaction: [UInt8]
    package var requestOptions: RequestOptionsMessage?

    package init() {
        self.init(database: "")
    }

    package init(
        database: String = "", writes: [WriteMessage] = [], transaction: [UInt8] = [],
        requestOptions: RequestOptionsMessage? = nil
    ) {
        self.database = database
        self.writes = writes
        self.transaction = transaction
        self.requestOptions = requestOptions
    }

    package static let typeName = "google.firestore.v1.CommitRequest"

    package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.string(1, "database", &database)
        try visitor.messages(2, "writes", &writes)
        try visitor.bytes(3, "transaction", &transaction)
        try visitor.message(4, "request_options", &requestOptions)
    }
}

/// google.firestore.v1.CommitResponse
package struct CommitResponse: WireMessage {
    package var writeResults: [WriteResultMessage]
    package var commitTime: TimestampMessage?

    package init() {
        self.init(writeResults: [])
    }

    package init(writeResults: [WriteResultMessage] = [], commitTime: TimestampMessage? = nil) {
        self.writeResults = writeResults
        self.commitTime = commitTime
    }

    package static let typeName = "google.firestore.v1.CommitResponse"

    package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.messages(1, "write_results", &writeResults)
        try visitor.message(2, "commit_time", &commitTime)
    }
}

/// google.firestore.v1.RollbackRequest
package struct RollbackRequest: WireMessage {
    package var database: String
    package var transaction: [UInt8]
    package var requestOptions: RequestOptionsMessage?

    package init() {
        self.init(database: "")
    }

    package init(database: String = "", transaction: [UInt8] = [], requestOptions: RequestOptionsMessage? = nil) {
        self.database = database
        self.transaction = transaction
        self.requestOptions = requestOptions
    }

    package static let typeName = "google.firestore.v1.RollbackRequest"

    package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.string(1, "database", &database)
        try visitor.bytes(2, "transaction", &transaction)
        try visitor.message(3, "request_options", &requestOptions)
    }
}
