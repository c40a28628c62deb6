import HearthTraffic

/// Entry points for fuzzing the server's HTTP/2. What differs from the model traps.
package enum HTTP2Fuzzing {
    /// Bytes of a client that keeps to nothing: see `RawTraffic`.
    package static func fuzzInput(_ bytes: [UInt8]) {
        do { try RawTraffic.run(bytes) } catch { preconditionFailure("\(error)") }
    }

    /// The bytes choose sizes, windows, pauses, resets and their order; the server's answers are read by a client and
    /// compared with the model: see `TrafficSimulation`.
    package static func fuzzOutput(_ bytes: [UInt8]) {
        do {
            _ = try TrafficSimulation(Choices(input: bytes), kinds: [.http2]).run(steps: 400)
        } catch { preconditionFailure("\(error)") }
    }
}
