import HearthModel

/// google.firestore.v1.TransactionOptions
public struct TransactionOptionsMessage: WireMessage {
    public struct ConcurrencyMode: WireEnum {
        public var rawValue: Int32

        public init(rawValue: Int32 = 0) {
            self.rawValue = rawValue
        }

        public static let unspecified = ConcurrencyMode(rawValue: 0)
        public static let optimistic = ConcurrencyMode(rawValue: 1)
        public static let pessimistic = ConcurrencyMode(rawValue: 2)

        public static let typeName = "google.firestore.v1.TransactionOptions.ConcurrencyMode"
        public static let names: [(number: Int32, name: StaticString)] = [
            (0, "CONCURRENCY_MODE_UNSPECIFIED"), (1, "OPTIMISTIC"), (2, "PESSIMISTIC"),
        ]
    }

    public struct ReadWrite: WireMessage {
        public var retryTransaction: [UInt8]
        public var concurrencyMode: TransactionOptionsMessage.ConcurrencyMode

        public init() {
            self.init(retryTransaction: [])
        }

        public init(
            retryTransaction: [UInt8] = [],
            concurrencyMode: TransactionOptionsMessage.ConcurrencyMode = TransactionOptionsMessage.ConcurrencyMode()
        ) {
            self.retryTransaction = retryTransaction
            self.concurrencyMode = concurrencyMode
        }

        public static let typeName = "google.firestore.v1.TransactionOptions.ReadWrite"

        public mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
            try visitor.bytes(1, "retry_transaction", &retryTransaction)
            try visitor.enumeration(2, "concurrency_mode", &concurrencyMode)
        }
    }

    public struct ReadOnly: WireMessage {
        public var readTime: TimestampMessage?

        public init() {
            self.init(readTime: nil)
        }

        public init(readTime: TimestampMessage? = nil) {
            self.readTime = readTime
        }

        public static let typeName = "google.firestore.v1.TransactionOptions.ReadOnly"

        public mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
            try visitor.message(2, "read_time", oneof: "consistency_selector", &readTime)
        }
    }

    public var readOnly: ReadOnly?
    public var readWrite: ReadWrite?

    public init() {
        self.init(readOnly: nil)
    }

    public init(readOnly: ReadOnly? = nil, readWrite: ReadWrite? = nil) {
        self.readOnly = readOnly
        self.readWrite = readWrite
    }

    public static let typeName = "google.firestore.v1.TransactionOptions"

    public mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.message(2, "read_only", oneof: "mode", &readOnly)
        try visitor.message(3, "read_write", oneof: "mode", &readWrite)
    }
}

/// google.firestore.v1.RequestOptions
public struct RequestOptionsMessage: WireMessage {
    public var requestTags: [String]

    public init() {
        self.init(requestTags: [])
    }

    public init(requestTags: [String] = []) {
        self.requestTags = requestTags
    }

    public static let typeName = "google.firestore.v1.RequestOptions"

    public mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.strings(1, "request_tags", &requestTags)
    }
}

/// google.firestore.v1.BeginTransactionRequest
public struct BeginTransactionRequest: WireMessage {
    public var database: String
    public var options: TransactionOptionsMessage?
    public var requestOptions: RequestOptionsMessage?

    public init() {
        self.init(database: "")
    }

    public init(
        database: String = "", options: TransactionOptionsMessage? = nil, requestOptions: RequestOptionsMessage? = nil
    ) {
        self.database = database
        self.options = options
        self.requestOptions = requestOptions
    }

    public static let typeName = "google.firestore.v1.BeginTransactionRequest"

    public mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.string(1, "database", &database)
        try visitor.message(2, "options", &options)
        try visitor.message(3, "request_options", &requestOptions)
    }
}

/// google.firestore.v1.BeginTransactionResponse
public struct BeginTransactionResponse: WireMessage {
    public var transaction: [UInt8]

    public init() {
        self.init(transaction: [])
    }

    public init(transaction: [UInt8] = []) {
        self.transaction = transaction
    }

    public static let typeName = "google.firestore.v1.BeginTransactionResponse"

    public mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.bytes(1, "transaction", &transaction)
    }
}

/// google.firestore.v1.CommitRequest
public struct CommitRequest: WireMessage {
    public var database: String
    public var writes: [WriteMessage]
    public var transaction: [UInt8]
    public var requestOptions: RequestOptionsMessage?

    public init() {
        self.init(database: "")
    }

    public init(
        database: String = "", writes: [WriteMessage] = [], transaction: [UInt8] = [],
        requestOptions: RequestOptionsMessage? = nil
    ) {
        self.database = database
        self.writes = writes
        self.transaction = transaction
        self.requestOptions = requestOptions
    }

    public static let typeName = "google.firestore.v1.CommitRequest"

    public mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.string(1, "database", &database)
        try visitor.messages(2, "writes", &writes)
        try visitor.bytes(3, "transaction", &transaction)
        try visitor.message(4, "request_options", &requestOptions)
    }
}

/// google.firestore.v1.CommitResponse
public struct CommitResponse: WireMessage {
    public var writeResults: [WriteResultMessage]
    public var commitTime: TimestampMessage?

    public init() {
        self.init(writeResults: [])
    }

    public init(writeResults: [WriteResultMessage] = [], commitTime: TimestampMessage? = nil) {
        self.writeResults = writeResults
        self.commitTime = commitTime
    }

    public static let typeName = "google.firestore.v1.CommitResponse"

    public mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.messages(1, "write_results", &writeResults)
        try visitor.message(2, "commit_time", &commitTime)
    }
}

/// google.firestore.v1.RollbackRequest
public struct RollbackRequest: WireMessage {
    public var database: String
    public var transaction: [UInt8]
    public var requestOptions: RequestOptionsMessage?

    public init() {
        self.init(database: "")
    }

    public init(database: String = "", transaction: [UInt8] = [], requestOptions: RequestOptionsMessage? = nil) {
        self.database = database
        self.transaction = transaction
        self.requestOptions = requestOptions
    }

    public static let typeName = "google.firestore.v1.RollbackRequest"

    public mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.string(1, "database", &database)
        try visitor.bytes(2, "transaction", &transaction)
        try visitor.message(3, "request_options", &requestOptions)
    }
}
