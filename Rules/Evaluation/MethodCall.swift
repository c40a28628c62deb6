import HearthModel

/// The methods of all types, by name: the receiver determines their meaning.
enum Method: String, Sendable, CaseIterable {
    case size, lower, upper, trim, matches, replace, split, toUtf8, toBase64, toHexString
    case hasAll, hasAny, hasOnly, concat, join, removeAll, toSet, difference, intersection, union
    case keys, values, get, diff, addedKeys, removedKeys, changedKeys, affectedKeys, unchangedKeys
    case year, month, day, hours, minutes, seconds, nanos, dayOfWeek, dayOfYear, toMillis, date, time
    case latitude, longitude, distance, bind

    /// The number of parameters, which is the same for all receivers.
    var parameterCount: Int {
        switch self {
        case .get, .replace: 2
        case .matches, .split, .hasAll, .hasAny, .hasOnly, .concat, .join, .removeAll, .difference, .intersection,
            .union, .diff, .distance, .bind:
            1
        default: 0
        }
    }
}

/// A call of a method with values that are not errors.
struct MethodCall {
    let method: Method
    let receiver: RuleValue
    let first: RuleValue
    let second: RuleValue
    /// The compiled pattern of a literal argument.
    let pattern: RegularExpression?
    let evaluation: Evaluation

    /// Nil when the receiver has no such method.
    func result() -> RuleValue? {
        if evaluation.isOfPartialData, isUnprovable { return .failure(.unprovable) }
        return switch receiver {
        case .string(let string): self.string(string)
        case .list(let list): self.list(list)
        case .map(let map): self.map(map)
        case .set(let set): self.set(set)
        case .timestamp(let time): timestamp(time)
        case .duration(let time): duration(time)
        case .bytes(let bytes): self.bytes(bytes)
        case .latlng(let point): latlng(point.point)
        case .path(let path): method == .bind ? bind(path) : nil
        case .mapDiff(let diff): mapDiff(diff)
        case .constraint(let constraint): method == .hasAny ? hasAny(constraint) : nil
        default: nil
        }
    }

    /// Whether the result would depend on data that a query does not filter.
    private var isUnprovable: Bool {
        switch (receiver, method) {
        // These methods distinguish an unknown member from a missing one themselves.
        case (.map, .get), (.list, .size), (.list, .concat): false
        case (.constraint, _): first.isOpen
        default: receiver.isOpen || first.isOpen
        }
    }

    func unsupported() -> RuleValue {
        Signatures.unsupported(receiver, method, Array([first, second].prefix(method.parameterCount)))
    }

    // MARK: Strings and bytes

    private func string(_ string: String) -> RuleValue? {
        switch method {
        case .size: return .int(Int64(string.utf16.count))
        case .lower: return .string(Self.mapped(string) { (0x41...0x5A).contains($0) ? $0 + 0x20 : $0 })
        case .upper: return .string(Self.mapped(string) { (0x61...0x7A).contains($0) ? $0 - 0x20 : $0 })
        case .trim: return .string(Self.trimmed(string))
        case .toUtf8: return .bytes(Array(string.utf8))
        case .matches, .replace, .split: return search(string)
        default: return nil
        }
    }

    /// Changes ASCII letters only, as Google's emulator does.
    private static func mapped(_ string: String, _ transform: (UInt8) -> UInt8) -> String {
        String(decoding: string.utf8.map(transform), as: UTF8.self)
    }

    private static func trimmed(_ string: String) -> String {
        var bytes = Substring(string).utf8
        while let first = bytes.first, isSpace(first) { bytes = bytes.dropFirst() }
        while let last = bytes.last, isSpace(last) { bytes = bytes.dropLast() }
        return String(Substring(bytes))
    }

