import HearthModel

/// google.rpc.Status
package struct StatusMessage: WireMessage {
    package var code: Int32
    package var message: String
    package var details: [AnyMessage]

    package init() {
        self.init(code: 0)
    }

    package init(code: Int32 = 0, message: String = "", details: [AnyMessage] = []) {
        self.code = code
        self.message = message
        self.details = details
    }

    package static let typeName = "google.rpc.Status"

    package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.int32(1, "code", &code)
        try visitor.string(2, "message", &message)
        try visitor.messages(3, "details", &details)
    }
}

/// google.rpc.ErrorInfo
package struct ErrorInfoMessage: WireMessage {
    package var reason: String
    package var domain: String
    package var metadata: StringMap

    package init() {
        self.init(reason: "")
    }

    package init(reason: String = "", domain: String = "", metadata: StringMap = StringMap()) {
        self.reason = reason
        self.domain = domain
        self.metadata = metadata
    }

    package static let typeName = "google.rpc.ErrorInfo"

    package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.string(1, "reason", &reason)
        try visitor.string(2, "domain", &domain)
        try visitor.stringMap(3, "metadata", &metadata)
    }
}

/// google.rpc.RetryInfo
package struct RetryInfoMessage: WireMessage {
    package var retryDelay: DurationMessage?

    package init() {
        self.init(retryDelay: nil)
    }

    package init(retryDelay: DurationMessage? = nil) {
        self.retryDelay = retryDelay
    }

    package static let typeName = "google.rpc.RetryInfo"

    package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.message(1, "retry_delay", &retryDelay)
    }
}

/// google.rpc.BadRequest
package struct BadRequestMessage: WireMessage {
    package struct FieldViolation: WireMessage {
        package var field: String
        package var description: String
        package var reason: String
        package var localizedMessage: LocalizedMessage?

        package init() {
            self.init(field: "")
        }

        package init(
            field: String = "", description: String = "", reason: String = "",
            localizedMessage: LocalizedMessage? = nil
        ) {
            self.field = field
            self.description = description
            self.reason = reason
            self.localizedMessage = localizedMessage
        }

        package static let typeName = "google.rpc.BadRequest.FieldViolation"

        package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
            try visitor.string(1, "field", &field)
            try visitor.string(2, "description", &description)
            try visitor.string(3, "reason", &reason)
            try visitor.message(4, "localized_message", &localizedMessage)
        }
    }

    package var fieldViolations: [FieldViolation]

    package init() {
        self.init(fieldViolations: [])
    }

    package init(fieldViolations: [FieldViolation] = []) {
        self.fieldViolations = fieldViolations
    }

    package static let typeName = "google.rpc.BadRequest"

    package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.messages(1, "field_violations", &fieldViolations)
    }
}

/// google.rpc.Help
package struct HelpMessage: WireMessage {
    package struct Link: WireMessage {
        package var description: String
        package var url: String

        package init() {
            self.init(description: "")
        }

        package init(description: String = "", url: String = "") {
            self.description = description
            self.url = url
        }

        package static let typeName = "google.rpc.Help.Link"

        package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
            try visitor.string(1, "description", &description)
            try visitor.string(2, "url", &url)
        }
    }

    package var links: [Link]

    package init() {
        self.init(links: [])
    }

    package init(links: [Link] = []) {
        self.links = links
    }

    package static let typeName = "google.rpc.Help"

    package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.messages(1, "links", &links)
    }
}

/// google.rpc.LocalizedMessage
package struct LocalizedMessage: WireMessage {
    package var locale: String
    package var message: String

    package init() {
        self.init(locale: "")
    }

    package init(locale: String = "", message: String = "") {
        self.locale = locale
        self.message = message
    }

    package static let typeName = "google.rpc.LocalizedMessage"

    package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.string(1, "locale", &locale)
        try visitor.string(2, "message", &message)
    }
}
