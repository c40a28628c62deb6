import HearthHost
import HearthModel

/// The parameters in the address of a polling client's request.
struct LongPollParameters {
    var begins = false
    var isFrame = false
    var isGoodbye = false
    var session: String?
    var password: String?
    /// The suffix of the names of the functions that the answer calls.
    var callback: String?
    var segments: [LongPollSegment] = []

    /// - Throws: INVALID_ARGUMENT when it cannot be read.
    init(_ query: String?) throws(Status) {
        guard let parameters = URLCoding.parameters(query) else {
            throw .invalidArgument("The parameters of the address can't be decoded.")
        }
        var totals: [String: Int] = [:]
        var numbers: [String: Int] = [:]
        var order: [(index: String, string: [UInt8])] = []
        for (name, value) in parameters {
            switch name {
            case "start": begins = value == "t"
            case "dframe": isFrame = value == "t"
            case "disconn": isGoodbye = value == "t"
            case "id": session = value
            case "pw": password = value
            case "cb":
                // It becomes part of a script.
                guard value.utf8.count <= 20, value.utf8.allSatisfy({ $0 >= 0x30 && $0 <= 0x39 }) else {
                    throw .invalidArgument("cb must be a number")
                }
                callback = value
            default:
                if let index = Self.index(name, behind: "seg") {
                    numbers[index] = try Self.number(value)
                } else if let index = Self.index(name, behind: "ts") {
                    totals[index] = try Self.number(value)
                } else if let index = Self.index(name, behind: "d") {
                    order.append((index, Array(value.utf8)))
                }
            }
        }
        for (index, string) in order {
            guard let number = numbers[index], let total = totals[index] else {
                throw .invalidArgument("d\(index) needs seg\(index) and ts\(index)")
            }
            segments.append(LongPollSegment(number: number, total: total, string: string))
        }
    }

    private static func index(_ name: String, behind prefix: String) -> String? {
        guard name.hasPrefix(prefix) else { return nil }
        let index = name.dropFirst(prefix.count)
        let isNumber = !index.isEmpty && index.utf8.count <= 4 && index.utf8.allSatisfy { $0 >= 0x30 && $0 <= 0x39 }
        return isNumber ? String(index) : nil
    }

    private static func number(_ string: String) throws(Status) -> Int {
        guard string.utf8.count <= 15, let number = Int(string), number >= 0 else {
            throw .invalidArgument("\"\(string)\" is not a number of pieces")
        }
        return number
    }
}
