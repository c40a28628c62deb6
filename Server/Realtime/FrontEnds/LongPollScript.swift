import HearthTree

/// The answers of long polling: scripts that call functions of the page which loads them.
///
/// They run in a frame without an address that the page has created; its functions are the parent's. A page that loads
/// them directly is its own parent.
struct LongPollScript {
    private(set) var string: [UInt8] = []
    private let callback: String

    /// - Parameter callback: the suffix of the functions' names; digits.
    init(callback: String) { self.callback = callback }

    /// The session exists.
    mutating func start(session: String, password: String) {
        call("pLPCommand") { string in
            string += Array(#""start","\#(session)","\#(password)""#.utf8)
        }
    }

    /// - Parameters:
    ///   - number: of the answer; a client uses answers in the order of their numbers, without a gap.
    ///   - messages: JSON objects.
    mutating func answer(_ number: Int, _ messages: some Sequence<[UInt8]>) {
        var list = [UInt8(ascii: "[")]
        for message in messages {
            if list.count > 1 { list.append(UInt8(ascii: ",")) }
            list += message
        }
        list.append(UInt8(ascii: "]"))
        call("pRTLPCB") { string in
            string += Array("\(number),".utf8)
            guard RealtimeDataWriter.namesPrototype(list) else {
                string += list
                return
            }
            // JSON is a script except for this name, which in a script sets the object's prototype.
            string += Array("JSON.parse(".utf8)
            TreeJSON.appendString(String(decoding: list, as: UTF8.self), to: &string)
            string.append(UInt8(ascii: ")"))
        }
    }

    /// The parts around a message that is in a file, as a separate answer.
    func parts(_ number: Int, _ body: LargeJSON) -> (before: [UInt8], after: [UInt8], isQuoted: Bool) {
        var empty = LongPollScript(callback: callback)
        let mark = UInt8(ascii: "[")
        empty.call("pRTLPCB") { string in
            string += Array("\(number),".utf8)
            string += body.namesPrototype ? Array("JSON.parse(\"[]\")".utf8) : Array("[]".utf8)
        }
        let position = (empty.string.lastIndex(of: mark) ?? 0) + 1
        return (string + empty.string[..<position], Array(empty.string[position...]), body.namesPrototype)
    }

    /// The session ends after the answer with this number.
    mutating func close(after number: Int) {
        call("pLPCommand") { string in string += Array(#""close",\#(number)"#.utf8) }
    }

    mutating func call(_ function: String, _ arguments: (inout [UInt8]) -> Void) {
        let name = #"parent["\#(function)\#(callback)"]"#
        string += Array("\(name)&&\(name)(".utf8)
        arguments(&string)
        string += Array(");\n".utf8)
    }

    /// A page whose end notifies the server: it is loaded when a session begins, in a frame that is closed with the
    /// session or its page.
    static func frame(session: String, password: String) -> [UInt8] {
        let address = "/.lp?disconn=t&id=\(session)&pw=\(password)"
        return Array(
            """
            <!DOCTYPE html><html><body><script>
            addEventListener("pagehide",function(){navigator.sendBeacon("\(address)")});
            </script></body></html>

            """.utf8)
    }
}
