/// One header field. Names are lowercase in both directions.
package struct HTTPHeader: Sendable, Hashable {
    package var name: String
    package var value: String

    /// - Parameter name: lowercase.
    package init(_ name: String, _ value: String) {
        self.name = name
        self.value = value
    }

    package init(name: String, value: String) {
        self.name = name
        self.value = value
    }
}
