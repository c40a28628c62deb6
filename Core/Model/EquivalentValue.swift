/// A value as a key that equals all equivalent ones.
struct EquivalentValue: Hashable {
    private let value: Value

    init(_ value: Value) { self.value = value }

    static func == (lhs: EquivalentValue, rhs: EquivalentValue) -> Bool { ValueOrder.equivalent(lhs.value, rhs.value) }

    func hash(into hasher: inout Hasher) { Self.hash(value, into: &hasher) }

    private static func hash(_ value: Value, into hasher: inout Hasher) {
        hasher.combine(ValueOrder.typeClass(of: value).rawValue)
        switch value {
        case .null: break
        case .boolean(let flag): hasher.combine(flag)
        case .integer(let number): hasher.combine(number)
        case .double(let number): hash(number, into: &hasher)
        case .timestamp(let time): hasher.combine(time)
        case .string(let string): hash(string, into: &hasher)
        case .bytes(let bytes): hasher.combine(bytes)
        case .reference(let name):
            // Segments that are numbers are compared as numbers.
            for segment in name.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false) {
                let segment = String(Substring(segment))
                if let number = ResourcePath.numericID(segment) {
                    hasher.combine(number)
                } else {
                    hash(segment, into: &hasher)
                }
            }
        case .geoPoint(let point):
            hash(point.latitude, into: &hasher)
            hash(point.longitude, into: &hasher)
        case .array(let elements):
            hasher.combine(elements.count)
            for element in elements { hash(element, into: &hasher) }
        case .vector(let elements):
            hasher.combine(elements.count)
            for element in elements { hash(element, into: &hasher) }
        case .map(let map):
            hasher.combine(map.count)
            for field in map.fields {
                hash(field.name, into: &hasher)
                hash(field.value, into: &hasher)
            }
        }
    }

    /// Hashes a whole number within int64 as the integer that it equals.
    private static func hash(_ number: Double, into hasher: inout Hasher) {
        if let integer = Int64(exactly: number) {
            hasher.combine(integer)
        } else {
            hasher.combine(number.isNaN ? Double.nan.bitPattern : number.bitPattern)
        }
    }

    private static func hash(_ string: String, into hasher: inout Hasher) {
        var string = string
        string.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
        hasher.combine(UInt8(0xFF))
    }
}
