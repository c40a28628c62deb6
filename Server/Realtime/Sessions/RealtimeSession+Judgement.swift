import HearthModel
import HearthTreeStorage

/// The listens of a session whose right to continue is being checked, because rules or the client's identity have
/// changed.
struct SessionJudgement {
    fileprivate var waiting: [SessionListen] = []
    fileprivate var isAsking = false
    /// The number of failed attempts to check.
    fileprivate var failures = 0

    mutating func end() { waiting = [] }
}

extension RealtimeSession {
    /// Checks a listen, which holds its changes back until `SessionListen.isJudged`.
    func judge(_ listen: SessionListen) {
        judgements.waiting.append(listen)
        if !judgements.isAsking { loop.execute { [self] in judgeWaiting() } }
    }

    /// One job for many listens: otherwise each of thousands would wait among the jobs of all clients.
    private func judgeWaiting() {
        if isEnded || judgements.isAsking || judgements.waiting.isEmpty { return }
        judgements.isAsking = true
        let listens = judgements.waiting.prefix(Limits.realtimeJudgedAtOnceMax)
        judgements.waiting.removeFirst(listens.count)
        let asked = listens.compactMap { listen in listen.question.map { (listen: listen, question: $0) } }
        let questions = asked.map(\.question)
        let bound = LoopBound(asked.map(\.listen))
        let judgement = judgement
        namespace.hub.read(.brief, on: loop, for: requester, cancellation: cancellation) { view throws(Status) in
            var verdicts: [Result<Void, Status>] = []
            for question in questions {
                let verdict = Result { () throws(Status) in try question.judge(view) }
                if case .failure(let status) = verdict, status.code != .permissionDenied { throw status }
                verdicts.append(verdict)
            }
            return verdicts
        } _: { [self] result, _ in
            if isEnded { return }
            switch result {
            case .success(let verdicts):
                judgements.isAsking = false
                judgements.failures = 0
                for (listen, verdict) in zip(bound.value, verdicts) { listen.isJudged(verdict, at: judgement) }
                judgeWaiting()
            case .failure: askAgain(bound.value)
            }
        }
    }

    /// The client was not denied: the check is repeated, or the client reconnects.
    private func askAgain(_ listens: [SessionListen]) {
        judgements.failures += 1
        if judgements.failures > Self.judgementFailuresMax { return endBusy() }
        judgements.waiting = listens + judgements.waiting
        loop.schedule(afterMilliseconds: Self.judgementRetryMilliseconds) { [weak self] in
            guard let self else { return }
            judgements.isAsking = false
            judgeWaiting()
        }
    }

    private static let judgementFailuresMax = 5
    private static let judgementRetryMilliseconds = 1000
}

extension Status {
    /// Whether the same may succeed later: the server is overloaded, and the failure depends neither on rights nor on
    /// data.
    var isPassing: Bool {
        switch code {
        case .unavailable, .aborted, .cancelled, .deadlineExceeded: true
        case .resourceExhausted: !message.hasPrefix("Data ")
        default: false
        }
    }
}
