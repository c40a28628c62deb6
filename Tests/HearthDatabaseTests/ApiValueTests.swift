import Foundation
import HearthApp
import HearthModel
import HearthTree
import Testing

@testable import HearthDatabase

private typealias ServerValue = HearthDatabase.ServerValue

/// Conversion of users' values to nodes and back.
struct ApiValueTests {
    private func read(_ value: Any?, at path: TreePath = "a") throws -> Node {
        try ValueReader(call: "setValue").node(value, at: path)
    }

    private func message(_ value: Any?, at path: TreePath = "a") -> String {
        do {
            return "no error, but \(try read(value, at: path))"
        } catch {
            return (error as? Status)?.message ?? "\(error)"
        }
    }

    // MARK: In

    @Test func scalars() throws {
        let cases: [(Any?, Scalar)] = [
            ("x", "x"), ("" as NSString, ""), (NSString("ä"), "ä"), (true, true), (false as NSNumber, false), (1, 1),
            (Int8(-1), -1), (UInt8(255), 255), (Int64.min, .integer(.min)), (UInt64.max, .double(0x1p64)),
            (UInt64(1) << 63, .double(0x1p63)), (1.5, 1.5), (Float(0.5), 0.5), (-0.0, 0), (15.0, .integer(15)),
            (0x1p53, .double(0x1p53)), (-0x1p52, .integer(-1 << 52)),
            (NSNumber(value: 1), 1), (NSNumber(value: Int8(1)), 1), (NSNumber(value: 1.0), .integer(1)),
            (CGFloat(2.5), 2.5), (Decimal(string: "1.25")!, 1.25), (Optional(Optional(3)) as Any, 3),
        ]
        for (value, expected) in cases {
            #expect(try read(value).value == expected, "\(String(describing: value))")
        }
    }

    @Test func nothing() throws {
        for value in [
            nil, NSNull(), [Any](), [String: Any](), ["a": NSNull()], [nil, nil] as [Any?], Int?.none as Any,
        ] {
            #expect(try read(value).isEmpty, "\(String(describing: value))")
        }
    }

    @Test func trees() throws {
        let expected = tree(#"{"a":{"b":[1,null,"x"],"c":true},"d":1.5}"#)
        #expect(
            try read(["a": ["b": [1, nil, "x"] as [Any?], "c": true, "e": NSNull()] as [String: Any], "d": 1.5])
                == expected)
        let foundation: NSDictionary = [
            "a": ["b": [1, NSNull(), "x"] as NSArray, "c": true] as NSDictionary, "d": 1.5,
        ]
        #expect(try read(foundation) == expected)
        #expect(try read(["b": [1, 2]]) == tree(#"{"b":{"0":1,"1":2}}"#))
        #expect(try read(["x": 1] as [AnyHashable: Any]) == tree(#"{"x":1}"#))
    }

    @Test func canonicallyEqualKeysStayApart() throws {
        let map = ["a\u{308}": 1, "b": 2]
        #expect(try read(map).child("a\u{308}").value == 1)
        #expect(try read(map).child("\u{e4}").isEmpty)
    }

    @Test func prioritiesAndServerValues() throws {
        #expect(try read([".value": 1, ".priority": "p"] as [String: Any]) == Node(1, priority: "p"))
        #expect(try read([".value": NSNull(), ".priority": "p"] as [String: Any]).isEmpty)
        #expect(
            try read(["a": 1, ".priority": 2.5] as [String: Any]) == tree(#"{"a":1,".priority":2.5}"#))
        #expect(try read(ServerValue.timestamp()) == Node(.deferred(.timestamp)))
        #expect(try read(ServerValue.increment(3)) == Node(.deferred(.increment(3))))
        #expect(try read(ServerValue.increment(0.5)) == Node(.deferred(.incrementDouble(0.5))))
        #expect(
            try read([".value": ServerValue.timestamp(), ".priority": ServerValue.timestamp()] as [String: Any])
                == Node(.deferred(.timestamp), priority: .deferred(.timestamp)))
        let reader = ValueReader(call: "setValue")
        #expect(try reader.node("x", priority: 1, at: "a") == Node("x", priority: 1))
        #expect(try reader.node([".value": 1, ".priority": 2], priority: nil, at: "a") == Node(1))
        #expect(try reader.priority(NSNull(), at: "a") == nil)
        #expect(throws: Status.self) { try reader.priority(true, at: "a") }
        #expect(throws: Status.self) { try reader.priority([1], at: "a") }
    }

    @Test func refusals() {
        #expect(message(Double.nan) == "setValue got nan, which can't be stored, at /a.")
        #expect(message(["x": -Double.infinity]).contains("at /a/x"))
        #expect(message(Date()).contains("got a Date, which can't be stored"))
        #expect(message(["x": Data()]).contains("at /a/x."))
        #expect(message([1: 2]).contains("a key that is not a string, 1,"))
        for key in ["", "a.b", "$", "#", "[", "]", "a/b", "a\u{1}", "\u{7f}", String(repeating: "k", count: 769)] {
            #expect(message([key: 1]).contains("A key has 1 to 768 bytes"), "\(key)")
        }
        #expect(message([".value": 1, "a": 2]).contains(".value and other keys"))
        #expect(message([".value": [1]]).contains(".value that is an array"))
        #expect(message([".sv": "timestamp", "a": 1]).contains(".sv and other keys"))
        #expect(message([".sv": "now"]).contains("a server value that doesn't exist"))
        #expect(message([".sv": ["increment": "1"]]).contains("a server value that doesn't exist"))
        #expect(message(["a": 1, ".priority": true] as [String: Any]).contains("a priority that is neither"))
        #expect(message(String(repeating: "x", count: 10 << 20 + 1)).contains("a string of more than"))
    }

