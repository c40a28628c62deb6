import HearthHost
import HearthConcurrency
import HearthModel
import HearthNetwork
import HearthWebSocket
import Synchronization

/// `/.lp`: the Realtime Database for browsers that cannot open a WebSocket.
///
/// A page loads scripts from this path. The first begins a session. Each further one has pieces of messages in its
/// address. Its answer may wait for output; it calls functions of the page with the server's messages. Source: the
/// public SDK for the web, `BrowserPollConnection`.
///
/// A session cannot be upgraded to a WebSocket. A client that tries is refused at once, and continues with long
/// polling.
package struct LongPollHTTP: HTTPExtension {
    let service: RealtimeService
    private let streams: OpenStreams
    private let sessions = SessionTable<LongPollSession>(sessionsMax: Limits.longPollSessionsMax)

    /// - Parameter streams: these end when the server ends.
    package init(service: RealtimeService, streams: OpenStreams) {
        self.service = service
        self.streams = streams
    }

    package func begin(_ exchange: HTTPExchange) -> Bool {
        let head = exchange.head
        guard head.path == "/.lp" else { return head.path == "/.ws" && refuseChange(exchange) }
        do throws(Status) {
            let parameters = try LongPollParameters(head.query)
            if parameters.begins {
                try start(exchange, parameters)
            } else {
                try goOn(exchange, parameters)
            }
        } catch {
            Self.refuse(exchange, error)
        }
        return true
    }

    private static func refuse(_ exchange: HTTPExchange, _ status: Status) {
        exchange.respond(
            status: status.code.httpStatus, headers: [HTTPHeader("content-type", "text/plain; charset=utf-8")],
            body: Array((status.message + "\n").utf8))
    }

    private func start(_ exchange: HTTPExchange, _ parameters: LongPollParameters) throws(Status) {
        let head = exchange.head
        let common = try RealtimeParameters(head.query)
        let name = RealtimeAddress.namespace(head, named: common.namespace, standard: service.standardName)
        service.namespace(name, on: exchange.loop) { found in
            if exchange.isFinished { return }
            do throws(Status) {
                try start(exchange, parameters, formerSession: common.formerSession, try found.get())
            } catch {
                Self.refuse(exchange, error)
            }
        }
    }

    private func start(
        _ exchange: HTTPExchange, _ parameters: LongPollParameters, formerSession: String?,
        _ namespace: RealtimeNamespace
    ) throws(Status) {
        let head = exchange.head
        let sessions = sessions
        let streams = streams
        let peer = RealtimePeer(address: head.remoteAddress, connection: head.connectionNumber)
        let session = LongPollSession(
            loop: exchange.loop, peer: peer, callback: parameters.callback ?? "", id: Self.newID(),
            password: Self.newID(), service,
            LongPollSession.Events(
                isOver: {
                    sessions.remove($0.id)
                    streams.remove($0)
                }, hasRank: { sessions.change($0.id, to: $1) }, belongs: { sessions.change($0.id, to: $1) }))
        let requester = RealtimeIdentity.nobody.requester(at: peer.address, connection: peer.connection)
        guard case .admitted(let dropped) = sessions.add(session, id: session.id, for: requester) else {
            throw .resourceExhausted("The server has too many sessions.")
        }
        if let dropped { dropped.loop.execute { dropped.makeSpace() } }
        session.begin(
            namespace, service, host: head.authority, formerSession: formerSession,
            LongPollRequest(exchange, home: exchange.loop))
        streams.add(session) { _ in session.loop.execute { session.finish() } }
    }

    private func goOn(_ exchange: HTTPExchange, _ parameters: LongPollParameters) throws(Status) {
        guard let id = parameters.session, let password = parameters.password else {
            throw .invalidArgument("id and pw must name a session")
        }
        guard let session = sessions[id], session.password == password else {
            // A repeated end of a session succeeds.
            if parameters.isGoodbye { return exchange.respond(status: 204, headers: [], body: []) }
            throw .notFound("There is no such session.")
        }
        if parameters.isFrame {
            return exchange.respond(
                status: 200,
                headers: [
                    HTTPHeader("content-type", "text/html; charset=utf-8"), HTTPHeader("cache-control", "no-store"),
                ], body: LongPollScript.frame(session: id, password: password))
        }
        if parameters.isGoodbye {
            session.loop.execute { session.goodbye() }
            return exchange.respond(status: 204, headers: [], body: [])
        }
        let request = LongPollRequest(exchange, home: session.loop)
        let segments = parameters.segments
        session.loop.execute { session.receive(segments, request) }
    }

    /// A polling client opens a socket with its session's id to upgrade. A reset shows it that the upgrade is not
    /// possible; it continues with long polling.
    private func refuseChange(_ exchange: HTTPExchange) -> Bool {
        let parameters = URLCoding.parameters(exchange.head.query) ?? []
        guard parameters.contains(where: { $0.name == "s" }) else { return false }
        guard let channel = exchange.upgradeToWebSocket() else { return true }
        channel.send(string: RealtimeServerMessage.reset(host: exchange.head.authority))
        channel.onText = { _ in }
        channel.close()
        return true
    }

    private static let scriptHeaders = [
        HTTPHeader("content-type", "application/javascript; charset=utf-8"),
        HTTPHeader("cache-control", "no-store"), HTTPHeader("x-content-type-options", "nosniff"),
    ]

    static func answer(_ exchange: HTTPExchange, _ script: [UInt8]) {
        exchange.respond(status: 200, headers: scriptHeaders, body: script)
    }

    static func answer(
        _ exchange: HTTPExchange, _ script: LargeScript, _ readers: WorkerGroup, for requester: Requester
    ) {
        if exchange.isFinished { return }
        exchange.start(status: 200, headers: scriptHeaders)
        exchange.write(script.head)
        let sender = FileSender(script.body.file, exchange, readers, for: requester) { _ in }
        sender.tail = script.tail
        if script.isQuoted { sender.form = LargeScript.quoted }
        sender.proceed()
    }

    /// 128 random bits.
    static func newID() -> String {
        var generator = SystemRandomNumberGenerator()
        return (0..<16).map { _ in
            let byte = UInt8.random(in: 0...255, using: &generator)
            return String(byte >> 4, radix: 16) + String(byte & 15, radix: 16)
        }.joined()
    }
}
