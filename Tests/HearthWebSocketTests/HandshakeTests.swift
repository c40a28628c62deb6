import HearthWebSocket
import Testing

@Suite struct HandshakeTests {
    typealias Fields = [(name: String, value: String)]

    private static let good: Fields = [
        ("host", "h"), ("upgrade", "websocket"), ("connection", "keep-alive, Upgrade"), ("sec-websocket-version", "13"),
        ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
    ]

    private static func values(_ fields: Fields) -> (String) -> [String] {
        { name in fields.filter { $0.name == name }.map(\.value) }
    }

    /// With some fields replaced; an empty value removes the field.
    private static func request(
        _ changes: Fields = [], method: String = "GET", isHTTP1_1: Bool = true
    ) throws(WebSocketHandshakeFailure) -> WebSocketUpgradeRequest {
        var fields = good
        for change in changes { fields.removeAll { $0.name == change.name } }
        fields += changes.filter { !$0.value.isEmpty }
        return try WebSocketUpgradeRequest(method: method, isHTTP1_1: isHTTP1_1, values: values(fields))
    }

    private static func status(
        _ changes: Fields = [], method: String = "GET", isHTTP1_1: Bool = true
    ) -> Int? {
        do throws(WebSocketHandshakeFailure) {
            _ = try request(changes, method: method, isHTTP1_1: isHTTP1_1)
            return nil
        } catch { return error.status }
    }

    @Test func answersTheExampleOfTheStandard() throws {
        let answer = try HandshakeTests.request().answer(takesOverContext: nil)
        #expect(answer.deflate == nil)
        let accept = answer.fields.first { $0.name == "sec-websocket-accept" }?.value
        #expect(accept == "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=")
        #expect(answer.fields.first { $0.name == "sec-websocket-extensions" } == nil)
    }

