import HearthTree
import Testing

@testable import HearthRealtimeServer

@Suite struct RequestTests {
    private func action(_ name: String, _ body: String) throws -> Result<RealtimeRequest.Action, RealtimeRefusal> {
        let string = Array(#"{"t":"d","d":{"r":7,"a":"\#(name)","b":\#(body)}}"#.utf8)
        guard case .request(let request) = try RealtimeClientMessage(string) else {
            Issue.record("\(name) is no request")
            throw RealtimeFault(kind: .malformed, reason: "")
        }
        #expect(request.number == 7)
        return request.action
    }

    @Test func readsRequests() throws {
        guard
            case .success(.listen(let target, let tag, let known)) = try action(
                "q", #"{"p":"/scores","q":{"l":2,"vf":"r","i":"points"},"t":1,"h":"x"}"#)
        else { Issue.record(); return }
        #expect(target.path == "scores" && tag == 1 && known.hash == "x" && known.compound == nil)
        #expect(target.query?.limit == 2 && target.query?.isLimitedToLast == true)
        guard
            case .success(.put(let update, nil)) = try action(
                "p", #"{"p":"a//b/","d":{"c":{".value":1,".priority":2}}}"#)
        else { Issue.record(); return }
        #expect(update.changes == [TreeChange(path: "a/b", node: inner(["c": Node(1, priority: 2)]))])
        guard case .success(.merge(let merge)) = try action("m", #"{"p":"a","d":{"b/c":1,"d":null}}"#)
        else { Issue.record(); return }
        #expect(merge.path == "a" && merge.isMerge)
        #expect(merge.changes == [TreeChange(path: "a/b/c", node: 1), TreeChange(path: "a/d", node: .empty)])
        guard case .success(.put(let priority, nil)) = try action("p", #"{"p":"a/.priority","d":"x"}"#)
        else { Issue.record(); return }
        #expect(priority.changes[0].isPriority)
        guard case .success(.disconnectCancel("a")) = try action("oc", #"{"p":"/a","d":null}"#)
        else { Issue.record(); return }
        for name in ["s", "appcheck", "unappeck", "unappcheck"] {
            guard case .success(.noted) = try action(name, #"{"c":{"x":1}}"#) else { Issue.record("\(name)"); continue }
        }
    }

    @Test func aQueryThatOnlyOrdersIsNone() throws {
        guard case .success(.listen(let target, _, _)) = try action("q", #"{"p":"a","q":{"i":".value"},"h":""}"#)
        else { Issue.record(); return }
        #expect(target.query == nil)
        guard case .success(.get(let got)) = try action("g", #"{"p":"a","q":{}}"#) else { Issue.record(); return }
        #expect(got.query == nil)
    }

    @Test(
        arguments: [
            ("p", #"{"p":"a/.info","d":1}"#, "Invalid path: Invalid token in path"),
            ("g", #"{"p":".info/connected","q":{}}"#, "Invalid path: Invalid token in path"),
            ("p", #"{"p":"a"}"#, "Invalid data; couldn't parse JSON object, array, or value."),
            ("p", #"{"p":"a","d":{"x.y":1}}"#, nil),
            ("p", #"{"p":"a/.priority","d":{"x":1}}"#, nil),
            ("p", #"{"p":"a/.priority","d":true}"#, nil),
            ("m", #"{"p":"a","d":5}"#, nil),
            ("m", #"{"p":"a","d":{"b":1,"b/c":2}}"#, nil),
            ("q", #"{"p":"a","q":{"l":0}}"#, nil),
            ("q", #"{"p":5}"#, "Invalid path: Invalid token in path"),
            ("p", "5", nil),
            ("nonsense", "{}", "Unknown action: nonsense"),
        ] as [(String, String, String?)])
    func refusesInvalidRequests(_ name: String, _ body: String, _ string: String?) throws {
        guard case .failure(let refusal) = try action(name, body) else { Issue.record("\(name) \(body)"); return }
        #expect(refusal.status == (name == "nonsense" ? .error : .failure))
        if let string { #expect(refusal.string == string) }
    }

    @Test(arguments: [
        "", "[]", "5", "{", "{}", #"{"t":"x","d":{}}"#, #"{"t":"d"}"#, #"{"t":"d","d":5}"#, #"{"t":"d","d":{"r":1}}"#,
        #"{"t":"d","d":{"r":"x","a":"p"}}"#, #"{"t":"c","d":{}}"#, #"{"t":"d","d":{"r":1,"a":"p","b":{}}"#,
    ])
    func closesOnInvalidMessages(_ string: String) {
        #expect(throws: RealtimeFault.self) { try RealtimeClientMessage(Array(string.utf8)) }
    }

    @Test func readsControlMessages() throws {
        guard case .ping = try RealtimeClientMessage(Array(#"{"t":"c","d":{"t":"p","d":{}}}"#.utf8)) else {
            Issue.record()
            return
        }
        guard case .ignored = try RealtimeClientMessage(Array(#"{"t":"c","d":{"t":"n","d":{}}}"#.utf8)) else {
            Issue.record()
            return
        }
    }
}
