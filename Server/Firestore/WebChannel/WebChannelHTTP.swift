import HearthHost
import HearthModel
import HearthNetwork

/// `/google.firestore.v1.Firestore/{Listen,Write}/channel`: streams for clients that only have HTTP requests.
///
/// A POST without `SID` begins a session and carries the first messages; later ones carry more. The response to a GET
/// carries the server's messages, as long as both sides can hold it open.
package struct WebChannelHTTP: HTTPExtension {
    private let service: FirestoreService
    private let observer: RequestObserver
    private let sessions = SessionTable<WebChannelCall>(sessionsMax: Limits.webChannelSessionsMax)

    private typealias Begin = @Sendable (any StreamCall, FirestoreService) -> Void
    private static let prefix = "/google.firestore.v1.Firestore/"
    private static let methods: [String: (observed: RequestMetrics.Method, begin: Begin)] = [
        prefix + "Listen/channel": (.listen, { _ = ListenStream($0, $1) }),
        prefix + "Write/channel": (.write, { _ = WriteStream($0, $1) }),
    ]

    package init(_ service: FirestoreService, observer: RequestObserver) {
        self.service = service
        self.observer = observer
    }

    package func begin(_ exchange: HTTPExchange) -> Bool {
        guard exchange.head.path.hasPrefix(Self.prefix), let method = Self.methods[exchange.head.path] else {
            return false
        }
        let parameters = Parameters(exchange.head.query)
        if let fault = parameters.fault {
            Self.refuse(exchange, 400, fault)
        } else if parameters.isTermination {
            terminate(exchange, parameters)
        } else {
            switch exchange.head.method {
            case "POST": post(exchange, parameters, method)
            case "GET": get(exchange, parameters)
            default: Self.refuse(exchange, 405, "A channel is used by POST and GET.")
            }
        }
        return true
    }

    // MARK: Requests

    private func post(
        _ exchange: HTTPExchange, _ parameters: Parameters, _ method: (observed: RequestMetrics.Method, begin: Begin)
    ) {
        // A message's characters may take three bytes each. The first request of a session carries headers and
        // everything that an SDK has queued until then: targets, or the handshake of a Write stream.
        let limitBytes =
            parameters.session == nil ? Limits.webChannelHandshakeBytesMax : Limits.requestSizeBytesMax * 4
        exchange.collectBody(limitBytes: limitBytes) { [self] result in
            do throws(Status) {
                let bytes = try result.get()
                guard bytes.count >= LargeRequests.sizeBytesMin else {
                    return try take(ForwardBody(bytes), exchange, parameters, method)
                }
                decodeLater(bytes, exchange, parameters) { [self] body throws(Status) in
                    try take(body, exchange, parameters, method)
                }
            } catch {
                Self.refuse(exchange, error)
            }
        }
    }

    /// Has a worker parse a large body.
    private func decodeLater(
        _ bytes: [UInt8], _ exchange: HTTPExchange, _ parameters: Parameters,
        _ taken: @escaping @Sendable (ForwardBody) throws(Status) -> Void
    ) {
        let requester =
            parameters.session.flatMap { sessions[$0] }?.requester
            ?? Identity.nobody.requester(at: exchange.head.remoteAddress, connection: exchange.head.connectionNumber)
        let decoded: @Sendable (Result<ForwardBody, Status>) -> Void = { body in
            Self.onLoop(exchange) {
                do throws(Status) { try taken(try body.get()) } catch { Self.refuse(exchange, error) }
            }
        }
        let held = service.memory.received.reservation(for: requester)
        guard held.grow(by: bytes.count) else {
            return Self.refuse(exchange, LargeRequests.tooMany)
        }
        service.pool.run(.short, for: requester, refused: { decoded(.failure($0)) }) {
            decoded(Result { () throws(Status) in try ForwardBody(bytes) })
            held.resize(to: 0)
        }
    }

    private func take(
        _ body: ForwardBody, _ exchange: HTTPExchange, _ parameters: Parameters,
        _ method: (observed: RequestMetrics.Method, begin: Begin)
    ) throws(Status) {
        guard let id = parameters.session else {
            let headers = body.headers + parameters.headers
            let authorization = headers.last { $0.name == "authorization" }?.value
            return service.authenticator.identify(authorization, on: exchange.loop) { [self] result in
                do throws(Status) {
                    try handshake(body, headers, exchange, result, method)
                } catch {
                    Self.refuse(exchange, error)
                }
            }
        }
        guard let call = sessions[id] else { return Self.refuseUnknown(exchange) }
        call.onLoop {
            do throws(Status) {
                try call.receive(body, acknowledging: parameters.acknowledged) { string in
                    Self.onLoop(exchange) { Self.answer(exchange, string) }
                }
            } catch {
                Self.onLoop(exchange) { Self.refuse(exchange, error) }
            }
        }
    }

    private func handshake(
        _ body: ForwardBody, _ headers: [HTTPHeader], _ exchange: HTTPExchange, _ identity: Result<Identity, Status>,
        _ method: (observed: RequestMetrics.Method, begin: Begin)
    ) throws(Status) {
        let id = Self.newID()
        let sessions = sessions
        var caller = Identity.nobody
        if case .success(let known) = identity { caller = known }
        let requester = caller.requester(
            at: exchange.head.remoteAddress, connection: exchange.head.connectionNumber)
        let call = WebChannelCall(
            id: id, caller, requester, headers: exchange.head.headers + headers, loop: exchange.loop,
            observation: observer.begin(method.observed, .webChannel, remote: exchange.head.remoteAddress),
            memory: service.memory, rank: { sessions.change(id, to: $0) }, forget: { sessions.remove(id) })
        switch sessions.add(call, id: id, for: requester) {
        case .admitted(let dropped):
            if let dropped { dropped.onLoop { dropped.abandon() } }
        case .refused:
            call.abandon()
            throw .resourceExhausted("The server has too many sessions.")
        }
        let handshake = call.handshake
        switch identity {
        case .success: method.begin(call, service)
        // As an error of the stream: the app would treat an HTTP status as a broken connection.
        case .failure(let status): call.finish(status)
        }
        try call.receive(body, acknowledging: nil) { _ in
            Self.onLoop(exchange) { Self.answer(exchange, handshake) }
        }
    }

    private func get(_ exchange: HTTPExchange, _ parameters: Parameters) {
        guard let id = parameters.session else {
            return Self.refuse(exchange, 400, "A back channel needs the SID of a session.")
        }
        guard let call = sessions[id] else { return Self.refuseUnknown(exchange) }
        let channel = BackChannel(exchange, home: call.loop)
        call.onLoop {
            guard sessions[id] != nil else {
                // The session ended meanwhile; the client's next request reports that.
                return channel.write(WebChannelSession.Output(bytes: [], endsBackChannel: true))
            }
            call.attach(
                channel, acknowledging: parameters.acknowledged, pollMilliseconds: parameters.pollMilliseconds)
        }
    }

    private func terminate(_ exchange: HTTPExchange, _ parameters: Parameters) {
        exchange.collectBody(limitBytes: Limits.requestSizeBytesMax) { [self] _ in
            guard let id = parameters.session, let call = sessions[id] else { return Self.refuseUnknown(exchange) }
            call.onLoop { call.abandon() }
            exchange.respond(status: 200, headers: Self.headers(for: exchange.head), body: [])
        }
    }

    // MARK: Answers

    static func headers(for head: HTTPRequestHead) -> [HTTPHeader] {
        [
            HTTPHeader("content-type", "text/plain; charset=utf-8"),
            // Without it browsers hold back the first kilobyte to detect the content type.
            HTTPHeader("x-content-type-options", "nosniff"),
            HTTPHeader("cache-control", "no-cache, no-store, max-age=0, must-revalidate"),
        ] + CORS.headers(for: head)
    }

    private static func answer(_ exchange: HTTPExchange, _ string: [UInt8]) {
        exchange.respond(status: 200, headers: headers(for: exchange.head), body: string)
    }

    private static func refuse(_ exchange: HTTPExchange, _ httpStatus: Int, _ message: String) {
        exchange.respond(status: httpStatus, headers: headers(for: exchange.head), body: Array("\(message)\n".utf8))
    }

    private static func refuse(_ exchange: HTTPExchange, _ status: Status) {
        refuse(exchange, exchange.isBodyTooLarge ? 413 : status.code.httpStatus, status.message)
    }

    /// Clients search for these words anywhere in the body, and begin a new session.
    private static func refuseUnknown(_ exchange: HTTPExchange) { refuse(exchange, 400, "Error: Unknown SID") }

    private static func onLoop(_ exchange: HTTPExchange, _ body: @escaping @Sendable () -> Void) {
        if exchange.loop.isCurrent { body() } else { exchange.loop.execute(body) }
    }
}

