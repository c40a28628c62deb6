import HearthModel

/// Strings and numbers of JSON, and skipping unused values.
extension JSONCursor {
    /// The content of a string, from its opening quote.
    mutating func string() throws(TreeDataError) -> String {
        try take(UInt8(ascii: "\""))
        let first = index
        var union: UInt8 = 0
        while index < end {
            let byte = bytes[index]
            union |= byte
            if byte == UInt8(ascii: "\"") {
                let string = UnsafeBufferPointer(rebasing: bytes[first..<index])
                index += 1
                if union < 0x80 { return String(decoding: string, as: UTF8.self) }
                guard let string = String(validating: string, as: UTF8.self) else { throw .invalidJSON }
                return string
            }
            if byte == UInt8(ascii: "\\") { return try escapedString(from: first) }
            guard byte >= 0x20 else { throw .invalidJSON }
            index += 1
        }
        throw .invalidJSON
    }

    /// Continues at the first escape of a string that began at `first`.
    private mutating func escapedString(from first: Int) throws(TreeDataError) -> String {
        var string = Array(bytes[first..<index])
        while index < end {
            let byte = bytes[index]
            index += 1
            switch byte {
            case UInt8(ascii: "\""):
                guard let string = String(validating: string, as: UTF8.self) else { throw .invalidJSON }
                return string
            case UInt8(ascii: "\\"): try escape(to: &string)
            case 0..<0x20: throw .invalidJSON
            default: string.append(byte)
            }
        }
        throw .invalidJSON
    }

    private mutating func escape(to string: inout [UInt8]) throws(TreeDataError) {
        let kind = byte
        index += 1
        switch kind {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): string.append(kind)
        case UInt8(ascii: "b"): string.append(0x08)
        case UInt8(ascii: "f"): string.append(0x0C)
        case UInt8(ascii: "n"): string.append(0x0A)
        case UInt8(ascii: "r"): string.append(0x0D)
        case UInt8(ascii: "t"): string.append(0x09)
        case UInt8(ascii: "u"):
            var code = try hexadecimal()
            if code & 0xFC00 == 0xD800 {
                try take(UInt8(ascii: "\\"))
                try take(UInt8(ascii: "u"))
                let low = try hexadecimal()
                guard low & 0xFC00 == 0xDC00 else { throw .invalidJSON }
                code = 0x10000 + (code & 0x3FF) << 10 + low & 0x3FF
            }
            guard let scalar = Unicode.Scalar(code) else { throw .invalidJSON }
            string.append(contentsOf: UTF8.encode(scalar)!)
        default: throw .invalidJSON
        }
    }

    /// Four digits.
    private mutating func hexadecimal() throws(TreeDataError) -> UInt32 {
        var code: UInt32 = 0
        for _ in 0..<4 {
            let digit: UInt8
            switch byte {
            case UInt8(ascii: "0")...UInt8(ascii: "9"): digit = byte - UInt8(ascii: "0")
            case UInt8(ascii: "a")...UInt8(ascii: "f"): digit = byte - UInt8(ascii: "a") + 10
            case UInt8(ascii: "A")...UInt8(ascii: "F"): digit = byte - UInt8(ascii: "A") + 10
            default: throw .invalidJSON
            }
            code = code << 4 | UInt32(digit)
            index += 1
        }
        return code
    }

    /// An integer when it has neither fraction nor exponent and fits, otherwise the nearest double.
    mutating func number() throws(TreeDataError) -> Scalar {
        let first = index
        guard let integer = try takeNumber() else {
            let string = String(decoding: UnsafeBufferPointer(rebasing: bytes[first..<index]), as: UTF8.self)
            guard let value = Double(string), let number = Scalar.number(value) else { throw .invalidJSON }
            return number
        }
        return .integer(integer)
    }

    /// Skips a number.
    /// - Returns: its value if it is an integer that fits.
    private mutating func takeNumber() throws(TreeDataError) -> Int64? {
        let isNegative = byte == UInt8(ascii: "-")
        if isNegative { index += 1 }
        let whole = index
        // Below zero: the least integer has no positive counterpart.
        var value: Int64? = 0
        while byte &- UInt8(ascii: "0") < 10 {
            if let known = value {
                let (product, overflow) = known.multipliedReportingOverflow(by: 10)
                let (sum, carry) = product.subtractingReportingOverflow(Int64(byte - UInt8(ascii: "0")))
                value = overflow || carry ? nil : sum
            }
            index += 1
        }
        guard index > whole, bytes[whole] != UInt8(ascii: "0") || index == whole + 1 else { throw .invalidJSON }
        if byte == UInt8(ascii: ".") {
            value = nil
            index += 1
            try takeDigits()
        }
        if byte | 0x20 == UInt8(ascii: "e") {
            value = nil
            index += 1
            if byte == UInt8(ascii: "+") || byte == UInt8(ascii: "-") { index += 1 }
            try takeDigits()
        }
        guard let value else { return nil }
        return isNegative ? value : value == .min ? nil : -value
    }

    private mutating func takeDigits() throws(TreeDataError) {
        let first = index
        while byte &- UInt8(ascii: "0") < 10 { index += 1 }
        guard index > first else { throw .invalidJSON }
    }

    /// Skips a valid value; whether strings are UTF-8 is checked when they are read.
    mutating func skip() throws(TreeDataError) {
        var closings: [UInt8] = []
        while true {
            skipSpace()
            switch byte {
            case UInt8(ascii: "{"), UInt8(ascii: "["):
                guard closings.count < Limits.treeNestingMax else { throw .invalidJSON }
                let closing = byte + 2
                index += 1
                skipSpace()
                if byte == closing {
                    index += 1
                    break
                }
                closings.append(closing)
                if closing == UInt8(ascii: "}") { try skipName() }
                continue
            case UInt8(ascii: "\""): try skipString()
            case UInt8(ascii: "t"): try takeWord("true")
            case UInt8(ascii: "f"): try takeWord("false")
            case UInt8(ascii: "n"): try takeWord("null")
            default: _ = try takeNumber()
            }
            while let closing = closings.last {
                skipSpace()
                let found = byte
                index += 1
                if found == UInt8(ascii: ",") {
                    if closing == UInt8(ascii: "}") { try skipName() }
                    break
                }
                guard found == closing else { throw .invalidJSON }
                closings.removeLast()
            }
            if closings.isEmpty { return }
        }
    }

    private mutating func skipName() throws(TreeDataError) {
        skipSpace()
        try skipString()
        skipSpace()
        try take(UInt8(ascii: ":"))
    }

    private mutating func skipString() throws(TreeDataError) {
        try take(UInt8(ascii: "\""))
        while index < end {
            let byte = bytes[index]
            index += 1
            switch byte {
            case UInt8(ascii: "\""): return
            case UInt8(ascii: "\\"):
                var ignored: [UInt8] = []
                try escape(to: &ignored)
            case 0..<0x20: throw .invalidJSON
            default: break
            }
        }
        throw .invalidJSON
    }
}
