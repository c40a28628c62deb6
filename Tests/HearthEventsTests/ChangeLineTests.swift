import HearthEvents
import HearthModel
import HearthWire
import Testing

struct ChangeLineTests {
    private let token = ChangeToken(incarnation: 5, version: 9)
    private let old = DocumentEventTests.document([("n", .integer(1))], DocumentEventTests.created)
    private let new = DocumentEventTests.document([("n", .integer(2))])

    private func line(
        _ kind: ChangeLine.Kind, _ before: EncodedDocument?, _ after: EncodedDocument?, isLast: Bool = false,
        hasBefore: Bool = true
    ) throws -> String {
        var writer = JSONWriter()
        try ChangeLine(
            kind, token: token, time: DocumentEventTests.updated, name: DocumentEventTests.name, before: before,
            after: after, isLast: isLast
        ).append(to: &writer, hasBefore: hasBefore)
        return String(decoding: writer.bytes, as: UTF8.self)
    }

    @Test func aLineHasTheStatesThatThereAre() throws {
        let times = "\"createTime\":\"2025-11-22T19:17:22.682316Z\",\"updateTime\":\"2025-11-22T19:17:2"
        let head = "\"time\":\"2025-11-22T19:17:23.279643Z\",\"document\":\"\(DocumentEventTests.name)\""
        let before = "\"before\":{\"fields\":{\"n\":{\"integerValue\":\"1\"}},\(times)2.682316Z\"}"
        let after = "\"after\":{\"fields\":{\"n\":{\"integerValue\":\"2\"}},\(times)3.279643Z\"}"
        let mark = "{\"token\":\"\(token.string)\",\"type\":"
        #expect(try line(.created, nil, new) == "\(mark)\"created\",\(head),\(after)}")
        #expect(try line(.deleted, old, nil, isLast: true) == "\(mark)\"deleted\",\(head),\(before),\"last\":true}")
        #expect(try line(.snapshot, nil, new) == "\(mark)\"snapshot\",\(head),\(after)}")
        #expect(try line(.updated, old, new) == "\(mark)\"updated\",\(head),\(before),\(after),\"mask\":[\"n\"]}")
        #expect(
            try line(.updated, old, new, hasBefore: false) == "\(mark)\"updated\",\(head),\(after),\"mask\":[\"n\"]}")
        #expect(
            try line(.updated, new, new, hasBefore: false) == "\(mark)\"updated\",\(head),\(after),\"mask\":[]}")
    }

    @Test func tokensAreReadAsTheyWereWritten() throws {
        for token in [token, ChangeToken(incarnation: -1, version: .max, isWithinSnapshot: true)] {
            #expect(try ChangeToken(token.string) == token)
            #expect(token.string.utf8.allSatisfy { $0 != UInt8(ascii: "+") && $0 != UInt8(ascii: "/") })
        }
        let string = token.string
        for wrong in ["", "x", string.dropLast() + "", string + "A", "Z" + string.dropFirst(), string + "="] {
            #expect(throws: Status.self, "\(wrong)") { try ChangeToken(wrong) }
        }
    }
}
