/// Makes JSON from the relaxed form that people write: removes comments, and encodes multi-line strings and trailing
/// commas as JSON requires. The input is known to be a valid rules source.
///
/// It works on bytes and not on the values of `RulesJSONParser`, so that the spacing of the source remains.
package enum StrictJSON {
    package static func string(_ string: [UInt8]) -> [UInt8] {
        var output: [UInt8] = []
        output.reserveCapacity(string.count)
        var index = 0
        while index < string.count {
            let byte = string[index]
            let next = index + 1 < string.count ? string[index + 1] : 0
            switch byte {
            case UInt8(ascii: "\""): copyString(string, &index, &output)
            case UInt8(ascii: "/") where next == UInt8(ascii: "/"):
                while index < string.count, string[index] != UInt8(ascii: "\n") { index += 1 }
            case UInt8(ascii: "/") where next == UInt8(ascii: "*"):
                index += 2
                while index + 1 < string.count,
                    !(string[index] == UInt8(ascii: "*") && string[index + 1] == UInt8(ascii: "/"))
                {
                    index += 1
                }
                index += 2
            case UInt8(ascii: "}"), UInt8(ascii: "]"):
                if let last = output.lastIndex(where: { !isSpace($0) }), output[last] == UInt8(ascii: ",") {
                    output.remove(at: last)
                }
                output.append(byte)
                index += 1
            default:
                output.append(byte)
                index += 1
            }
        }
        return output
    }

    private static func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || (0x09...0x0D).contains(byte) }

    private static func copyString(_ string: [UInt8], _ index: inout Int, _ output: inout [UInt8]) {
        output.append(string[index])
        index += 1
        while index < string.count {
            let byte = string[index]
            index += 1
            switch byte {
            case UInt8(ascii: "\""):
                output.append(byte)
                return
            case UInt8(ascii: "\\"):
                output.append(byte)
                if index < string.count { output.append(string[index]) }
                index += 1
            case UInt8(ascii: "\n"): output += Array("\\n".utf8)
            case UInt8(ascii: "\r"): output += Array("\\r".utf8)
            case UInt8(ascii: "\t"): output += Array("\\t".utf8)
            default: output.append(byte)
            }
        }
    }
}
