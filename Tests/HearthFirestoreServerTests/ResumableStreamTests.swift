@testable import HearthFirestoreServer
import HearthTestSupport
import HearthModel
import HearthDocuments
import HearthWire
import Testing

@testable import HearthHost

@Suite("Write streams that are resumed")
struct ResumableStreamTests {
    private static let name = StreamSite.name
    private static let user = Identity.client(ClientIdentity(uid: "u", token: MapValue(), end: nil, projects: .all))

    private static func opening(_ id: String = "", _ token: [UInt8] = []) -> WriteRequest {
        var request = WriteRequest(database: name.string, streamId: id, streamToken: token)
        if id.isEmpty { request.labels.set("hearth-resumable", "true") }
        return request
    }

    private static func increment(_ document: String, _ token: String, pad bytes: Int = 0) -> WriteRequest {
        var write = WriteMessage(
            update: DocumentMessage(
                name: "\(name.documentsRoot)/c/\(document)",
                fields: MapValue([MapValue.Field(name: "z", value: .bytes([UInt8](repeating: 1, count: bytes)))])))
        write.updateMask = DocumentMaskMessage(fieldPaths: ["z"])
        write.updateTransforms = [DocumentTransformMessage.FieldTransform(fieldPath: "n", increment: .integer(1))]
        return WriteRequest(writes: [write], streamToken: Array(token.utf8))
    }

    private static func create(_ document: String, _ token: String) -> WriteRequest {
        var write = WriteMessage(update: DocumentMessage(name: "\(name.documentsRoot)/c/\(document)"))
        write.currentDocument = PreconditionMessage(exists: false)
        return WriteRequest(writes: [write], streamToken: Array(token.utf8))
    }

    private func answers(_ client: StreamSiteClient, _ count: Int) async throws -> [WriteResponse] {
        await until { client.received.count >= count || client.end != nil }
        return try client.received.map { try WriteResponse(protobuf: $0) }
    }

    /// A transaction that has read the document makes commits to it wait.
    private func lock(_ site: StreamSite) async throws -> (Database, transaction: [UInt8]?) {
        let database = try site.registry.database(Self.name)
        let transaction = try await withCheckedThrowingContinuation { continuation in
            database.read(.newTransaction(.readWrite(retry: nil)), [.document(ResourcePath(["c", "d"]))]) { result in
                continuation.resume(with: result.map(\.newTransaction))
            }
        }
        return (database, transaction)
    }

    private func number(_ site: StreamSite, _ document: String) throws -> Value? {
        let stored = try site.registry.database(Self.name).view().document(ResourcePath(["c", document]))
        return try stored.map { try FieldsCodec.decode($0.fields)["n"] } ?? nil
    }

    /// Opens a stream with `made` increments, whose client received the responses to `received` of them; the connection
    /// is cut before the others.
    /// - Parameter pad: additional bytes of the second one.
    private func cut(
        _ site: StreamSite, made: Int, received: Int, pad: Int = 0
    ) async throws -> (id: String, token: [UInt8], [WriteResponse]) {
        let client = site.another()
        client.say(Self.opening())
        for number in 0..<made {
            client.say(Self.increment("d", "\(min(number, received))", pad: number == 1 ? pad : 0))
        }
        let answers = try await answers(client, made + 1)
        try #require(answers.count == made + 1)
        client.leave()
        await client.settle()
        return (answers[0].streamId, answers[received].streamToken, answers)
    }

    @Test("a committed write gets the same response, another one is committed", arguments: [0, 500 << 10])
    func resumed(pad: Int) async throws {
        let site = try StreamSite()
        let (id, token, before) = try await cut(site, made: 3, received: 1, pad: pad)
        #expect(id.hasPrefix("hearth-"))
        let client = site.another()
        client.say(Self.opening(id, token))
        client.say(Self.increment("d", "1", pad: pad))
        client.say(Self.increment("d", "1"))
        client.say(Self.increment("d", "1"))
        let after = try await answers(client, 4)
        try #require(after.count == 4, "\(String(describing: client.end))")
        #expect(after[0].streamId.isEmpty && after[0].streamToken == token)
        for index in 1...2 {
            #expect(after[index].protobuf() == before[index + 1].protobuf())
        }
        #expect(after[3].writeResults.first?.transformResults == [.integer(4)])
        #expect(try number(site, "d") == .integer(4))
        client.leave()
        await client.settle()
        #expect(site.service.resumableStreams.count == 0)
        await site.stop()
    }

    @Test("a failed commit takes no number, and a successful one does not fail the second time")
    func refusals() async throws {
        let site = try StreamSite()
        var client = site.another()
        client.say(Self.opening())
        client.say(Self.create("a", "0"))
        client.say(Self.create("a", "1"))
        let first = try await answers(client, 3)
        await until { client.end != nil }
        #expect(first.count == 2 && client.end?.code == .alreadyExists)
        client = site.another()
        client.say(Self.opening(first[0].streamId, Array("0".utf8)))
        client.say(Self.create("a", "0"))
        client.say(Self.increment("d", "1"))
        let second = try await answers(client, 3)
        #expect(client.end == nil && second.count == 3)
        #expect(second.last?.streamToken == Array("2".utf8))
        client.leave()
        await site.stop()
    }

