package import Foundation

extension NSNumber {
    /// There are two objects for Booleans. Their type code `c` alone is also that of some small integers.
    package var holdsBoolean: Bool {
        guard objCType.pointee == CChar(UInt8(ascii: "c")) else { return false }
        return self === NSNumber(value: true) || self === NSNumber(value: false)
    }

    package var holdsFloatingPoint: Bool {
        let type = UInt8(bitPattern: objCType.pointee)
        return type == UInt8(ascii: "d") || type == UInt8(ascii: "f")
    }

    /// Only values above `Int64.max` have this type code.
    package var holdsUnsigned64: Bool { objCType.pointee == CChar(UInt8(ascii: "Q")) }
}
