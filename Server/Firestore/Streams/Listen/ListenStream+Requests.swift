import HearthHost
import HearthConcurrency
import HearthModel
import HearthNetwork
import HearthDocuments
import HearthWire

/// Requests of a client: it adds and removes targets.
extension ListenStream {
    func receive(_ bytes: [UInt8]) {
        jobs.append(.request(bytes))
        waitingBytes += bytes.count
        proceed()
        if !call.isFinished, isFull { call.pauseReading() }
    }

    /// Counts the requests that wait. A request that is handled immediately costs nothing here.
    private func countWaiting() {
        if call.isFinished || waitingBytes == held.bytes || held.resize(to: waitingBytes) { return }
        end(LargeRequests.tooMany)
    }

    /// Decodes the next request. A worker decodes a large one, and `isDecoding` is true until the worker has finished.
    private func decodeNext() throws(Status) {
        guard case .request(let bytes)? = jobs.first else { return }
        _ = jobs.popFirst()
        waitingBytes -= bytes.count
        guard bytes.count >= LargeRequests.sizeBytesMin else { return try take(try decode(bytes), nil) }
        isDecoding = true
        service.large.run(
            bytes, isJSON: call.format.isJSON, for: call.requester, cancellation: call.cancellation,
            refused: { [self] status in call.onLoop { [self] in end(status) } }
        ) { [self] share in
            let request = Result { () throws(Status) in try decode(bytes) }
            call.onLoop { [self] in decoded(bytes, request, share) }
        }
    }

    private func decoded(_ bytes: [UInt8], _ request: Result<ListenRequest, Status>, _ share: WorkingShare) {
        isDecoding = false
        if call.isFinished { return }
        if hasCapacity {
            do throws(Status) { try take(try request.get(), share) } catch { return end(error) }
        } else {
            // The client may not take data for a long time: until then its request stays encoded.
            jobs.prepend(.request(bytes))
            waitingBytes += bytes.count
        }
        proceed()
    }

    private func decode(_ bytes: [UInt8]) throws(Status) -> ListenRequest {
        switch call.format {
        case .protobuf: try ListenRequest(protobuf: bytes)
        case .json: try ListenRequest(json: bytes, at: "")
        }
    }

    /// Inserts the jobs of a request before all other jobs.
    private func take(_ request: ListenRequest, _ share: WorkingShare?) throws(Status) {
        try join(request.database)
        if let target = request.addTarget {
            jobs.prepend(.add(target, share: share))
        } else if let id = request.removeTarget {
            jobs.prepend(.remove(id))
        } else {
            throw .invalidArgument("A ListenRequest must add or remove a target.")
        }
    }

    func join(_ name: String) throws(Status) {
        if let joined = listeners?.database.name ?? joining {
            if !name.isEmpty, try DatabaseName(parsing: name) != joined {
                throw .invalidArgument("A Listen stream is of one database, \(joined).")
            }
            return
        }
        if name.isEmpty { throw .invalidArgument("'database' must be set on the first request of a Listen stream.") }
        try join(try DatabaseName(parsing: name))
    }

    private func join(_ name: DatabaseName) throws(Status) {
        guard
            let database = try service.database(
                name, for: call, refused: { [self] in end($0) },
                again: { [self] in
                    do throws(Status) {
                        try join(name)
                        proceed()
                    } catch { end(error) }
                })
        else {
            // Requests wait until it is open.
            joining = name
            return
        }
        joining = nil
        names = DocumentNames(database.name)
        listeners = service.listeners.join(self, database, call.loop)
        scheduleHeartbeat()
    }

    /// Reading pauses while this much waits for targets that are being loaded.
    var isFull: Bool {
        isDecoding || jobs.count >= Limits.streamRequestsWaitingMax + targets.count
            || waitingBytes >= Limits.streamRequestsWaitingBytesMax
    }

    // MARK: Progress

    /// The limit of requests, and of time, for one tick of the loop.
    static let tickRequestsMax = 20
    private static let tickMilliseconds = 1

    /// Does what is possible now, some of it in later ticks.
    func proceed() {
        beginDeferredLoad()
        advance()
        countPending()
        countWaiting()
    }

    private func advance() {
        var requests = 0
        var tickEnd: MonotonicTime?
        while !call.isFinished, joining == nil, !isLoading, !isFlushing, hasCapacity {
            do throws(Status) {
                if !isDecoding { try decodeNext() }
                if joining != nil { return }
                sendPendingBoundary()
                flush { [self] in proceed() }
                if isFlushing || isDecoding || call.isFinished || jobs.isEmpty { return }
                if requests == Self.tickRequestsMax { return proceedInNextTick() }
                if let tickEnd, MonotonicTime.now > tickEnd { return proceedInNextTick() }
                if tickEnd == nil { tickEnd = MonotonicTime.now.advanced(milliseconds: Self.tickMilliseconds) }
                requests += 1
                guard let job = jobs.popFirst() else { return }
                if !isFull { call.resumeReading() }
                switch job {
                // Not decoded yet; it is taken again when it is the next one.
                case .request: jobs.prepend(job)
                case .add(let message, let share):
                    defer { share?.end() }
                    try add(message)
                case .remove(let id): remove(id, cause: nil)
                case .reload(let target):
                    isReloading = true
                    if targets[target.id] === target { load(target, .unknown) } else { finishLoad() }
                }
            } catch {
                end(error)
            }
        }
    }