    @Test("a stream of another user, of another history, or a deleted one is not resumed")
    func unknown() async throws {
        let site = try StreamSite()
        let (id, token, _) = try await cut(site, made: 2, received: 1)
        for (identity, id, token) in [
            (Self.user, id, token), (.owner, id, Array("3".utf8)),
            (.owner, String(id.dropLast(32)) + String(repeating: "0", count: 32), Array("1".utf8)),
        ] {
            let client = site.another(as: identity)
            client.say(Self.opening(id, token))
            let answer = try #require(try await answers(client, 1).first)
            #expect(answer.streamId.hasPrefix("hearth-") && answer.streamId != id)
            #expect(answer.streamToken == Array("0".utf8))
            client.leave()
            await client.settle()
        }
        await site.stop()
    }

    @Test("naming another user's stream does not disturb it")
    func stolen() async throws {
        let site = try StreamSite()
        let owner = site.another()
        owner.say(Self.opening())
        owner.say(Self.increment("d", "0"))
        let id = try #require(try await answers(owner, 2).first).streamId
        let thief = site.another(as: Self.user)
        thief.say(Self.opening(id, Array("1".utf8)))
        #expect(try await answers(thief, 1).first?.streamId.isEmpty == false)
        owner.say(Self.increment("d", "1"))
        #expect(try await answers(owner, 3).count == 3 && owner.end == nil)
        thief.leave()
        owner.leave()
        await site.stop()
    }

    @Test("other documents under the same number, invalid tokens and too many unacknowledged writes fail")
    func badRequests() async throws {
        let site = try StreamSite()
        let (id, token, _) = try await cut(site, made: 2, received: 1)
        func end(_ requests: [WriteRequest]) async throws -> Status.Code? {
            let client = site.another()
            for request in requests { client.say(request) }
            await until { client.end != nil }
            await client.settle()
            return client.end?.code
        }
        #expect(try await end([Self.opening(id, token), Self.increment("other", "1")]) == .aborted)
        #expect(try await end([Self.opening(id, token), Self.increment("d", "5")]) == .invalidArgument)
        #expect(try await end([Self.opening(id, Array("x".utf8))]) == .invalidArgument)
        #expect(try await end([Self.opening("hearth-12", token)]) == .invalidArgument)
        #expect(try await end([Self.opening("12", token)]) == .invalidArgument)
        // A stream has exactly one id.
        #expect(try await end([Self.opening("hearth-" + id.dropFirst(7).uppercased(), token)]) == .invalidArgument)
        #expect(
            try await end([Self.opening()] + (0...Limits.streamAnswersMax).map { _ in Self.increment("e", "0") })
                == .resourceExhausted)
        #expect(try number(site, "e") == .integer(Int64(Limits.streamAnswersMax)))
        #expect(try number(site, "d") == .integer(2))
        await site.stop()
    }

    @Test("the commit of an earlier connection is made before the stream continues")
    func underWay() async throws {
        let site = try StreamSite()
        let old = site.another()
        old.say(Self.opening())
        let id = try #require(try await answers(old, 1).first).streamId
        let (database, transaction) = try await lock(site)
        old.say(Self.increment("d", "0"))
        await until { database.isBusy && database.statistics.queuedCommits > 0 }
        let new = site.another()
        new.say(Self.opening(id, Array("0".utf8)))
        new.say(Self.increment("d", "0"))
        await new.settle()
        #expect(new.received.isEmpty)
        try database.rollback(try #require(transaction))
        database.tick()
        let answers = try await answers(new, 2)
        #expect(answers.count == 2 && old.end?.code == .unavailable)
        #expect(try number(site, "d") == .integer(1))
        new.leave()
        await site.stop()
    }

    /// Of several waiting connections only the last one gets the stream, and those that disconnect hold nothing.
    @Test("many connections that resume one stream")
    func crowd() async throws {
        let site = try StreamSite()
        let old = site.another()
        old.say(Self.opening())
        let id = try #require(try await answers(old, 1).first).streamId
        let (database, transaction) = try await lock(site)
        old.say(Self.increment("d", "0"))
        await until { database.isBusy && database.statistics.queuedCommits > 0 }
        let clients = (0..<10).map { _ in site.another() }
        for (index, client) in clients.enumerated() {
            client.say(Self.opening(id, Array("0".utf8)))
            await client.settle()
            if index == 4 { client.leave() }
            await client.settle()
        }
        for client in clients.dropLast() {
            #expect(client.end?.code == (client === clients[4] ? .cancelled : .unavailable))
        }
        clients[9].say(Self.increment("d", "0"))
        try database.rollback(try #require(transaction))
        database.tick()
        #expect(try await answers(clients[9], 2).count == 2)
        #expect(try number(site, "d") == .integer(1))
        clients[9].leave()
        await clients[9].settle()
        await until { site.service.resumableStreams.count == 0 }
        await site.stop()
    }

    /// A connection that lost its stream to another one does not keep the client from resuming it.
    @Test("a late handshake of an earlier connection repeats no write")
    func lateHandshake() async throws {
        let site = try StreamSite()
        let (id, token, _) = try await cut(site, made: 3, received: 1)
        let third = site.another()
        third.say(Self.opening(id, token))
        third.say(Self.increment("d", "1"))
        #expect(try await answers(third, 2).count == 2)
        let second = site.another()
        second.say(Self.opening(id, token))
        #expect(try await answers(second, 1).first?.streamId == "")
        #expect(third.end?.code == .unavailable)
        second.leave()
        let fourth = site.another()
        fourth.say(Self.opening(id, Array("2".utf8)))
        fourth.say(Self.increment("d", "2"))
        #expect(try await answers(fourth, 2).last?.streamToken == Array("3".utf8))
        #expect(try number(site, "d") == .integer(3))
        fourth.leave()
        await site.stop()
    }
}
