/// Handles gRPC calls: requests over HTTP/2 whose content type is `application/grpc`. Called on the loop's thread.
package protocol GRPCHandler: Sendable {
    func begin(_ call: GRPCCall)
}
