import HearthTestSupport
import Testing

@testable import HearthRealtimeServer

@Suite struct UploadFormTests {
    private func file(_ type: String?, _ body: String) -> String? {
        let bytes = Array(body.utf8)
        guard let range = UploadForm(contentType: type)?.file(in: bytes) else { return nil }
        return String(decoding: bytes[range], as: UTF8.self)
    }

    private static let head = "Content-Disposition: form-data; name=\"f\"; filename=\"f.json\"\r\n\r\n"

    @Test(arguments: [
        "multipart/form-data; boundary=x", "Multipart/Form-Data;boundary=\"x\"",
        "multipart/form-data ; a=b; BOUNDARY=x ; c",
    ])
    func typesOfForms(_ type: String) {
        #expect(file(type, "--x\r\n\(Self.head)1\r\n--x--") == "1")
    }

    @Test(arguments: [
        nil, "", "application/json", "multipart/mixed; boundary=x", "multipart/form-data",
        "multipart/form-data; boundary",
        "multipart/form-data; boundary=", "multipart/form-data; boundary=\"\"",
        "multipart/form-data; boundary=\(String(repeating: "x", count: 71))",
    ])
    func otherTypes(_ type: String?) {
        #expect(UploadForm(contentType: type) == nil)
    }

    /// Parts without a file name, empty files, bytes around the parts, padding, and what looks like a delimiter.
    @Test(arguments: [
        ("--x\r\n\(head)\r\n--x--", ""), ("--x\r\n\(head)a\r\nb\r\n-x\r\n--x--", "a\r\nb\r\n-x"),
        ("before\r\n--x \t\r\n\(head)1\r\n--x--after", "1"),
        ("--x\r\nA: b\r\n\r\nno\r\n--x\r\n\(head)yes\r\n--x\r\n\(head)later\r\n--x--", "yes"),
        ("--x\r\nA: b\r\n\(head.lowercased())1\r\n--x\r\n", "1"),
    ])
    func files(_ body: String, _ content: String) {
        #expect(file("multipart/form-data; boundary=x", body) == content)
    }

    @Test(arguments: [
        "", "-", "--x", "--x--", "--x\r\n", "--x\r\n\r\n", "--y\r\n\(head)1\r\n--y--", "--x\r\n\(head)1",
        "--x\r\n\(head)1\r\n--",
        "--x\r\nA: b\r\n\r\n1\r\n--x--", "--xy\r\n\(head)1\r\n--x--", "\r\n--x--\r\n\(head)1\r\n--x--",
    ])
    func incompleteForms(_ body: String) {
        #expect(file("multipart/form-data; boundary=x", body) == nil)
    }

    @Test func anyBytesAreRead() throws {
        let seed = TestRun.seed()
        var random = SeededGenerator(seed: seed)
        let form = try #require(UploadForm(contentType: "multipart/form-data; boundary=x"))
        let pieces = ["\r", "\n", "\r\n", "-", "--", "x", "--x", " ", "\t", Self.head, "filename", ":", "\u{e4}"].map {
            Array($0.utf8)
        }
        for _ in 0..<5000 {
            let body = (0..<random.below(24)).flatMap { _ in pieces[random.below(pieces.count)] }
            if let range = form.file(in: body) {
                #expect(range.lowerBound >= 0 && range.upperBound <= body.count, "seed \(seed)")
            }
        }
    }
}