    private func proceedInNextTick() {
        if isProceedScheduled { return }
        isProceedScheduled = true
        call.loop.execute { [self] in
            isProceedScheduled = false
            proceed()
        }
    }

    func add(_ message: TargetMessage) throws(Status) {
        guard let listeners else { return }
        let id = try id(for: message)
        if targets[id] != nil {
            return refuse(id, Status(.alreadyExists, "Target ID already exists: \(id)"))
        }
        let target: ListenSubscription
        let knowledge: Knowledge
        do throws(Status) {
            if targets.count >= Limits.listenTargetsMax {
                throw .resourceExhausted("A Listen stream has at most \(Limits.listenTargetsMax) targets.")
            }
            target = try ListenSubscription(
                id: id, kind: try kind(message, listeners), once: message.once, stream: self, reservation())
            knowledge = try self.knowledge(message, listeners.database)
        } catch {
            return refuse(id, error)
        }
        try listeners.add(target)
        targets[id] = target
        load(target, knowledge, isNew: true)
    }

    /// Memory for targets.
    private func reservation() -> MemoryReservation { service.memory.listening.reservation(for: call.requester) }

    /// - Throws: INVALID_ARGUMENT for a read time in the future.
    func knowledge(_ message: TargetMessage, _ database: Database) throws(Status) -> Knowledge {
        let expectedCount = message.expectedCount.map(Int.init)
        if let time = message.readTime {
            let time = try time.timestamp()
            if time > (try database.view().readTime) {
                throw .invalidArgument("The requested 'read_time' cannot be in the future.")
            }
            return .version(time.microseconds, isTime: true, expectedCount: expectedCount)
        }
        guard let bytes = message.resumeToken, !bytes.isEmpty else { return .none }
        guard let token = ResumeToken(bytes) else { return .unknown }
        // Before the first commit all histories are equal.
        if token.incarnation != 0 || token.version != 0 {
            guard token.incarnation == database.incarnation, try database.view().knows(token.version) else {
                return .unknown
            }
        }
        return .version(token.version, expectedCount: expectedCount)
    }

    func id(for message: TargetMessage) throws(Status) -> Int32 {
        if message.targetId < 0 { throw .invalidArgument("target_id must not be negative: \(message.targetId).") }
        if message.targetId > 0 {
            if hasAssignedIDs {
                throw .invalidArgument("Either all targets of a stream have an id from the client, or none.")
            }
            return message.targetId
        }
        hasAssignedIDs = true
        while targets[nextAssignedID] != nil, nextAssignedID < .max { nextAssignedID += 1 }
        guard nextAssignedID < .max else { throw .resourceExhausted("The stream has no more target ids.") }
        defer { nextAssignedID += 1 }
        return nextAssignedID
    }

    func kind(_ message: TargetMessage, _ listeners: LoopSubscriptions) throws(Status) -> ListenSubscription.Kind {
        let database = listeners.database.name
        if let query = message.query {
            return .query(
                try listeners.query(query.protobuf(), reservation()) { () throws(Status) in
                    try Self.live(query, database)
                })
        }
        guard let documents = message.documents else {
            throw .invalidArgument("A target must have a query or documents.")
        }
        if documents.documents.count > Limits.listenDocumentsMax {
            throw .invalidArgument("A target names at most \(Limits.listenDocumentsMax) documents.")
        }
        var keys: Set<[UInt8]> = []
        for name in documents.documents {
            let name = try ResourceName(document: name)
            if name.database != database { throw .invalidArgument("The document is of another database.") }
            keys.insert(DocumentKey.encode(name.path))
        }
        return .documents(keys.sorted { UTF8Order.compare($0, $1) < 0 })
    }

    static func live(
        _ message: TargetMessage.QueryTarget, _ database: DatabaseName
    ) throws(Status) -> LiveQuery {
        let parent = try ResourceName(parent: message.parent)
        if parent.database != database { throw .invalidArgument("The query is of another database.") }
        guard let structured = message.structuredQuery else {
            throw .invalidArgument("'structured_query' must be set on a query target.")
        }
        let query = try structured.query(parent: parent)
        if query.findNearest != nil { throw .invalidArgument("A query target can't search for neighbours.") }
        return LiveQuery(try NormalizedQuery(query))
    }

    func refuse(_ id: Int32, _ status: Status) {
        send(
            TargetChangeMessage(
                targetChangeType: .remove, targetIds: [id],
                cause: StatusMessage(code: Int32(status.code.rawValue), message: status.message)))
    }

    func remove(_ id: Int32, cause: Status?) {
        if let target = targets.removeValue(forKey: id) {
            listeners?.remove(target)
            windows[ObjectIdentifier(target)] = nil
        }
        if let cause {
            refuse(id, cause)
        } else {
            send(TargetChangeMessage(targetChangeType: .remove, targetIds: [id]))
        }
    }
}
