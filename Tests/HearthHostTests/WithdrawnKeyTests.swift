@testable import HearthConcurrency
import HearthTestSupport
import HearthModel
import HearthNetwork
import HearthDocuments
import HearthWire
import Synchronization
import Testing

@testable import HearthHost

/// Tokens whose issuer withdraws their key, and tokens with extreme times.
@Suite struct WithdrawnKeyTests {
    private static let now: Int64 = 1_700_000_000
    private static let first = (
        pem: """
        -----BEGIN PRIVATE KEY-----
        MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg9hDSTZl6afaInf4v
        RnPIIpzspN7UawRXjsOVmT68iMahRANCAATbL2LApL+o5axGH2UwyNb1Xbke+Dfm
        2/eDzhbydh1RpGEomrqZj6sEEDEJoUyeKF/SkcyIgsCbhwRQxor6pbEQ
        -----END PRIVATE KEY-----
        """,
        json: #"{"kty":"EC","crv":"P-256","kid":"a","x":"2y9iwKS_qOWsRh9lMMjW9V25Hvg35tv3g84W8nYdUaQ","#
            + #""y":"YSiaupmPqwQQMQmhTJ4oX9KRzIiCwJuHBFDGivqlsRA"}"#
    )
    private static let second =
        #"{"kty":"EC","crv":"P-256","kid":"b","#
        + #""x":"EMqIUYwSwB56caXgUhY_6ci_y6FN6_Wn1yZEJoKh2UU","y":"eO8BlvYN8cMSoRAvnHaYv_FR_GY53WNJ2o3aq2B50wk"}"#

    /// An authenticator that reads the keys of an issuer from a file.
    private final class Bench {
        let clock = StoppedClock()
        let folder = TemporaryFolder()
        let loop: EventLoop
        let authenticator: Authenticator
        let token: String

