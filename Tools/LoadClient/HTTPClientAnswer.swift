import HearthNetwork

/// A response that was collected.
package struct HTTPClientAnswer: Sendable {
    package var status: Int
    package var headers: [HTTPHeader]
    package var body: [UInt8]
    package var trailers: [HTTPHeader]
}