    @Test func depth() throws {
        func nested(_ levels: Int) -> Any { (0..<levels).reduce(1 as Any) { value, _ in ["k": value] } }
        #expect(try read(nested(31)).node(at: TreePath(keys: Array(repeating: "k", count: 31))).value == 1)
        #expect(message(nested(32)).contains("more than 32 parts"))
        #expect(message(nested(300)).contains("more than 32 parts"))
        #expect(message(nested(1), at: TreePath(keys: Array(repeating: "k", count: 32))).contains("32 parts"))
        let long = TreePath(keys: [TreeKey(String(repeating: "k", count: 700))])
        #expect(message(["x": 1], at: long).hasPrefix("no error"))
        #expect(message([String(repeating: "x", count: 80): 1], at: long).contains("more than 768 bytes"))
    }

    @Test func updates() throws {
        let reader = ValueReader(call: "updateChildValues")
        let changes = try reader.updates(["b/c": 1, "a": NSNull(), "d/.priority": 2, ".priority": "p"], at: "x")
        #expect(
            Set(changes.map(\.path)) == ["x/b/c", "x/a", "x/d/.priority", "x/.priority"])
        #expect(changes.first { $0.path == "x/b/c" }?.node == Node(1))
        #expect(changes.first { $0.path == "x/a" }?.node.isEmpty == true)
        #expect(changes.first { $0.path == "x/d/.priority" }?.node == Node(2))
        let refused: [[AnyHashable: Any]] = [
            ["a": 1, "a/b": 2], ["a": 1, "a/.priority": 2], ["": 1], [1: 2], ["a.b": 1], ["a/.value": 1], ["a": Date()],
            ["a/.priority": true], ["a/.priority/b": 1], ["/": 1],
        ]
        for values in refused {
            #expect(throws: Status.self, "\(values)") { try reader.updates(values, at: "x") }
        }
        #expect(try reader.updates(["a": 1, "a-b": 2, "ab": 3], at: "x").count == 3)
    }

    // MARK: Out

    @Test func casts() throws {
        let node = try TreeJSON.node(
            Array(
                #"{"int":1,"big":9007199254740993,"double":1.5,"whole":{".value":2,".priority":1},"yes":true,"s":"x"}"#
                    .utf8)
        )
        let value = try #require(ValueWriter.plain(node) as? [String: Any])
        #expect(value["int"] as? Int == 1)
        #expect(value["int"] as? Double == 1)
        #expect(value["int"] as? Int64 == 1)
        #expect(value["int"] as? NSNumber == 1)
        #expect(value["big"] as? Int64 == 9_007_199_254_740_993)
        #expect(value["double"] as? Double == 1.5)
        #expect(value["whole"] as? Int == 2)
        #expect(value["yes"] as? Bool == true)
        #expect((value["yes"] as? NSNumber)?.holdsBoolean == true)
        #expect((value["int"] as? NSNumber)?.holdsBoolean == false)
        #expect(value["s"] as? String == "x")
        let numbers = ValueWriter.plain(try TreeJSON.node(Array(#"{"a":1,"b":2}"#.utf8)))
        #expect(numbers as? [String: Int] == ["a": 1, "b": 2])
        #expect(numbers as? [String: Double] == ["a": 1, "b": 2])
        #expect((numbers as? NSDictionary)?["a"] as? Int == 1)
        #expect(ValueWriter.plain(.empty) is NSNull)
    }

    /// When children become an array.
    @Test func arrays() throws {
        func plain(_ json: String) throws -> Any { ValueWriter.plain(try TreeJSON.node(Array(json.utf8))) }
        func strings(_ value: Any) -> [String]? { (value as? [Any])?.map { $0 is NSNull ? "-" : "\($0)" } }
        #expect(strings(try plain(#"{"0":"a","1":"b","2":"c"}"#)) == ["a", "b", "c"])
        #expect(strings(try plain(#"{"0":"a","2":"c"}"#)) == ["a", "-", "c"])
        #expect(strings(try plain(#"{"1":"x"}"#)) == ["-", "x"])
        #expect(strings(try plain(#"{"1":"x","3":"y"}"#)) == ["-", "x", "-", "y"])
        for object in [#"{"2":"x"}"#, #"{"01":1,"1":2}"#, #"{"-1":1,"0":2}"#, #"{"0":1,"a":2}"#] {
            #expect(try plain(object) is [String: Any], "\(object)")
        }
        #expect(strings(try plain(#"{"0":{".value":"a",".priority":1},".priority":2}"#)) == ["a"])
    }

    @Test func export() throws {
        let node = try TreeJSON.node(Array(#"{"0":{".value":1,".priority":"p"},"1":true,".priority":3}"#.utf8))
        let expected: NSDictionary = [
            "0": [".value": 1, ".priority": "p"] as [String: Any], "1": true, ".priority": 3,
        ]
        #expect(ValueWriter.export(node) as? NSDictionary == expected)
        #expect(ValueWriter.export(.empty) is NSNull)
        #expect(try read(ValueWriter.export(node)) == node)
    }
}
