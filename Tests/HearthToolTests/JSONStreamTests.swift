@testable import HearthToolSupport
import HearthTestSupport
import Testing

@testable import hearth

@Suite struct JSONStreamTests {
    private func stream(_ string: String) throws -> JSONStream {
        let folder = TemporaryFolder()
        folder.write("in.json", string)
        return JSONStream(try FileInput(folder.path + "/in.json"))
    }

    private func string(_ bytes: [UInt8]?) -> String? { bytes.map { String(decoding: $0, as: UTF8.self) } }

    @Test(arguments: [
        "1", "-2.5e3", "\"a\\\"}b\"", "{}", "[1, {\"a\": [\"]\"]}]", "null", "{\"a\": {\"b\": \"\\\\\"}}",
    ])
    func aSmallValueIsTakenWhole(_ value: String) throws {
        let stream = try stream(" \n" + value + " ")
        #expect(try string(stream.value(sizeBytesMax: 1000)) == value)
        try stream.expectEnd()
    }

    @Test func aLargeValueIsNotConsumed() throws {
        let stream = try stream("{\"a\": [1, 2, 3], \"b\": 4}")
        #expect(try stream.value(sizeBytesMax: 10) == nil)
        var found: [String] = []
        try stream.object { name throws(ToolFailure) in
            if let whole = try stream.value(sizeBytesMax: 5) {
                found.append(name + "=" + String(decoding: whole, as: UTF8.self))
            } else {
                try stream.array { () throws(ToolFailure) in
                    found.append(name + ":" + String(decoding: try stream.value(sizeBytesMax: 5) ?? [], as: UTF8.self))
                }
            }
        }
        try stream.expectEnd()
        #expect(found == ["a:1", "a:2", "a:3", "b=4"])
    }

    @Test(arguments: [
        "", " ", "{", "[1", "\"x", "{\"a\"", "{\"a\":", "{\"a\":1", "{1:2}", "{\"a\" 1}", "[1 2]", "[1,]", "}", ",",
    ])
    func whatIsNoJSON(_ string: String) throws {
        let stream = try stream(string)
        #expect(throws: ToolFailure.self, "\(string)") {
            switch try stream.peek() {
            case UInt8(ascii: "{"):
                try stream.object { _ throws(ToolFailure) in _ = try stream.value(sizeBytesMax: 100) }
            case UInt8(ascii: "["):
                try stream.array { () throws(ToolFailure) in _ = try stream.value(sizeBytesMax: 100) }
            default: _ = try stream.value(sizeBytesMax: 100)
            }
            try stream.expectEnd()
        }
    }

    @Test func nestingIsBounded() throws {
        let stream = try stream(String(repeating: "[", count: 10_000))
        func descend() throws(ToolFailure) {
            try stream.array { () throws(ToolFailure) in try descend() }
        }
        #expect(throws: ToolFailure.self) { try descend() }
    }
}
