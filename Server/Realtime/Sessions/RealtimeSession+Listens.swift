import HearthConcurrency
import HearthModel
import HearthNetwork

extension RealtimeSession {
    func listen(to target: RealtimeTarget, tag: Int64?, known: KnownData, _ answer: Answer) {
        // A second listen replaces the first, and has its own tag.
        listens.removeValue(forKey: target)?.cancel()
        if listens.count >= Limits.realtimeListensMax {
            let string = "A connection may have at most \(Limits.realtimeListensMax) listens."
            return refuse(answer, RealtimeRefusal(status: .tooBig, string: string))
        }
        let listen = SessionListen(self, target, tag: tag, answer)
        listens[target] = listen
        listen.load(known)
    }

    func unlisten(_ target: RealtimeTarget, _ answer: Answer) {
        listens.removeValue(forKey: target)?.cancel()
        confirm(answer)
    }

    func get(_ target: RealtimeTarget, _ answer: Answer) {
        let reading = ListenReading(
            service: service, namespace: namespace, identity: identity, target: target,
            required: target.query?.index, cancellation: cancellation)
        readsInFlight += 1
        read(reading, answer, mayBeLarge: false)
    }

    private func read(_ reading: ListenReading, _ answer: Answer, mayBeLarge: Bool) {
        let requester = writeRequester
        let kind: WorkerPool.Kind = mayBeLarge ? .long : .brief
        let answer = LoopBound(answer)
        namespace.hub.read(
            kind, on: loop, for: requester, afterWrites: writesInFlight > 0, cancellation: cancellation
        ) { view throws(Status) in
            try reading.read(view, for: requester, mayBeLarge: mayBeLarge)
        } _: { [self] result, _ in
            if case .failure(ListenReading.isLarge) = result {
                return whenLargeMayBeMade { [self] in read(reading, answer.value, mayBeLarge: true) }
            }
            readsInFlight -= 1
            switch result {
            case .success(let content): confirm(answer.value, data: content.json ?? .null)
            case .failure(let status): refuse(answer.value, status)
            }
            if mayBeLarge { largeIsMade() }
        }
    }
}
