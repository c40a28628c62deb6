import HearthModel
import HearthTreeStorage

/// The listens of a session of which is being asked whether they may go on, because rules or the client's identity have
/// changed.
package struct SessionJudgement {
    fileprivate var waiting: [SessionListen] = []
    fileprivate var isAsking = false
    /// How often nothing could be asked.
    fileprivate var failures = 0

    mutating func end() { waiting = [] }
}

extension RealtimeSession {
    /// Asks of a listen, which keeps its changes back until `SessionListen.isJudged`.
    func judge(_ listen: SessionListen) {
        judgements.waiting.append(listen)
        if !judgements.isAsking { loop.execute { [self] in judgeWaiting() } }
    }

    /// One job for many listens: each of thousands would wait for its own among the jobs of all clients.
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

    /// Nobody has said that the client may not: it is asked again, or the client comes again.
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
    /// Whether the same may succeed later: it tells that the server has too much to do, and nothing of rights or data.
    var isPassing: Bool {
        switch code {
        case .unavailable, .aborted, .cancelled, .deadlineExceeded: true
        case .resourceExhausted: !message.hasPrefix("Data ")
        default: false
        }
    }
}
