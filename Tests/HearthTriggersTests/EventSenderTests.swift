import HearthEvents
import HearthHTTPClient
import HearthModel
import HearthTestSupport
import Synchronization
import Testing

@testable import HearthTriggers

struct EventSenderTests {
    private let sender: EventSender
    private static let event = EventRequest.sample

    init() { sender = EventSender() }

    private func send(
        to url: String, timeoutMilliseconds: Int = Patience.milliseconds, secret: String? = nil, attempt: Int = 1
    ) -> Delivery.Answer {
        let answer = Promise<Delivery.Answer>()
        let target = EventSender.Target(url: url, secret: secret, timeoutMilliseconds: timeoutMilliseconds)
        sender.send(Self.event, to: target, attempt: attempt) { answer.give($0) }
        return answer.wait()
    }

    private func answer(_ bytes: String, keeps: Bool = false, timeoutMilliseconds: Int = Patience.milliseconds)
        -> Delivery.Answer
    {
        let endpoint = ScriptedEndpoint { connection, _ in
            connection.write(bytes)
            return keeps
        }
        return send(to: endpoint.url, timeoutMilliseconds: timeoutMilliseconds)
    }

    @Test func theRequestHasTheEventItsAttemptAndTheSecret() {
        let request = Promise<String>()
        let endpoint = ScriptedEndpoint { connection, _ in
            request.give(connection.request)
            connection.write("HTTP/1.1 204 No Content\r\n\r\n")
            return false
        }
        #expect(send(to: endpoint.url, secret: "s3cret", attempt: 7) == .acknowledged)
        let lines = request.wait().split(separator: "\r\n", omittingEmptySubsequences: false).map(String.init)
        #expect(lines.first == "POST /function HTTP/1.1" && lines.last == "body")
        for line in [
            "content-type: application/protobuf", "ce-id: 1", "ce-document: c/hél", "ce-authid:", "x-hearth-attempt: 7",
            "authorization: Bearer s3cret", "user-agent: hearth", "content-length: 4",
        ] {
            #expect(lines.contains { $0.lowercased() == line.lowercased() }, "\(line)")
        }
        #expect(!lines.contains { $0.lowercased().hasPrefix("expect:") })
    }

    @Test(arguments: [
        "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok", "HTTP/1.1 204 No Content\r\n\r\n",
        "HTTP/1.0 200 OK\r\n\r\nuntil the end",
        "HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\nHTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
    ])
    func success(bytes: String) { #expect(answer(bytes) == .acknowledged) }

    @Test(arguments: [
        ("HTTP/1.1 500 Internal Server Error\r\ncontent-length: 0\r\n\r\n", 500, nil),
        ("HTTP/1.1 302 Found\r\nlocation: /elsewhere\r\ncontent-length: 0\r\n\r\n", 302, nil),
        ("HTTP/1.1 404 Not Found\r\nretry-after: 9\r\ncontent-length: 0\r\n\r\n", 404, nil),
        ("HTTP/1.1 429 Too Many Requests\r\nretry-after: 7\r\ncontent-length: 0\r\n\r\n", 429, 7),
        ("HTTP/1.1 503 Unavailable\r\nretry-after: soon\r\ncontent-length: 0\r\n\r\n", 503, nil),
    ])
    func anyOtherStatusIsAFailure(bytes: String, status: Int, retryAfter: UInt64?) {
        #expect(
            answer(bytes)
                == .failed(
                    DeliveryFailure(.status(status), "The endpoint answered \(status)."),
                    retryAfterNanoseconds: retryAfter.map { $0 * 1_000_000_000 }))
    }

