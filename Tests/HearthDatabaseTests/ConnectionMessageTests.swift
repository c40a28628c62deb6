import HearthTree
import Testing

@testable import HearthDatabase

/// Parsing of the server's messages, and encoding of requests.
struct ConnectionMessageTests {
    private func message(_ string: String) throws -> WireMessage { try WireMessage(Array(string.utf8)) }

    private func string(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }

    @Test func control() throws {
        let greeting = #"{"t":"c","d":{"t":"h","d":{"ts":1700000000000,"v":"5","h":"localhost:9000","s":"kS8"}}}"#
        guard case .handshake(let handshake) = try message(greeting) else {
            Issue.record("no handshake")
            return
        }
        #expect(
            handshake
                == WireHandshake(serverMilliseconds: 1_700_000_000_000, host: "localhost:9000", session: "kS8"))
        guard case .shutdown("why") = try message(#"{"t":"c","d":{"t":"s","d":"why"}}"#) else {
            Issue.record("no shutdown")
            return
        }
        guard case .redirect("h:1") = try message(#"{"t":"c","d":{"t":"r","d":"h:1"}}"#) else {
            Issue.record("no redirect")
            return
        }
        guard case .ignored = try message(#"{"t":"c","d":{"t":"o","d":null}}"#) else {
            Issue.record("no pong")
            return
        }
    }

    /// A difference to such a clock could not be added to a time.
    @Test(arguments: ["-9223372036854775808", "-1", "9223372036854775807", "253402300800000", "1.5", "\"1\""])
    func impossibleClocks(_ milliseconds: String) {
        #expect(throws: TreeDataError.self) {
            try message(#"{"t":"c","d":{"t":"h","d":{"ts":\#(milliseconds),"s":"x"}}}"#)
        }
    }

    /// What walks down to the location is recursive.
    @Test func locationsThatAreTooDeep() {
        let path = Array(repeating: "a", count: 200_000).joined(separator: "/")
        for body in [
            #"{"a":"d","b":{"p":"\#(path)","d":1}}"#, #"{"a":"m","b":{"p":"x","d":{"\#(path)":1}}}"#,
            #"{"a":"rm","b":{"p":"x","d":[{"s":"\#(path)","m":1}]}}"#, #"{"a":"c","b":{"p":"\#(path)"}}"#,
            #"{"a":"rm","b":{"p":"x","d":[{"e":"\#(path)","m":1}]}}"#,
        ] {
            #expect(throws: TreeDataError.self) { try message(#"{"t":"d","d":\#(body)}"#) }
        }
    }

    @Test func replies() throws {
        func reply(_ string: String) throws -> WireReply {
            guard case .reply(let reply) = try message(string) else { throw TreeDataError("no reply") }
            return reply
        }
        let ok = try reply(#"{"t":"d","d":{"r":7,"b":{"s":"ok","d":{"a":{".value":1,".priority":2}}}}}"#)
        #expect(ok.number == 7 && ok.failure == nil)
        #expect(try ok.node() == tree(#"{"a":{".value":1,".priority":2}}"#))
        let refused = try reply(#"{"t":"d","d":{"r":8,"b":{"s":"permission_denied","d":"Permission denied"}}}"#)
        #expect(refused.failure == WireFailure("permission_denied", "Permission denied"))
        #expect(try reply(#"{"t":"d","d":{"r":8,"b":{"s":"failure","d":{}}}}"#).failure == WireFailure("failure"))
        #expect(try reply(#"{"t":"d","d":{"r":9,"b":{"s":"ok"}}}"#).node().isEmpty)
        #expect(try reply(#"{"t":"d","d":{"r":9,"b":{"s":"ok","d":null}}}"#).node().isEmpty)
    }

    @Test func pushes() throws {
        guard
            case .data(let node, let path, nil) = try message(
                #"{"t":"d","d":{"a":"d","b":{"p":"a/b","d":[1,null,2]}}}"#)
        else {
            Issue.record("no data")
            return
        }
        #expect(path == "a/b")
        #expect(node == tree(#"{"0":1,"2":2}"#))
        guard
            case .merge(let members, "/", 3?) = try message(
                #"{"t":"d","d":{"a":"m","b":{"p":"","d":{"x/y":null,"z":true},"t":3}}}"#)
        else {
            Issue.record("no merge")
            return
        }
        #expect(members.map(\.path) == ["x/y", "z"])
        #expect(members.map(\.node) == [.empty, Node(true)])
        guard
            case .ranges(let ranges, "a", nil) = try message(
                #"{"t":"d","d":{"a":"rm","b":{"p":"a","d":[{"e":"b/c","m":{"b":{"c":1}}},{"s":"b/c","m":null},{}]}}}"#)
        else {
            Issue.record("no ranges")
            return
        }
        #expect(ranges.map(\.start) == [nil, "b/c", nil])
        #expect(ranges.map(\.end) == ["b/c", nil, nil])
        #expect(ranges[0].node.node(at: "b/c").value == 1 && ranges[1].node.isEmpty)
        guard case .listenRevoked("a", nil) = try message(#"{"t":"d","d":{"a":"c","b":{"p":"a"}}}"#),
            case .listenRevoked("a", let query?) = try message(
                #"{"t":"d","d":{"a":"c","b":{"p":"a","q":[{"l":2,"vf":"r","i":"x"}]}}}"#)
        else {
            Issue.record("no revocations")
            return
        }
        #expect(query.limit == 2 && query.isLimitedToLast && query.index == .child("x"))
        guard
            case .credentialRevoked(let failure) = try message(
                #"{"t":"d","d":{"a":"ac","b":{"s":"expired_token","d":"Auth token is expired"}}}"#)
        else {
            Issue.record("no revoked credential")
            return
        }
        #expect(failure == WireFailure("expired_token", "Auth token is expired"))
        guard case .ignored = try message(#"{"t":"d","d":{"a":"new","b":{"p":"a"}}}"#) else {
            Issue.record("something of the future")
            return
        }
    }

    @Test(arguments: [
        "", "x", "[]", "{}", "1", #"{"t":"x","d":{}}"#, #"{"t":"c"}"#, #"{"t":"c","d":{"t":"h","d":{}}}"#,
        #"{"t":"d","d":{"r":1}}"#, #"{"t":"d","d":{"r":1,"b":{}}}"#, #"{"t":"d","d":{"a":"d"}}"#,
        #"{"t":"d","d":{"a":"m","b":{"p":"a","d":1}}}"#, #"{"t":"d","d":{"a":"rm","b":{"p":"a","d":{}}}}"#,
        #"{"t":"d","d":{"a":"d","b":{"p":"a","d":{"a.b":1}}}}"#,
    ])
    func refuses(_ string: String) {
        #expect(throws: TreeDataError.self) { try message(string) }
    }

    @Test func requests() throws {
        #expect(
            string(WireRequest.listen(2, "counter", nil, tag: nil, ListenHash(simple: "")))
                == #"{"t":"d","d":{"r":2,"a":"q","b":{"p":"/counter","h":""}}}"#)
        var query = TreeQuery()
        query.index = .child("points")
        query.limit = 2
        query.isLimitedToLast = true
        let listen = string(WireRequest.listen(4, "scores", query, tag: 1, ListenHash(simple: "x=")))
        let sent = try TreeJSON.value(Array(listen.utf8))["d"]?["b"]
        #expect(sent?["p"] == "/scores" && sent?["t"] == 1 && sent?["h"] == "x=")
        #expect(try TreeQuery(wire: try #require(sent?["q"])) == query)
        let compound = ListenHash(
            simple: "s", compound: CompoundListenHash(hashes: ["a", "b", ""], paths: ["x/y", "/"]))
        #expect(
            string(WireRequest.listen(1, "/", nil, tag: nil, compound))
                == #"{"t":"d","d":{"r":1,"a":"q","b":{"p":"/","h":"s","ch":{"hs":["a","b",""],"ps":["x/y","/"]}}}}"#)
        #expect(
            string(WireRequest.unlisten(5, "a", nil, tag: nil)) == #"{"t":"d","d":{"r":5,"a":"n","b":{"p":"/a"}}}"#)
        #expect(string(WireRequest.get(6, "a", nil)) == #"{"t":"d","d":{"r":6,"a":"g","b":{"p":"/a","q":{}}}}"#)
        #expect(
            string(WireRequest.put(3, "p", "a/b", Node("ä\"", priority: 1), hash: "h"))
                == #"{"t":"d","d":{"r":3,"a":"p","b":{"p":"/a/b","d":{".value":"ä\"",".priority":1},"h":"h"}}}"#)
        #expect(
            string(WireRequest.put(3, "o", "a/.priority", .empty, hash: nil))
                == #"{"t":"d","d":{"r":3,"a":"o","b":{"p":"/a/.priority","d":null}}}"#)
        #expect(
            string(WireRequest.merge(3, "m", "/", [("a/b", Node(.deferred(.timestamp))), ("c", .empty)]))
                == #"{"t":"d","d":{"r":3,"a":"m","b":{"p":"/","d":{"a/b":{".sv":"timestamp"},"c":null}}}}"#)
        #expect(
            string(WireRequest.onDisconnectCancel(8, "a")) == #"{"t":"d","d":{"r":8,"a":"oc","b":{"p":"/a","d":null}}}"#
        )
        #expect(
            string(WireRequest.auth(1, token: "x.y.z")) == #"{"t":"d","d":{"r":1,"a":"auth","b":{"cred":"x.y.z"}}}"#)
        #expect(string(WireRequest.unauth(1)) == #"{"t":"d","d":{"r":1,"a":"unauth","b":{}}}"#)
    }
}
