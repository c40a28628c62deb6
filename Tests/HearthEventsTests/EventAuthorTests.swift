import HearthEvents
import Testing

/// The stored form of authors: whatever a token says comes back as it was.
@Suite struct EventAuthorTests {
    @Test(arguments: [
        EventAuthor.system, .unknown, .nobody, .administrator(name: ""), .administrator(name: "own\0er"),
        .user(id: "", provider: "", claims: ""), .user(id: "u", provider: "", claims: ""),
        .user(id: "u", provider: "password", claims: "{}"), .user(id: "u", provider: "", claims: "{}"),
        .user(id: "u\0password\0{\"admin\":true}", provider: "p\0", claims: "{\"a\":\"\0\"}"),
        .user(id: "u\0x\0y", provider: "", claims: ""), .user(id: "ä🙂", provider: "é", claims: "\"ü\""),
    ])
    func comesBackAsItWas(author: EventAuthor) { #expect(EventAuthor(stored: author.stored) == author) }

    @Test func malformedRecordsBlameNobody() {
        let whole = EventAuthor.user(id: "user", provider: "p", claims: "").stored
        for count in 1..<whole.count { #expect(EventAuthor(stored: Array(whole.prefix(count))) == .system) }
        #expect(EventAuthor(stored: [5] + [UInt8](repeating: 255, count: 30)) == .system)
        #expect(EventAuthor(stored: [9, 1]) == .system)
    }
}
