import HearthModel

/// google.rpc.Status
public struct StatusMessage: WireMessage {
    public var code: Int32
    public var message: String
    public var details: [AnyMessage]

    public init() {
        self.init(code: 0)
    }

    public init(code: Int32 = 0, message: String = "", details: [AnyMessage] = []) {
        self.code = code
        self.message = message
        self.details = details
    }

    public static let typeName = "google.rpc.Status"

    public mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.int32(1, "code", &code)
        try visitor.string(2, "message", &message)
        try visitor.messages(3, "details", &details)
    }
}

/// google.rpc.ErrorInfo
public struct ErrorInfoMessage: WireMessage {
    public var reason: String
    public var domain: String
    public var metadata: StringMap

    public init() {
        self.init(reason: "")
    }

    public init(reason: String = "", domain: String = "", metadata: StringMap = StringMap()) {
        self.reason = reason
        self.domain = domain
        self.metadata = metadata
    }

    public static let typeName = "google.rpc.ErrorInfo"

    public mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.string(1, "reason", &reason)
        try visitor.string(2, "domain", &domain)
        try visitor.stringMap(3, "metadata", &metadata)
    }
}

/// google.rpc.RetryInfo
public struct RetryInfoMessage: WireMessage {
    public var retryDelay: DurationMessage?

    public init() {
        self.init(retryDelay: nil)
    }

    public init(retryDelay: DurationMessage? = nil) {
        self.retryDelay = retryDelay
    }

    public static let typeName = "google.rpc.RetryInfo"

    public mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.message(1, "retry_delay", &retryDelay)
    }
}

/// google.rpc.BadRequest
public struct BadRequestMessage: WireMessage {
    public struct FieldViolation: WireMessage {
        public var field: String
        public var description: String
        public var reason: String
        public var localizedMessage: LocalizedMessage?

        public init() {
            self.init(field: "")
        }

        public init(
            field: String = "", description: String = "", reason: String = "",
            localizedMessage: LocalizedMessage? = nil
        ) {
            self.field = field
            self.description = description
            self.reason = reason
            self.localizedMessage = localizedMessage
        }

        public static let typeName = "google.rpc.BadRequest.FieldViolation"

        public mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
            try visitor.string(1, "field", &field)
            try visitor.string(2, "description", &description)
            try visitor.string(3, "reason", &reason)
            try visitor.message(4, "localized_message", &localizedMessage)
        }
    }

    public var fieldViolations: [FieldViolation]

    public init() {
        self.init(fieldViolations: [])
    }

    public init(fieldViolations: [FieldViolation] = []) {
        self.fieldViolations = fieldViolations
    }

    public static let typeName = "google.rpc.BadRequest"

    public mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.messages(1, "field_violations", &fieldViolations)
    }
}

/// google.rpc.Help
public struct HelpMessage: WireMessage {
    public struct Link: WireMessage {
        public var description: String
        public var url: String

        public init() {
            self.init(description: "")
        }

        public init(description: String = "", url: String = "") {
            self.description = description
            self.url = url
        }

        public static let typeName = "google.rpc.Help.Link"

        public mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
            try visitor.string(1, "description", &description)
            try visitor.string(2, "url", &url)
        }
    }

    public var links: [Link]

    public init() {
        self.init(links: [])
    }

    public init(links: [Link] = []) {
        self.links = links
    }

    public static let typeName = "google.rpc.Help"

    public mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.messages(1, "links", &links)
    }
}

/// google.rpc.LocalizedMessage
public struct LocalizedMessage: WireMessage {
    public var locale: String
    public var message: String

    public init() {
        self.init(locale: "")
    }

    public init(locale: String = "", message: String = "") {
        self.locale = locale
        self.message = message
    }

    public static let typeName = "google.rpc.LocalizedMessage"

    public mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.string(1, "locale", &locale)
        try visitor.string(2, "message", &message)
    }
}
