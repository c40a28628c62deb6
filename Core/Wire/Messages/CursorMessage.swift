import HearthModel

/// google.firestore.v1.Cursor
package struct CursorMessage: WireMessage {
    package var values: [Value]
    package var before: Bool

    package init() {
        self.init(values: [])
    }

    package init(values: [Value] = [], before: Bool = false) {
        self.values = values
        self.before = before
    }

    package static let typeName = "google.firestore.v1.Cursor"

    package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.values(1, "values", &values)
        try visitor.bool(2, "before", &before)
    }
}
