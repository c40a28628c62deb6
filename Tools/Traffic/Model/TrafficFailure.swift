/// What a run of random traffic has found.
package struct TrafficFailure: Error, CustomStringConvertible {
    package let description: String
    package init(_ description: String) { self.description = description }
}
