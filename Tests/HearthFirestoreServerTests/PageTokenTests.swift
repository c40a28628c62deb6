import HearthModel
import Testing

@testable import HearthFirestoreServer

@Suite struct PageTokenTests {
    private static let fingerprint = PageToken.fingerprint(["list"])

    @Test func aTokenIsWhatItWas() throws {
        let token = PageToken(readTime: Timestamp(microseconds: 5), position: [1, 2, 3])
        let read = try PageToken(token.string(fingerprint: Self.fingerprint), fingerprint: Self.fingerprint)
        #expect(read?.readTime == token.readTime)
        #expect(read?.position == token.position)
    }

    /// A client can make a token: its fingerprint is no secret. Sums with such a time could overflow.
    @Test(arguments: [Int64.min, .max, Timestamp.microsecondsRange.upperBound + 1])
    func aTokenWithAnImpossibleTimeIsRefused(_ microseconds: Int64) {
        let token = PageToken(readTime: Timestamp(microseconds: microseconds), position: [])
            .string(fingerprint: Self.fingerprint)
        let status = #expect(throws: Status.self) { try PageToken(token, fingerprint: Self.fingerprint) }
        #expect(status?.code == .invalidArgument)
    }

    @Test func aRulesetOfAnImpossibleTimeIsNone() {
        let id = "00000000-0000-0000-0000-000000000000"
        #expect(RulesetKey(fileName: "0006000000000000-\(id).ruleset") != nil)
        #expect(RulesetKey(fileName: "7fffffffffffffff-\(id).ruleset") == nil)
    }
}
