/// google.protobuf.Empty
package struct EmptyMessage: WireMessage {
    package init() {}

    package static let typeName = "google.protobuf.Empty"

    package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {}
}
