package import Foundation

extension NSNumber {
    /// There are two objects for booleans. Their type's letter alone, `c`, is also that of some small integers.
    package var holdsBoolean: Bool {
        guard objCType.pointee == CChar(UInt8(ascii: "c")) else { return false }
        return self === NSNumber(value: true) || self === NSNumber(value: false)
    }

    package var holdsFloatingPoint: Bool {
        let type = UInt8(bitPattern: objCType.pointee)
        return type == UInt8(ascii: "d") || type == UInt8(ascii: "f")
    }

    /// Only what is above `Int64.max` is kept so.
    package var holdsUnsigned64: Bool { objCType.pointee == CChar(UInt8(ascii: "Q")) }
}