        init() throws {
            folder.write("keys.json", #"{"keys":[\#(WithdrawnKeyTests.first.json),\#(WithdrawnKeyTests.second)]}"#)
            var configuration = IdentityConfiguration()
            configuration.issuers = [.init(issuer: "i", audience: "app", keys: folder.path + "/keys.json")]
            configuration.keys = [.init(id: nil, key: try .secret([UInt8](repeating: 1, count: 32)))]
            authenticator = Authenticator(isEmulator: false, project: "p", configuration, clock: clock)
            loop = try EventLoop(index: 97)
            try loop.start()
            token = try TokenMint.mint(
                try .pem(Array(WithdrawnKeyTests.first.pem.utf8), isPrivate: true), keyID: "a", issuer: "i",
                subject: "alice", audience: "app", issuedAt: WithdrawnKeyTests.now, seconds: 1_000_000)
        }

        deinit { loop.stopAndJoin() }

        func withdraw() { folder.write("keys.json", #"{"keys":[\#(WithdrawnKeyTests.second)]}"#) }

        func identity(_ token: String? = nil) async throws -> Identity {
            let token = token ?? self.token
            return try await withCheckedContinuation { continuation in
                loop.execute { [loop, authenticator] in
                    authenticator.identify("Bearer " + token, on: loop) { continuation.resume(returning: $0) }
                }
            }.get()
        }

        func code() async -> Status.Code? {
            do {
                _ = try await identity()
                return nil
            } catch {
                return (error as? Status)?.code
            }
        }
    }

    @Test func aTokenOfAWithdrawnKeyFailsWithinAMinute() async throws {
        let bench = try Bench()
        #expect(await bench.code() == nil)
        bench.withdraw()
        // It is cached: requests do not check whether the key still exists.
        #expect(await bench.code() == nil)
        bench.clock.advance(seconds: Double(KeySet.staleSeconds))
        #expect(await bench.code() == .unauthenticated)
    }

    @Test func requestsWithTokensTriggerFetchesInTheBackground() async throws {
        let bench = try Bench()
        #expect(await bench.code() == nil)
        bench.withdraw()
        bench.clock.advance(seconds: Double(KeySet.refreshSeconds))
        // The first request does not wait; one after the fetch fails.
        await until { await bench.code() == .unauthenticated }
    }

    @Test func unchangedKeysKeepTokensCached() async throws {
        let bench = try Bench()
        guard case .client(let before?) = try await bench.identity() else { throw Status.internalError("nobody") }
        bench.clock.advance(seconds: Double(KeySet.staleSeconds))
        guard case .client(let after?) = try await bench.identity() else { throw Status.internalError("nobody") }
        #expect(before.end?.proof?.key === after.end?.proof?.key)
        #expect(before.end?.proof?.validity == .accepted)
    }

    @Test func whileFetchesFailTheOldKeysAreValidForAnHour() async throws {
        let bench = try Bench()
        #expect(await bench.code() == nil)
        bench.folder.write("keys.json", "nothing of use")
        bench.clock.advance(seconds: Double(KeySet.staleSeconds))
        #expect(await bench.code() == nil)
        bench.clock.advance(seconds: Double(KeySet.staleSecondsMax - KeySet.staleSeconds - 1))
        #expect(await bench.code() == nil)
        bench.clock.advance(seconds: 1)
        #expect(await bench.code() == .unavailable)
    }

    @Test func aStreamEndsWithItsKey() async throws {
        let bench = try Bench()
        guard case .client(let client?) = try await bench.identity() else { throw Status.internalError("nobody") }
        let end = TokenEnd(seconds: Timestamp.secondsMax, proof: client.end?.proof, clock: bench.clock)
        let ended = Slot<Status>()
        let expiry = try #require(TokenExpiry(end, on: bench.loop) { ended.value = $0 })
        await onLoop(bench.loop) { expiry.check() }
        #expect(ended.value == nil)
        bench.withdraw()
        bench.clock.advance(seconds: Double(KeySet.staleSeconds))
        while ended.value == nil { await onLoop(bench.loop) { expiry.check() } }
        #expect(ended.value == KeySet.withdrawn)
    }

    @Test func theEndOfATokenIsMeasuredByTheClockThatVerifiedIt() async throws {
        let bench = try Bench()
        let end = TokenEnd(seconds: Self.now + 10, proof: nil, clock: bench.clock)
        let ended = Slot<Status>()
        let expiry = try #require(TokenExpiry(end, on: bench.loop) { ended.value = $0 })
        // The system's clock is years ahead of it.
        await onLoop(bench.loop) { expiry.check() }
        #expect(ended.value == nil)
    }

    /// A request, a socket and a stream accept the same token for the same time: a minute more, because clocks differ.
    @Test func aTokenIsAcceptedForAMinuteMoreByStreamsToo() async throws {
        let bench = try Bench()
        let identity = try await identity(bench, expiredFor: 59)
        guard case .client(let client?) = identity else { throw Status.internalError("nobody") }
        let end = try #require(client.end)
        #expect(end.secondsLeft == 1)
        let ended = Slot<Status>()
        let expiry = try #require(TokenExpiry(end, on: bench.loop) { ended.value = $0 })
        await onLoop(bench.loop) { expiry.check() }
        #expect(ended.value == nil)
        await onLoop(bench.loop) { expiry.cancel() }
        await #expect(throws: Authenticator.expired) { try await self.identity(bench, expiredFor: 60) }
    }

    @discardableResult
    private func identity(_ bench: Bench, expiredFor seconds: Int64) async throws -> Identity {
        let token = try TokenMint.mint(
            try .pem(Array(Self.first.pem.utf8), isPrivate: true), keyID: "a", issuer: "i", subject: "alice",
            audience: "app", issuedAt: Self.now - 1000, seconds: 1000 - seconds)
        return try await bench.identity(token)
    }

    /// Also where no key can be withdrawn: the clock may be set forward, and the stream's timer does not notice that.
    @Test func theEndOfATokenIsCheckedEveryMinute() async throws {
        let bench = try Bench()
        let end = TokenEnd(seconds: Self.now + 3600, proof: nil, clock: bench.clock)
        let expiry = try #require(TokenExpiry(end, on: bench.loop) { _ in })
        #expect(expiry.secondsToCheck < 60)
        await onLoop(bench.loop) { expiry.cancel() }
    }

    private func onLoop(_ loop: EventLoop, _ body: @escaping @Sendable () -> Void) async {
        await withCheckedContinuation { continuation in
            loop.execute {
                body()
                continuation.resume()
            }
        }
    }

    // MARK: Times

    private static let extremes = [
        "9223372036854775807", "-9223372036854775808", "9223372036854775747", "1e308", "-1e308", "1e999",
        "253402300800", "0",
        "-1", "1.5", "18446744073709551616",
    ]

    @Test(arguments: ["exp", "nbf", "iat", "auth_time"], extremes)
    func noTimeOfATokenOverflows(_ claim: String, _ string: String) async throws {
        let bench = try Bench()
        let time = Double(string) ?? 0
        let isTime = time >= 0 && time < 253_402_300_800
        let isFuture = time > Double(Self.now)
        let expiry = claim == "exp" ? string : "\(Self.now + 60)"
        let more = claim == "exp" ? "" : ",\"\(claim)\":\(string)"
        let token = try Self.signed(
            #"{"iss":"hearth","sub":"alice","exp":\#(expiry)\#(more)}"#)
        let isBelieved: Bool
        do {
            // Twice: the second time it may be cached.
            _ = try await bench.identity(token)
            _ = try await bench.identity(token)
            isBelieved = true
        } catch {
            isBelieved = false
        }
        #expect(isBelieved == (isTime && (claim == "exp" ? isFuture : !isFuture)))
    }

    @Test(arguments: [#""x""#, "true", "[]", "{}"])
    func whatIsNoTimeIsRefused(_ string: String) async throws {
        let bench = try Bench()
        let token = try Self.signed(#"{"iss":"hearth","sub":"alice","exp":\#(Self.now + 60),"nbf":\#(string)}"#)
        await #expect(throws: Status.self) { _ = try await bench.identity(token) }
    }

    private static func signed(_ payload: String) throws -> String {
        let string = Base64URL.encode(Array(#"{"alg":"HS256"}"#.utf8)) + "." + Base64URL.encode(Array(payload.utf8))
        let key = try SigningKey.secret([UInt8](repeating: 1, count: 32))
        return string + "." + Base64URL.encode(try key.sign(Array(string.utf8)))
    }
}