extension WebChannelHTTP {
    /// The parameters in the query of a channel's URL.
    struct Parameters: Sendable {
        private(set) var session: String?
        private(set) var acknowledged: Int64?
        private(set) var isTermination = false
        /// Nil for a stream.
        private(set) var pollMilliseconds: Int?
        /// Headers that the client could not send as HTTP headers.
        private(set) var headers: [HTTPHeader] = []
        /// The error in the parameters.
        private(set) var fault: String?

        init(_ query: String?) {
            guard let parameters = URLCoding.parameters(query) else {
                fault = "The query of the URL can't be decoded."
                return
            }
            var polls = false
            var wish: Int64?
            for (name, value) in parameters {
                switch name {
                case "VER": if value != "8" { fault = "VER must be 8." }
                case "SID": session = value == "null" ? nil : value
                case "AID": acknowledged = number(name, value)
                case "TYPE": isTermination = value == "terminate"
                case "CI": polls = value == "1"
                case "TO": wish = number(name, value)
                case "$httpHeaders": headers = ForwardBody.headers(value)
                default: break
                }
            }
            let longest = Int64(Limits.webChannelKeepAliveSeconds * 1000)
            if polls { pollMilliseconds = Int(min(wish ?? longest, longest)) }
        }

        private mutating func number(_ name: String, _ value: String) -> Int64? {
            // A client that has received nothing may send -1.
            if value == "-1" { return 0 }
            let number = ForwardBody.decimal(value)
            if number == nil { fault = "\(name) must be a number." }
            return number
        }
    }
}

extension WebChannelHTTP {
    /// The ID authorizes its bearer to use the session, so it must not be guessable.
    private static func newID() -> String {
        var random = SystemRandomNumberGenerator()
        return Base64URL.encode((0..<16).map { _ in UInt8.random(in: .min ... .max, using: &random) })
    }
}
