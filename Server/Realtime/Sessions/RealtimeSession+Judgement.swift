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
                verdicts.append(Result { () throws(Status) in try question.judge(view) })
            }
            return verdicts
        } _: { [self] result, _ in
            if isEnded { return }
            let verdicts: [Result<Void, Status>] =
                switch result {
                case .success(let verdicts): verdicts
                case .failure(let status): bound.value.map { _ in .failure(status) }
                }
            // Others are not denied: their check is repeated, and fails at last for each of them alone.
            var undecided: [SessionListen] = []
            for (listen, verdict) in zip(bound.value, verdicts) {
                if case .failure(let status) = verdict, status.code != .permissionDenied,
                    judgements.failures < Self.judgementFailuresMax
                {
                    undecided.append(listen)
                } else {
                    listen.isJudged(verdict, at: judgement)
                }
            }
            if isEnded { return }
            if undecided.isEmpty {
                judgements.failures = 0
                judgements.isAsking = false
                judgeWaiting()
            } else {
                askAgain(undecided)
            }
        }
    }

    private func askAgain(_ listens: [SessionListen]) {
        judgements.failures += 1
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