    @Test func refusesWhatIsNoHandshake() {
        #expect(HandshakeTests.status(method: "POST") == 405)
        #expect(HandshakeTests.status(isHTTP1_1: false) == 400)
        #expect(HandshakeTests.status([("upgrade", "")]) == 426)
        #expect(HandshakeTests.status([("upgrade", "h2c")]) == 426)
        #expect(HandshakeTests.status([("upgrade", "h2c, WebSocket")]) == nil)
        #expect(HandshakeTests.status([("connection", "close")]) == 400)
        #expect(HandshakeTests.status([("connection", "close"), ("connection", "upgrade")]) == nil)
        #expect(HandshakeTests.status([("sec-websocket-version", "8")]) == 426)
        #expect(HandshakeTests.status([("sec-websocket-version", "")]) == 426)
        for key in ["", "dGhlIHNhbXBsZSBub25jZQ", "dGhlIHNhbXBsZSBub25jZQ=!", "dGhlIHNhbXBsZSBub25jZ===", "AAAA"] {
            #expect(HandshakeTests.status([("sec-websocket-key", key)]) == 400, "\(key)")
        }
        #expect(
            HandshakeTests.status([
                ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="), ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
            ]) == 400)
        for extensions in ["a;", "a b", "a;b=", "a;b=\"", "a;b=\"c d\"", "a;b=\"\"", "=", "a;;b"] {
            #expect(HandshakeTests.status([("sec-websocket-extensions", extensions)]) == 400, "\(extensions)")
        }
        for extensions in ["a", "a, b;c", " a ; b = \"c\" ,, d", ",", "a;b=\"\\c\""] {
            #expect(HandshakeTests.status([("sec-websocket-extensions", extensions)]) == nil, "\(extensions)")
        }
    }

    private static let none = "permessage-deflate; server_no_context_takeover; client_no_context_takeover"

    static let negotiations: [(offer: String, without: String?, with: String?)] = [
        ("x-webkit-deflate-frame", nil, nil),
        ("permessage-deflate", none, "permessage-deflate"),
        // The offers of browsers.
        ("permessage-deflate; client_max_window_bits", none, "permessage-deflate"),
        ("foo, Permessage-Deflate", none, "permessage-deflate"),
        (
            "permessage-deflate; server_no_context_takeover", none,
            "permessage-deflate; server_no_context_takeover"
        ),
        (
            "permessage-deflate; client_no_context_takeover; server_max_window_bits=\"10\"",
            none + "; server_max_window_bits=10",
            "permessage-deflate; client_no_context_takeover; server_max_window_bits=10"
        ),
        ("permessage-deflate; server_max_window_bits=15", none, "permessage-deflate"),
        ("permessage-deflate; client_max_window_bits=8", none, "permessage-deflate"),
        // Unacceptable offers, followed by another one.
        ("permessage-deflate; server_max_window_bits=8", nil, nil),
        ("permessage-deflate; server_max_window_bits=8, permessage-deflate", none, "permessage-deflate"),
        ("permessage-deflate; server_max_window_bits=16", nil, nil),
        ("permessage-deflate; server_max_window_bits=09", nil, nil),
        ("permessage-deflate; server_max_window_bits", nil, nil),
        ("permessage-deflate; client_max_window_bits=x", nil, nil),
        ("permessage-deflate; server_no_context_takeover=1", nil, nil),
        ("permessage-deflate; client_max_window_bits; client_max_window_bits", nil, nil),
        ("permessage-deflate; unknown", nil, nil),
    ]

    @Test(arguments: negotiations)
    func negotiatesCompression(_ offer: String, _ without: String?, _ with: String?) throws {
        let request = try HandshakeTests.request([("sec-websocket-extensions", offer)])
        for (takesOver, expected) in [(false, without), (true, with)] {
            let answer = try request.answer(takesOverContext: takesOver)
            #expect(answer.fields.first { $0.name == "sec-websocket-extensions" }?.value == expected)
            #expect((answer.deflate == nil) == (expected == nil))
            #expect(answer.deflate?.serverTakesOverContext == expected.map { !$0.contains("server_no_") })
            #expect(answer.deflate?.clientTakesOverContext == expected.map { !$0.contains("client_no_") })
        }
        #expect(try request.answer(takesOverContext: nil).deflate == nil)
    }

    @Test func bothHalvesAgree() throws {
        for offersCompression in [false, true] {
            for takesOver in [nil, false, true] {
                let offer = WebSocketUpgradeOffer(offersCompression: offersCompression)
                let request = try WebSocketUpgradeRequest(
                    method: "GET", isHTTP1_1: true, values: HandshakeTests.values(offer.fields))
                let answer = try request.answer(takesOverContext: takesOver)
                #expect(try offer.check(values: HandshakeTests.values(answer.fields)) == answer.deflate)
                #expect((answer.deflate != nil) == (offersCompression && takesOver != nil))
                #expect(answer.deflate.map { $0 == WebSocketDeflate() } != false)
            }
        }
    }

    static let badAnswers: [Fields] = [
        [("sec-websocket-accept", "")], [("sec-websocket-accept", "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=")],
        [("upgrade", "")], [("upgrade", "h2c")], [("connection", "close")],
        [("sec-websocket-protocol", "chat")], [("sec-websocket-extensions", "foo")],
        [("sec-websocket-extensions", "permessage-deflate")],
        [("sec-websocket-extensions", none + ", " + none)],
        [("sec-websocket-extensions", none + "; client_max_window_bits=10")],
        [("sec-websocket-extensions", none + "; server_max_window_bits=7")],
        [("sec-websocket-extensions", none + "; server_no_context_takeover")],
        [("sec-websocket-extensions", "a;")],
    ]

    @Test(arguments: badAnswers.indices) func aClientRejectsUnrequestedOptions(_ index: Int) throws {
        let offer = WebSocketUpgradeOffer(offersCompression: true)
        let request = try WebSocketUpgradeRequest(
            method: "GET", isHTTP1_1: true, values: HandshakeTests.values(offer.fields))
        var fields = try request.answer(takesOverContext: false).fields
        #expect(try offer.check(values: HandshakeTests.values(fields)) != nil)
        for change in HandshakeTests.badAnswers[index] {
            fields.removeAll { $0.name == change.name }
            if !change.value.isEmpty { fields.append(change) }
        }
        #expect(throws: WebSocketHandshakeFailure.self) { try offer.check(values: HandshakeTests.values(fields)) }
    }
}
