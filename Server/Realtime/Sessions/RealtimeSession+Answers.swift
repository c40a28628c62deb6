import HearthConcurrency
import HearthModel
import HearthNetwork
import HearthTree

/// The answers to requests, which are sent in the order of the requests, and the large ones among them.
extension RealtimeSession {
    func confirm(_ answer: Answer, data: [UInt8] = Array(#""""#.utf8)) {
        finish(answer, .small(RealtimeServerMessage.reply(to: answer.number, .ok, data: data)))
    }

    func confirm(_ answer: Answer, data: RealtimeData) {
        switch data {
        case .memory(let json): confirm(answer, data: json)
        case .file(let body):
            let head = RealtimeServerMessage.replyHead(answer.number, .ok)
            finish(answer, .large(LargeMessage(head: head, body: body, tail: RealtimeServerMessage.replyTail)))
        }
    }

    /// Confirms a listen, also before earlier requests are answered: clients take pushes that arrive before this answer
    /// as older than it, and take a push without a difference as the end of it.
    func confirmAtOnce(_ answer: Answer, data: [UInt8]) {
        send(RealtimeServerMessage.reply(to: answer.number, .ok, data: data))
        finish(answer, .sent)
    }

    /// A request that was never accepted.
    func refuseTooLarge(_ number: Int64) {
        let string = RealtimeFrameJoiner.tooLarge.reason
        send(RealtimeServerMessage.reply(to: number, RealtimeRefusal(status: .tooBig, string: string)))
    }

    func refuse(_ answer: Answer, _ refusal: RealtimeRefusal) {
        finish(answer, .small(RealtimeServerMessage.reply(to: answer.number, refusal)))
    }

    func refuse(_ answer: Answer, _ status: Status) { refuse(answer, RealtimeRefusal(status)) }

    func finish(_ answer: Answer, _ content: Answer.Content) {
        uncountedBytes -= answer.memory.uncountedBytes
        answer.memory = Memory()
        if isEnded { return }
        answer.content = content
        answerBytes += content.sizeBytes
        sendAnswers()
        if isEnded || heldAnswers.set(answerBytes) { return }
        // The request fails alone, unless its answer is that small already.
        if case .small(let string)? = answer.content, string.count > Self.smallAnswerBytes {
            answerBytes -= string.count
            answer.content = nil
            let status = Status.unavailable("Earlier answers are not read.")
            return finish(answer, .small(RealtimeServerMessage.reply(to: answer.number, RealtimeRefusal(status))))
        }
        endBusy()
    }

    /// More than the answer to a request that fails.
    private static let smallAnswerBytes = 256

    func sendAnswers() {
        while unsettled.isEmpty, firstAnswer < answers.count, let content = answers[firstAnswer].content {
            answers[firstAnswer].content = .sent
            firstAnswer += 1
            answerBytes -= content.sizeBytes
            switch content {
            case .small(let string): send(string)
            case .large(let message): send(message)
            case .sent: break
            }
        }
        if firstAnswer == answers.count {
            answers = []
            firstAnswer = 0
        } else if firstAnswer > 100, firstAnswer * 2 > answers.count {
            answers.removeFirst(firstAnswer)
            firstAnswer = 0
        }
        proceed()
    }

    func send(_ message: [UInt8]) {
        lastPush = nil
        carrier?.send(message)
    }

    func send(_ message: LargeMessage) {
        lastPush = nil
        carrier?.send(message)
    }

    func send(_ head: [UInt8], _ data: RealtimeData, _ tail: [UInt8]) {
        switch data {
        case .memory(let json): send(head + json + tail)
        case .file(let body): send(LargeMessage(head: head, body: body, tail: tail))
        }
    }

    /// The server holds too much data for the client, which may reconnect.
    func endBusy() { carrier?.end(.busy) }

    // MARK: Large answers

    /// Runs `job` when the client has read the earlier large answer. The job must call `largeIsMade`.
    func whenLargeMayBeMade(_ job: @escaping () -> Void) {
        // The job refers to the session, and the session would refer to the job forever.
        if isEnded { return }
        postponed.append(job)
        makeLarge()
    }

    func largeIsMade() {
        isMakingLarge = false
        makeLarge()
    }

    func makeLarge() {
        guard !isEnded, !isMakingLarge, carrier?.hasLarge == false, let job = postponed.popFirst() else { return }
        isMakingLarge = true
        job()
    }
}
