import HearthModel
import HearthWire
import Testing

/// The public vectors that concern the wire form: values, requests, queries, Listen responses, bundles.
struct ConformanceTests {
    @Test func valuesKeepTheirOrderThroughBothForms() throws {
        // The file is JSON around proto3 JSON; a Struct reads the outer part.
        let file = try StructMessage(json: TestData.vector("value-ordering/groups.json"))
        var previous: [Value] = []
        for group in file.list("groups") {
            let values = try group.list("values").map { member throws -> Value in
                let json = StructMessage([("values", .list([.object(member)]))]).json()
                return try CursorMessage(json: json).values[0]
            }
            for value in values {
                for other in values where !ValueOrder.equivalent(value, other) {
                    Issue.record("\(other) is not equivalent to \(value)")
                }
                for other in previous where ValueOrder.compare(other, value) >= 0 {
                    Issue.record("\(other) is not before \(value)")
                }
                let cursor = CursorMessage(values: [value])
                #expect(try CursorMessage(protobuf: cursor.protobuf()).values == [value])
                #expect(try CursorMessage(json: cursor.json()).values == [value])
            }
            previous += values
        }
        #expect(previous.count == 104)
    }

    @Test func clientRequestsSurviveBothForms() throws {
        var counts = (commits: 0, queries: 0, responses: 0)
        for name in try TestData.vectorFiles("firestore-client") where name.hasSuffix(".json") {
            let file = try StructMessage(json: TestData.vector("firestore-client/" + name))
            for test in file.list("tests") {
                for member in test.fields {
                    guard case .object(let body) = member.value else { continue }
                    if case .object(let request)? = body["request"], body["isError"] == nil, member.name != "get" {
                        let message = try roundTrip(CommitRequest.self, request, name)
                        let database = try DatabaseName(parsing: message.database)
                        #expect(
                            try WriteMessage.writes(message.writes, database: database).count == message.writes.count)
                        counts.commits += 1
                    }
                    if case .object(let query)? = body["query"] {
                        let message = try roundTrip(StructuredQueryMessage.self, query, name)
                        let parent = try ResourceName(parent: "projects/projectID/databases/(default)/documents")
                        _ = try message.query(parent: parent)
                        counts.queries += 1
                    }
                    for response in body.list("responses") {
                        _ = try roundTrip(ListenResponse.self, response, name)
                        counts.responses += 1
                    }
                }
            }
        }
        #expect(counts.commits > 90 && counts.queries > 20 && counts.responses > 50, "\(counts)")
    }

    @Test func bundlesAreReadElementByElement() throws {
        let bundle = try TestData.vector("bundle/example.bundle")
        var rest = bundle[...]
        var names: [String] = []
        while !rest.isEmpty {
            let digits = rest.prefix { $0 >= UInt8(ascii: "0") && $0 <= UInt8(ascii: "9") }
            let count = try #require(Int(String(decoding: digits, as: UTF8.self)))
            let element = Array(rest.dropFirst(digits.count).prefix(count))
            rest = rest.dropFirst(digits.count + count)
            let message = try BundleElementMessage(json: element)
            #expect(try BundleElementMessage(json: message.json()).protobuf() == message.protobuf())
            let kinds = [
                message.metadata.map { _ in "metadata" }, message.namedQuery.map { _ in "query" },
                message.documentMetadata.map { _ in "documentMetadata" }, message.document.map { _ in "document" },
            ]
            names += kinds.compactMap { $0 }
        }
        #expect(names.prefix(4) == ["metadata", "query", "query", "documentMetadata"])
    }

    /// JSON to the message, to the binary form and back: the same JSON, except for the order of its members.
    private func roundTrip<M: WireMessage>(_ type: M.Type, _ object: StructMessage, _ name: String) throws -> M {
        let message = try M(json: object.json())
        let again = try StructMessage(json: try M(protobuf: message.protobuf()).json())
        #expect(string(again.normalized.json()) == string(object.normalized.json()), "\(name)")
        return message
    }
}

extension StructMessage {
    /// The objects of a list under a name; empty when there is none.
    fileprivate func list(_ name: String) -> [StructMessage] {
        guard case .list(let elements)? = self[name] else { return [] }
        return elements.compactMap { if case .object(let object) = $0 { object } else { nil } }
    }

    /// The same with the members of all objects sorted, and without empty lists and maps of fields: the vectors contain
    /// some of these, which have no meaning.
    fileprivate var normalized: StructMessage {
        let kept = fields.filter { field in
            switch field.value {
            case .list(let elements): !elements.isEmpty
            case .object(let object): !(field.name == "fields" && object.fields.isEmpty)
            default: true
            }
        }
        return StructMessage(
            kept.sorted { UTF8Order.compare($0.name, $1.name) < 0 }.map { ($0.name, Self.normalized($0.value)) })
    }

    private static func normalized(_ member: Member) -> Member {
        switch member {
        case .object(let object): .object(object.normalized)
        case .list(let elements): .list(elements.map(normalized))
        default: member
        }
    }
}