    /// libcurl sends a request again when a kept connection ends without an answer: up to five times, each a call of the function.
    @Test("an attempt is one request, also when a kept connection ends without an answer")
    func anAttemptIsOneRequest() {
        let requests = Atomic(0)
        let endpoint = ScriptedEndpoint { connection, number in
            requests.add(1, ordering: .sequentiallyConsistent)
            if number == 0 { connection.write("HTTP/1.1 204 No Content\r\n\r\n") }
            return number == 0
        }
        #expect(send(to: endpoint.url) == .acknowledged)
        guard case .failed(let failure, nil) = send(to: endpoint.url) else { return #expect(Bool(false)) }
        #expect(failure.reason.hasSuffix("the server closed the connection without an answer"), "\(failure)")
        #expect(requests.load(ordering: .sequentiallyConsistent) == 2)
    }

    @Test("an event that has one attempt gets a new connection")
    func anEventWithOneAttemptGetsANewConnection() {
        let connections = Mutex<Set<Int32>>([])
        let endpoint = ScriptedEndpoint { connection, _ in
            connections.withLock { _ = $0.insert(connection.descriptor) }
            connection.write("HTTP/1.1 204 No Content\r\n\r\n")
            return true
        }
        for opensConnections in [false, false, true] {
            let answer = Promise<Delivery.Answer>()
            var target = EventSender.Target(url: endpoint.url)
            target.opensConnections = opensConnections
            sender.send(Self.event, to: target, attempt: 1) { answer.give($0) }
            #expect(answer.wait() == .acknowledged)
        }
        #expect(connections.withLock(\.count) == 2)
    }

    @Test func aFailureQuotesTheBeginningOfTheAnswer() {
        let words = "Traceback:\n  KeyError: 'rating'\n"
        let long = words + String(repeating: "x", count: 100_000)
        for body in [words, long] {
            let bytes = "HTTP/1.1 500 Oops\r\ncontent-length: \(body.utf8.count)\r\n\r\n\(body)"
            guard case .failed(let failure, nil) = answer(bytes) else { return #expect(Bool(false)) }
            #expect(failure.reason == "The endpoint answered 500.")
            #expect(failure.message.hasPrefix("The endpoint answered 500: Traceback:\\n  KeyError: 'rating'"))
            #expect(failure.quote.utf8.count == (body == words ? 32 : AnswerQuote.bytesMax))
        }
    }

    private static let quotes: [(body: [UInt8], quote: String)] = [
        ([], ""), (bytes(" \n"), ""), (bytes(" a b \r\n"), "a b"),
        (bytes("\u{1b}[31m\u{202e}é\u{85}x\t"), "\\u{1b}[31m\\u{202e}é\\u{85}x"),
        ([0x61, 0xFF, 0x62], "a\u{FFFD}b"), ([0xC3], "\u{FFFD}"),
        // A character of which only the beginning was kept is left out.
        (bytes("x", 499) + [0xC3], string("x", 499)), (bytes("x", 496) + bytes("😀"), string("x", 496) + "😀"),
        ([UInt8](repeating: 0xFF, count: 500), string("\u{FFFD}", 166)),
        ([UInt8](repeating: 0x07, count: 500), string("\\u{7}", 100)),
    ]

    private static func string(_ part: String, _ count: Int) -> String { String(repeating: part, count: count) }
    private static func bytes(_ part: String, _ count: Int = 1) -> [UInt8] { Array(string(part, count).utf8) }

    @Test(arguments: quotes.indices)
    func aQuoteIsOneLineOfUTF8(index: Int) {
        let (body, quote) = Self.quotes[index]
        #expect(UTF8Order.equal(AnswerQuote.string(body), quote), "\(AnswerQuote.string(body))")
    }

    @Test(arguments: [
        "", "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nshort",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n", "SSH-2.0-OpenSSH\r\n",
        "\u{1}\u{2}\u{3}\r\n\r\n", "HTTP/1.1 200 OK\r\ncontent-le",
        "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab",
        "HTTP/1.1 200 OK\r\n" + String(repeating: "x-a: \(String(repeating: "b", count: 1000))\r\n", count: 300)
            + "\r\n",
    ])
    func whatIsNotWholeOrNoHTTPIsAFailure(bytes: String) {
        guard case .failed(let failure, nil) = answer(bytes) else { return #expect(Bool(false)) }
        #expect(failure.kind == .cut)
    }

    @Test func aLongBodyIsNotReadToItsEnd() {
        let ended = Promise<Bool>()
        let endpoint = ScriptedEndpoint { connection, _ in
            connection.write("HTTP/1.1 200 OK\r\n\r\n" + String(repeating: "x", count: 100_000))
            connection.waitForEnd()
            ended.give(true)
            return false
        }
        #expect(send(to: endpoint.url) == .acknowledged)
        #expect(ended.wait())
    }

    @Test func aSlowAnswerEndsWithTheTime() {
        let endpoint = ScriptedEndpoint { connection, _ in
            connection.write("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n")
            connection.waitForEnd()
            return false
        }
        guard case .failed(let failure, nil) = send(to: endpoint.url, timeoutMilliseconds: 2_000) else {
            return #expect(Bool(false))
        }
        #expect(failure.kind == .timeout)
    }

    @Test func nobodyThereIsUnreachable() {
        let port = ScriptedEndpoint { _, _ in false }.port
        guard case .unreachable = send(to: "http://127.0.0.1:\(port)/") else { return #expect(Bool(false)) }
        guard case .unreachable = send(to: "http://no-such-host.invalid/") else { return #expect(Bool(false)) }
    }

    /// No packet is answered: neither the connection's own time nor that of the request makes it an attempt.
    @Test func anAddressThatSwallowsPacketsIsUnreachable() {
        let address = SilentAddress()
        guard case .unreachable(let failure) = send(to: address.url, timeoutMilliseconds: 300) else {
            return #expect(Bool(false))
        }
        #expect(failure.kind == .unreachable)
    }

    /// Functions have their keys in queries.
    @Test(arguments: ["/function?code=s3cret", "/?s3cret", "?s3cret", "/function#s3cret"])
    func messagesShowNoSecretOfTheURL(end: String) {
        let endpoint = ScriptedEndpoint { connection, _ in
            connection.waitForEnd()
            return false
        }
        let base = "http://127.0.0.1:\(endpoint.port)"
        for (url, timeout) in [(base + end, 200), ("http://127.0.0.1:1" + end, 10_000)] {
            let message: String
            switch send(to: url, timeoutMilliseconds: timeout) {
            case .failed(let failure, _), .unreachable(let failure): message = failure.message
            default: return #expect(Bool(false))
            }
            #expect(!message.contains("s3cret") && message.contains("http://127.0.0.1:"), "\(message)")
        }
    }

    @Test(arguments: [
        ("http://user:pa@ss@host:1/a@b?c=d", "http://host:1/a@b"), ("https://host", "https://host"), ("?q", ""),
        ("http://host?a://b@c", "http://host"), ("no scheme/x#y", "no scheme/x"),
        ("https://[::1]:2/é?", "https://[::1]:2/é"),
    ])
    func whatIsShownOfAURL(url: String, shown: String) { #expect(HTTPRequest(url: url).shownURL == shown) }

    /// Nothing is begun any more, and no thread is made for it.
    @Test func aSenderThatIsClosedSendsNothing() {
        sender.close()
        guard case .unreachable = send(to: "http://127.0.0.1:1/") else { return #expect(Bool(false)) }
    }

    @Test func aFailureOfTLSIsAnAttempt() {
        let endpoint = ScriptedEndpoint { connection, _ in
            connection.write("no TLS")
            return false
        }
        guard case .failed(let failure, nil) = send(to: "https://127.0.0.1:\(endpoint.port)/") else {
            return #expect(Bool(false))
        }
        #expect(failure.kind == .cut)
    }

    /// A connection that the endpoint closes after its answer is no fault, however it closes.
    /// What libcurl knows of one response must not be written to by the next.
    @Test func responsesThatBeginWithAFoldedLineAreHarmless() {
        let endpoint = ScriptedEndpoint { connection, _ in
            let folded = String(repeating: " folded: line\r\n", count: 20)
            connection.write("HTTP/1.1 200 OK\r\n\(folded)first: 1\r\nlast: 2\r\ncontent-length: 0\r\n\r\n")
            return true
        }
        for _ in 0..<50 { _ = send(to: endpoint.url) }
    }

    @Test func connectionsAreUsedAgain() {
        let endpoint = ScriptedEndpoint { connection, number in
            connection.write("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
            return number % 3 != 2
        }
        for _ in 0..<12 { #expect(send(to: endpoint.url) == .acknowledged) }
    }

    @Test(arguments: [
        ("0", 0), ("120", 120), ("Sun, 06 Nov 1994 08:49:40 GMT", 3), ("Sun, 06 Nov 1994 08:49:30 GMT", 0), ("-1", nil),
        ("", nil), ("1.5", nil), ("99999999999999999999", nil),
    ])
    func retryAfterIsANumberOrADate(value: String, seconds: UInt64?) {
        #expect(RetryAfter.nanoseconds(value, now: 784_111_777) == seconds.map { $0 * 1_000_000_000 })
    }
}

extension EventRequest {
    static let sample = EventRequest(
        headers: [
            Header(name: "content-type", value: "application/protobuf"), Header(name: "ce-id", value: "1"),
            Header(name: "ce-document", value: "c/hél"), Header(name: "ce-authid", value: ""),
        ], body: Array("body".utf8))
}
