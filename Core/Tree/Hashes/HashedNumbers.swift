import Glibc

/// How the numbers in a hashed string are written.
package enum HashedNumbers: Sendable {
    /// By their bits: all SDKs but one.
    case exact
    /// As Google's SDK for the web computes the bits.
    case web

    /// The 16 digits of a number, as an integer.
    func bits(_ value: Double) -> UInt64 {
        switch self {
        case .exact: value.bitPattern
        case .web: Self.webBits(value)
        }
    }

    /// Whether the two are different.
    static func differ(_ value: Scalar?) -> Bool {
        switch value {
        case .integer(let value): differ(Double(value))
        case .double(let value): differ(value)
        case .bool, .string, .deferred, nil: false
        }
    }

    private static func differ(_ value: Double) -> Bool { webBits(value) != value.bitPattern }

    // MARK: The SDK for the web

    /// Only numbers that are this close to a power of two are computed wrongly, in steps of their precision, 2⁻⁵³ of the
    /// number. The logarithm of the largest numbers is some 710, which is rounded by up to 2⁻⁴⁴, as much as 512 steps; the
    /// rounding of the quotient is 355 more, that of the constant 212.
    private static let nearMax: UInt64 = 4096
    private static let fractionBits = 52
    private static let bias = 1023
    private static let logarithmOf2 = 0.6931471805599453
    /// Below this exponent the factor that the SDK uses is infinite.
    private static let exponentMin = fractionBits - bias

    /// Source: `doubleToIEEE754String`, packages/database/src/core/util/util.ts of firebase-js-sdk. The exponent is there the
    /// floor of log(v) / log(2), whose rounding puts numbers just below a power of two above it, and some powers of two
    /// below themselves; the fraction is the low 52 bits of what remains.
    private static func webBits(_ value: Double) -> UInt64 {
        let magnitude = value.magnitude
        guard value.isFinite, magnitude.isNormal, isSuspicious(magnitude) else { return value.bitPattern }
        let power = min(Int((log(magnitude) / logarithmOf2).rounded(.down)), bias)
        let scale = scalbn(1.0, Int32(fractionBits - power))
        let rest = magnitude * scale - scalbn(1.0, Int32(fractionBits))
        // An infinite rest has no bits.
        let fraction = rest.isFinite ? UInt64(bitPattern: Int64(roundedHalfUp(rest))) : 0
        let sign: UInt64 = value.sign == .minus ? 1 << 63 : 0
        return sign | UInt64(power + bias) << fractionBits | fraction & (1 << fractionBits - 1)
    }

    private static func isSuspicious(_ magnitude: Double) -> Bool {
        let fraction = magnitude.significandBitPattern
        return fraction <= nearMax || fraction >= 1 << fractionBits - nearMax || magnitude.exponent < exponentMin
    }

    private static func roundedHalfUp(_ value: Double) -> Double {
        let floor = value.rounded(.down)
        return value - floor >= 0.5 ? floor + 1 : floor
    }
}
