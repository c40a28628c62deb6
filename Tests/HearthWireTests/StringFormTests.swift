import HearthModel
import HearthWire
import Testing

@Suite struct StringFormTests {
    @Test(
        arguments: [
            ([], ""), ([0], "AA=="), ([0, 0], "AAA="), ([251, 255, 191], "+/+/"), (Array("foobar".utf8), "Zm9vYmFy"),
            (Array("fooba".utf8), "Zm9vYmE="),
        ] as [([UInt8], String)])
    func base64IsWrittenWithPaddingAndReadInBothAlphabets(_ content: [UInt8], _ expected: String) {
        #expect(Base64.encode(content) == expected)
        let urlSafe = String(expected.map { $0 == "+" ? "-" : $0 == "/" ? "_" : $0 })
        let bare = String(urlSafe.prefix { $0 != "=" })
        #expect(Base64.encodeURLSafe(content) == bare)
        for form in [expected, urlSafe, bare, String(expected.prefix { $0 != "=" })] {
            #expect(Base64.decode(form) == content, "\(form)")
        }
    }

    @Test(arguments: ["A", "AAAAA", "A===", "AA=", "=", "====", "A=AA", "AA A", "AA\n=", "é===", "AAA*"])
    func malformedBase64IsRejected(_ form: String) {
        #expect(Base64.decode(form) == nil)
    }

    @Test(
        arguments: [
            ("1970-01-01T00:00:00Z", 0, 0), ("2024-02-29T12:30:15.5Z", 1_709_209_815, 500_000_000),
            ("0001-01-01T00:00:00Z", -62_135_596_800, 0),
            ("9999-12-31T23:59:59.999999999Z", 253_402_300_799, 999_999_999),
            ("2000-02-29T00:00:00.000001Z", 951_782_400, 1000), ("1969-12-31T23:59:59.123Z", -1, 123_000_000),
            ("2024-01-01T00:30:00+01:00", 1_704_065_400, 0), ("2023-12-31T18:30:00-05:30", 1_704_067_200, 0),
            ("2024-01-01t00:00:00z", 1_704_067_200, 0), ("1900-03-01T00:00:00Z", -2_203_891_200, 0),
            ("2100-03-01T00:00:00Z", 4_107_542_400, 0),
        ] as [(String, Int64, Int32)])
    func timesAreRead(_ string: String, _ seconds: Int64, _ nanoseconds: Int32) {
        #expect(RFC3339.parse(string) == RFC3339.Instant(seconds: seconds, nanoseconds: nanoseconds))
    }

    @Test(arguments: [
        "", "2024", "2024-01-01", "2024-01-01T00:00:00", "2024-1-01T00:00:00Z", "2024-00-01T00:00:00Z",
        "2024-13-01T00:00:00Z",
        "2024-01-00T00:00:00Z", "2024-01-32T00:00:00Z", "2023-02-29T00:00:00Z", "1900-02-29T00:00:00Z",
        "2024-04-31T00:00:00Z",
        "2024-01-01T24:00:00Z", "2024-01-01T00:60:00Z", "2024-01-01T00:00:60Z", "2024-01-01T00:00:00.Z",
        "2024-01-01T00:00:00.1234567890Z", "2024-01-01T00:00:00+1:00", "2024-01-01T00:00:00+01",
        "2024-01-01T00:00:00+24:00",
        "2024-01-01T00:00:00ZZ", "2024-01-01 00:00:00Z", "0000-01-01T00:00:00Z", "0001-01-01T00:00:00+00:01",
        "9999-12-31T23:59:59-00:01", "10000-01-01T00:00:00Z", "２024-01-01T00:00:00Z", "-001-01-01T00:00:00Z",
    ])
    func malformedTimesAreRejected(_ string: String) {
        #expect(RFC3339.parse(string) == nil)
    }

    @Test func timesAreWrittenWithTheDigitsTheyNeed() {
        for (nanoseconds, fraction) in [
            (0, ""), (100_000_000, ".100"), (1000, ".000001"), (1, ".000000001"), (120_000, ".000120"),
        ] {
            #expect(
                RFC3339.format(seconds: 1_704_067_199, nanoseconds: Int32(nanoseconds))
                    == "2023-12-31T23:59:59\(fraction)Z")
        }
        // Out of range, the result is the nearest time with a four-digit year.
        #expect(RFC3339.format(seconds: .min, nanoseconds: -1) == "0001-01-01T00:00:00Z")
        #expect(RFC3339.format(seconds: .max, nanoseconds: .max) == "9999-12-31T23:59:59.999999999Z")
    }

    @Test func everyDayIsReadAsWritten() {
        // Testing each day would take long; a step that is coprime to weeks and years covers all kinds.
        for day in stride(from: Timestamp.secondsMin, through: Timestamp.secondsMax, by: 86_400 * 13 + 3607) {
            let string = RFC3339.format(seconds: day, nanoseconds: 0)
            #expect(RFC3339.parse(string)?.seconds == day)
        }
    }

    @Test func durationsAreReadAndWritten() {
        for (string, seconds, nanos) in [
            ("0s", 0, 0), ("1.500s", 1, 500_000_000), ("-1.000000001s", -1, -1), ("-0.500s", 0, -500_000_000),
            ("3600s", 3600, 0),
        ] {
            let duration = DurationMessage(parsing: string)
            #expect(duration == DurationMessage(seconds: Int64(seconds), nanos: Int32(nanos)))
            #expect(duration?.string == string)
        }
        #expect(DurationMessage(parsing: "1.5s")?.nanos == 500_000_000)
        for string in [
            "", "s", "1", "1.s", ".5s", "1.1234567890s", "+1s", "1e3s", "--1s", "315576000001s", " 1s", "1 s",
        ] {
            #expect(DurationMessage(parsing: string) == nil, "\(string)")
        }
    }

    @Test func precisionOfTimesIsKnown() throws {
        let fine = TimestampMessage(seconds: 1, nanos: 1500)
        #expect(try fine.timestamp() == Timestamp(microseconds: 1_000_001))
        #expect(
            refusal { () throws(Status) in try fine.preciseTimestamp() }
                == "timestamp cannot have more than microseconds precision")
        #expect(try TimestampMessage(seconds: -1, nanos: 999_999_999).timestamp() == Timestamp(microseconds: -1))
        for wrong in [
            TimestampMessage(seconds: Timestamp.secondsMax + 1), TimestampMessage(seconds: Timestamp.secondsMin - 1),
            TimestampMessage(seconds: 0, nanos: -1), TimestampMessage(seconds: 0, nanos: 1_000_000_000),
        ] { #expect(refusal { () throws(Status) in try wrong.timestamp() } != nil) }
    }
}
