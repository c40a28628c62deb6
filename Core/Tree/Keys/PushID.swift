/// Keys in the order of the times at which they were made: eight characters of time, twelve random ones. Source: "The
/// 2^120 Ways to Ensure Unique Identifiers" on the Firebase blog, and the public SDKs.
package enum PushID {
    /// In the order of ASCII, so that the order of keys is that of times.
    private static let alphabet = Array("-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz".utf8)
    private static let randomCount = 12

    /// Makes ids, each behind all earlier ones, also within one millisecond and when the clock is set back.
    package struct Generator: Sendable {
        private var lastMilliseconds: Int64 = -1
        private var random = [UInt8](repeating: 0, count: PushID.randomCount)

        package init() {}

        /// - Parameter nowMilliseconds: since 1970; clients use their estimate of the server's time.
        package mutating func next(
            nowMilliseconds: Int64, using source: inout some RandomNumberGenerator
        ) -> TreeKey {
            if nowMilliseconds > lastMilliseconds {
                lastMilliseconds = max(nowMilliseconds, 0)
                for index in random.indices { random[index] = UInt8.random(in: 0..<64, using: &source) }
            } else if !increment() {
                // All are at their last character: the next millisecond begins, with zeros.
                lastMilliseconds += 1
            }
            return id
        }

        package mutating func next(nowMilliseconds: Int64) -> TreeKey {
            var source = SystemRandomNumberGenerator()
            return next(nowMilliseconds: nowMilliseconds, using: &source)
        }

        /// - Returns: whether there was a next one; else all are zero.
        private mutating func increment() -> Bool {
            for index in random.indices.reversed() {
                if random[index] < 63 {
                    random[index] += 1
                    return true
                }
                random[index] = 0
            }
            return false
        }

        private var id: TreeKey {
            var string: [UInt8] = []
            for shift in stride(from: Int64(42), through: 0, by: -6) {
                string.append(PushID.alphabet[Int(lastMilliseconds >> shift & 63)])
            }
            for value in random { string.append(PushID.alphabet[Int(value)]) }
            return TreeKey(String(decoding: string, as: UTF8.self))
        }
    }
}
