import HearthHost
import HearthConcurrency
import HearthModel
import HearthNetwork
import HearthTree

/// The identity of a session's requests.
extension RealtimeSession {
    func authenticate(_ credential: RealtimeCredential, _ override: RealtimeOverride?, _ answer: Answer) {
        hold()
        let answer = LoopBound(answer)
        service.authenticator.identify(credential, of: project, override: override, on: loop) { [self] result in
            switch result {
            case .success(let identity):
                change(to: identity)
                journalIdentity { [self] in confirm(answer.value, data: Self.describe(identity)) }
            case .failure(let status):
                let word: RealtimeStatus = status == RealtimeAuthenticator.expired ? .expiredToken : .invalidToken
                let refusal = RealtimeRefusal(status)
                refuse(
                    answer.value,
                    status.code == .unauthenticated ? RealtimeRefusal(status: word, string: status.message) : refusal)
            }
            release()
        }
    }

    /// Sets the connection's identity from the header of its first request; other requests wait for it.
    func authenticate(header: String) {
        hold()
        service.authenticator.identify(.header(header), of: project, on: loop) { [self] result in
            // A client with an invalid header sends its credential later, and receives the error then.
            if case .success(let identity) = result { change(to: identity) }
            // There are no disconnect writes yet.
            release()
        }
    }

    /// The project that tokens must be for.
    private var project: String { service.access.project(ofNamespace: namespace.name) }

    private static func describe(_ identity: RealtimeIdentity) -> [UInt8] {
        var string: [UInt8] = []
        TreeJSON.append(.object([("auth", identity.auth ?? .null)]), to: &string)
        return string
    }

    func change(to identity: RealtimeIdentity) {
        if isEnded { return }
        self.identity = identity
        expiry?.cancel()
        expiry = TokenExpiry(identity.tokenEnd, on: loop) { [weak self] _ in self?.tokenEnded() }
        let requester = identity.requester(at: peer.address, connection: peer.connection)
        if requester != self.requester { belong(to: requester) }
        judgeListens()
    }

    private func belong(to requester: Requester) {
        self.requester = requester
        service.connections.change(id, to: requester)
        carrier?.belongs(to: requester)
        let isMoved = [
            held.move(to: requester), heldAnswers.move(to: requester), heldDisconnectWrites.move(to: requester),
        ]
        if isMoved.contains(false) { endBusy() }
    }

    private func tokenEnded() {
        if isEnded { return }
        change(to: .nobody)
        journalIdentity { [self] in send(RealtimeServerMessage.tokenExpired) }
    }

    /// Checks the right of all listens to continue.
    func judgeListens() {
        judgement += 1
        for listen in listens.values { listen.judge() }
    }
}
