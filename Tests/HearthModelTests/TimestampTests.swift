import HearthModel
import Testing

@Suite struct TimestampTests {
    static let instants: [(seconds: Int64, nanoseconds: Int64, microseconds: Int64?)] = [
        (0, 0, 0), (0, 999, 0), (0, 1000, 1), (-1, 999_999_999, -1), (-1, 0, -1_000_000), (1, 500_000_000, 1_500_000),
        (-62_135_596_800, 0, -62_135_596_800_000_000), (253_402_300_799, 999_999_999, 253_402_300_799_999_999),
        (-62_135_596_801, 999_999_999, nil), (253_402_300_800, 0, nil), (0, -1, nil), (0, 1_000_000_000, nil),
        (.max, 0, nil), (.min, 0, nil),
    ]

    /// Tokens and damaged files have any number.
    @Test(arguments: [Int64.min, .min + 1, -1, 0, .max]) func anyNumberIsSecondsAndNanoseconds(_ microseconds: Int64) {
        let time = Timestamp(microseconds: microseconds)
        #expect((0..<1_000_000_000).contains(time.nanoseconds) && time.nanoseconds.isMultiple(of: 1000))
        #expect(time.seconds &* 1_000_000 &+ time.nanoseconds / 1000 == microseconds)
    }

    @Test(arguments: instants.indices) func floorsToMicroseconds(_ index: Int) {
        let instant = Self.instants[index]
        let time = Timestamp(seconds: instant.seconds, nanoseconds: instant.nanoseconds)
        #expect(time?.microseconds == instant.microseconds)
        if let time {
            #expect(time.seconds == instant.seconds)
            #expect(time.nanoseconds == instant.nanoseconds / 1000 * 1000)
        }
    }
}
