import HearthModel
import HearthTree
import HearthTreeStorage

extension RealtimeSession {
    /// - Parameter hash: of the value that must exist; nil for any value.
    func write(_ update: TreeUpdate, hash: String?, _ answer: Answer) {
        let identity = identity
        do throws(Status) {
            let treeGuard = try service.access.writeGuard(identity, namespace)
            var write = TreeWrite(
                changes: update.changes, guard: treeGuard, nowMilliseconds: service.nowMilliseconds,
                base: update.isMerge ? update.path : nil, author: { [identity] in identity.author.stored })
            guard let hash else { return submit(write, answer) }
            write.condition = TreeWrite.Condition(path: update.path, hash: hash, reveals: true)
            write.condition?.isOfSDK = true
            if treeGuard == nil { return submit(write, answer) }
            // A client without the right to read the location must not learn its value from the hash.
            hold()
            let reading = ListenReading(
                service: service, namespace: namespace, identity: identity,
                target: RealtimeTarget(path: update.path, query: nil))
            let held = LoopBound((write, answer))
            namespace.hub.read(.brief, on: loop, for: writeRequester) { view throws(Status) in
                try reading.judge(view)
            } _: { [self] result, _ in
                var (write, answer) = held.value
                if case .failure = result { write.condition?.reveals = false }
                submit(write, answer)
                release()
            }
        } catch {
            refuse(answer, error)
        }
    }

    private func submit(_ write: TreeWrite, _ answer: Answer) {
        if isEnded { return }
        let requester = writeRequester
        writesInFlight += 1
        let answer = LoopBound(answer)
        namespace.database.submit(write, for: requester) { [self] outcome in
            // Runs after the commit's events, which were passed to the loop before.
            namespace.hub.execute(on: loop) { [self] in
                writesInFlight -= 1
                switch outcome {
                case .committed: confirm(answer.value)
                case .stale: refuse(answer.value, RealtimeRefusal(status: .dataIsStale, string: ""))
                case .failed(let status): refuse(answer.value, status)
                }
            }
        }
    }
}
