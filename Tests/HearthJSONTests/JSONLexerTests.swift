import HearthJSON
import Testing

/// A document that is read to its end.
private func read<Value>(
    _ bytes: [UInt8], depthMax: Int = 4, _ body: (inout JSONLexer<JSONError>) throws(JSONError) -> Value
) throws(JSONError) -> Value {
    try bytes.withUnsafeBufferPointer { (bytes) throws(JSONError) in
        var lexer = JSONLexer<JSONError>(UnsafeRawBufferPointer(bytes), in: 0..<bytes.count, depthMax: depthMax)
        let value = try body(&lexer)
        try lexer.endDocument()
        return value
    }
}

private func skip(_ string: String) throws(JSONError) {
    _ = try read(Array(string.utf8)) { (lexer) throws(JSONError) in try lexer.skipValue() }
}

private func string(_ bytes: [UInt8]) throws(JSONError) -> String {
    try read(bytes) { (lexer) throws(JSONError) in try lexer.readString() }
}

@Suite struct JSONLexerTests {
    @Test(arguments: [
        "null", " true ", "\t\r\n-0.5e+3", "[[[[]]]]", "{\"a\":[1,{\"b\":false}],\"\":\"\\\"\"}",
        "\"\u{1F600}\\ud83d\\ude00\"",
    ])
    func valuesAreSkipped(_ document: String) throws {
        try skip(document)
    }

    @Test(arguments: [
        ("", JSONError(.unexpectedEnd, at: 0)), ("[1,]", JSONError(.unexpectedToken, at: 3)),
        ("[1 2]", JSONError(.unexpectedToken, at: 3)), ("{\"a\" 1}", JSONError(.unexpectedToken, at: 5)),
        ("{\"a\":1,}", JSONError(.unexpectedToken, at: 7)), ("nul", JSONError(.unexpectedToken, at: 0)),
        ("1 2", JSONError(.unexpectedToken, at: 2)), ("01", JSONError(.unexpectedToken, at: 1)),
        ("-", JSONError(.unexpectedEnd, at: 1)), ("1.x", JSONError(.unexpectedToken, at: 2)),
        ("1e", JSONError(.unexpectedEnd, at: 2)), ("\"a", JSONError(.unexpectedEnd, at: 2)),
        ("\"a\\", JSONError(.unexpectedEnd, at: 3)), ("\"12345678\n\"", JSONError(.unexpectedToken, at: 9)),
        ("\"\\x\"", JSONError(.invalidEscape, at: 2)), ("\"\\u12g4\"", JSONError(.invalidEscape, at: 5)),
        ("\"\\ud800\"", JSONError(.unpairedSurrogate, at: 2)), ("\"\\udc00\"", JSONError(.unpairedSurrogate, at: 2)),
        ("\"\\ud800\\u0041\"", JSONError(.unpairedSurrogate, at: 2)), ("[[[[[]]]]]", JSONError(.tooDeep, at: 4)),
    ])
    func errorsHaveTheirOffset(_ document: String, _ expected: JSONError) {
        #expect(throws: expected) { try skip(document) }
    }

    @Test func stringsAreUTF8() throws {
        #expect(try string(Array("\"12345678\u{e4}\"".utf8)) == "12345678\u{e4}")
        #expect(throws: JSONError(.invalidUTF8, at: 1)) { try string([0x22, 0x61, 0xC3, 0x28, 0x22]) }
        #expect(throws: JSONError(.invalidUTF8, at: 1)) { try string([0x22, 0x5C, 0x6E, 0xFF, 0x22]) }
    }

    @Test func aPartOfSomeBytesIsADocument() throws {
        let bytes = Array("[1, \"\\n\", 3]".utf8)
        let part = try bytes.withUnsafeBytes { bytes in
            var lexer = JSONLexer<JSONError>(bytes, in: 3..<8, depthMax: 1)
            let string = try lexer.readString()
            try lexer.endDocument()
            return (string, lexer.position, lexer.start)
        }
        #expect(part == ("\n", 8, 3))
    }

    @Test(
        arguments: [
            ("0", 0, 0, 0), ("-0", 0, 0, 0), ("1000", 1000, 1000, 1000), ("1e3", nil, 1000, 1000),
            ("10.0", nil, 10, 10),
            ("1.5", nil, nil, 1.5), ("9223372036854775807", .max, .max, 0x1p63),
            ("-9223372036854775808", .min, .min, -0x1p63),
            ("9223372036854775808", nil, nil, 0x1p63), ("18446744073709551616", nil, nil, 0x1p64),
            ("0.1", nil, nil, 0.1), ("1e400", nil, nil, .infinity), ("5e-324", nil, nil, 5e-324),
            ("0.30000000000000004", nil, nil, 0.30000000000000004),
        ] as [(String, Int64?, Int64?, Double)])
    func numbersAreKnownInAllForms(_ document: String, _ plain: Int64?, _ integer: Int64?, _ double: Double) throws {
        let bytes = Array(document.utf8)
        try bytes.withUnsafeBytes { bytes in
            let number = try #require(JSONNumber(bytes))
            #expect(number.plainInt64 == plain)
            #expect(number.int64 == integer)
            #expect(number.double == double)
            #expect(number.finiteDouble == (double.isFinite ? double : nil))
        }
    }

    @Test(arguments: ["", " 1", "1 ", "1x", "+1", ".5", "NaN"])
    func otherStringsAreNoNumbers(_ document: String) {
        Array(document.utf8).withUnsafeBytes { #expect(JSONNumber($0) == nil) }
    }
}

@Suite struct JSONTokensTests {
    @Test func stringsAreEscaped() throws {
        let every = String(String.UnicodeScalarView((0..<0x80).map { Unicode.Scalar($0) })) + "\u{2028}\u{1F600}"
        var output: [UInt8] = []
        JSONTokens.append(every, to: &output)
        #expect(try string(output) == every)
        output = []
        JSONTokens.append("\u{1}\"\\/\u{7f}\n", to: &output)
        #expect(String(decoding: output, as: UTF8.self) == "\"\\u0001\\\"\\\\/\u{7f}\\n\"")
    }

    @Test func numbersAreShort() {
        var output: [UInt8] = []
        for integer in [0, .max, .min] as [Int64] {
            JSONTokens.append(integer, to: &output)
            output.append(0x20)
        }
        JSONTokens.append(UInt64.max, to: &output)
        for double in [0.1, -0.0, 1e16] {
            output.append(0x20)
            JSONTokens.append(double, to: &output)
        }
        #expect(
            String(decoding: output, as: UTF8.self)
                == "0 9223372036854775807 -9223372036854775808 18446744073709551615 0.1 -0.0 1e+16")
    }
}

@Suite struct JSONOutlineTests {
    @Test func bracketsInStringsDoNotCount() {
        var outline = JSONOutline()
        let structure = Array("{\"a\\\"]\":[\"}\"]}".utf8).filter { outline.take($0) }
        #expect(String(decoding: structure, as: UTF8.self) == "{\":[\"]}")
        #expect(outline.depth == 0 && !outline.isInString)
    }
}