    private static func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || (0x09...0x0D).contains(byte) }

    private func search(_ string: String) -> RuleValue {
        guard case .string(let source) = first else { return unsupported() }
        // Replacing and splitting write every byte; matching only reads it.
        guard evaluation.work(method == .matches ? string.utf8.count / 8 : string.utf8.count) else {
            return evaluation.abort()
        }
        guard let expression = pattern ?? RegularExpression(source, isLiteral: false) else {
            return .failure(.invalidPattern(source))
        }
        switch method {
        case .matches: return .bool(expression.matches(string))
        case .split:
            guard let parts = expression.split(string) else { return evaluation.abort() }
            return evaluation.list(parts.map { .string($0) })
        default:
            guard case .string(let template) = second else { return unsupported() }
            switch expression.replacing(in: string, with: template) {
            case .string(let result): return evaluation.string(result)
            case .isTooLong: return evaluation.abort()
            case .invalidTemplate: return .failure(.other("Invalid replacement: \(template)."))
            }
        }
    }

    private func bytes(_ bytes: [UInt8]) -> RuleValue? {
        switch method {
        case .size: .int(Int64(bytes.count))
        case .toBase64: evaluation.string(Self.base64(bytes))
        case .toHexString: evaluation.string(Hexadecimal.string(bytes))
        default: nil
        }
    }

    private static let base64Digits = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)

    /// The alphabet for URLs, with padding. Source: RFC 4648, section 5.
    private static func base64(_ bytes: [UInt8]) -> String {
        var string: [UInt8] = []
        for start in stride(from: 0, to: bytes.count, by: 3) {
            let chunk = bytes[start..<min(start + 3, bytes.count)]
            let bits = chunk.reduce(0) { $0 << 8 | Int($1) } << (8 * (3 - chunk.count))
            for digit in 0..<4 {
                string.append(digit <= chunk.count ? base64Digits[bits >> (18 - 6 * digit) & 63] : UInt8(ascii: "="))
            }
        }
        return String(decoding: string, as: UTF8.self)
    }

    // MARK: Geo points and paths

    private func latlng(_ point: GeoPoint) -> RuleValue? {
        switch method {
        case .latitude: return .float(point.latitude)
        case .longitude: return .float(point.longitude)
        case .distance:
            guard case .latlng(let other) = first else { return unsupported() }
            return .float(Distance.meters(point, other.point))
        default: return nil
        }
    }

    private func bind(_ path: RulePath) -> RuleValue {
        guard case .map(let map) = first else { return unsupported() }
        let entries = evaluation.entries(of: map)
        let names = path.segments.compactMap { segment in
            if case .open(let name) = segment { name } else { nil }
        }
        let unknown = entries.map(\.name).filter { !names.contains($0) }
        if !unknown.isEmpty {
            return .failure(
                .other("Variable(s) \(unknown.joined(separator: ", ")) do not exist in the path template."))
        }
        var bound = path.bound
        var segments: [RulePath.Segment] = []
        for segment in path.segments {
            guard case .open(let name) = segment else {
                segments.append(segment)
                continue
            }
            guard let value = entries.first(where: { UTF8Order.equal($0.name, name) })?.value else {
                return Conversion.unbound(name)
            }
            guard let string = Conversion.string(of: value) else { return Signatures.unsupported("string", [value]) }
            if string.isEmpty { return .failure(.other("Cannot bind empty value to path template variable \(name).")) }
            segments.append(.string(string))
            bound.append(RulePath.Binding(name: name, string: string))
        }
        return .path(RulePath(segments, bound: bound))
    }

    // MARK: Constraints

    /// Whether every list that a query finds contains one of the elements.
    private func hasAny(_ constraint: RuleConstraint) -> RuleValue {
        guard case .list(let list) = first else { return unsupported() }
        if constraint.contained.isEmpty { return .failure(.unprovable) }
        if constraint.contained.contains(where: { Operators.list(list, contains: $0, evaluation) }) {
            return .bool(true)
        }
        // A known element of a list is no information about its other elements.
        return evaluation.isOfPartialData ? .failure(.unprovable) : .bool(false)
    }
}
