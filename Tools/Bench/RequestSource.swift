/// The messages of a load's requests, asked for one by one on the thread of the load. Their bytes are valid until the
/// next one. What a request costs here is taken from the server, so as much as possible is done before the load.
protocol RequestSource: AnyObject {
    func next(_ number: Int) -> UnsafeBufferPointer<UInt8>
}

/// Messages that are repeated.
final class CycledRequests: RequestSource {
    private let bytes: UnsafeMutableBufferPointer<UInt8>
    /// Where each begins, and the end of the last.
    private let starts: [Int]

    /// - Parameter messages: at least one.
    init(_ messages: [[UInt8]]) {
        var starts = [0]
        for message in messages { starts.append(starts[starts.count - 1] + message.count) }
        self.starts = starts
        bytes = .allocate(capacity: starts[starts.count - 1])
        for (index, message) in messages.enumerated() {
            _ = UnsafeMutableBufferPointer(rebasing: bytes[starts[index]...]).initialize(from: message)
        }
    }

    deinit { bytes.deallocate() }

    func next(_ number: Int) -> UnsafeBufferPointer<UInt8> {
        let index = number % (starts.count - 1)
        return UnsafeBufferPointer(rebasing: bytes[starts[index]..<starts[index + 1]])
    }
}

/// Messages that are made one by one, for loads whose speed is not a figure.
final class MadeRequests: RequestSource {
    private let make: LoadGenerator.MessageMaker
    private var random: SeededRandom
    private var bytes = UnsafeMutableBufferPointer<UInt8>.allocate(capacity: 4096)

    init(seed: UInt64, _ make: @escaping LoadGenerator.MessageMaker) {
        self.make = make
        random = SeededRandom(seed: seed)
    }

    deinit { bytes.deallocate() }

    func next(_ number: Int) -> UnsafeBufferPointer<UInt8> {
        let message = make(number, &random)
        if message.count > bytes.count {
            bytes.deallocate()
            bytes = .allocate(capacity: max(message.count, 2 * bytes.count))
        }
        _ = bytes.initialize(from: message)
        return UnsafeBufferPointer(rebasing: bytes[..<message.count])
    }
}
