import HearthHost
import HearthModel
import HearthTree

/// The identity that an administrator wants rules to see: `auth_variable_override`.
package enum RealtimeOverride: Sendable {
    case nobody
    case auth(JSONValue)

    /// - Parameter string: JSON: an object, or `null` for nobody.
    /// - Throws: INVALID_ARGUMENT for anything else.
    init(parsing string: String) throws(Status) {
        let value: JSONValue
        do throws(TreeDataError) {
            value = try TreeJSON.value(Array(string.utf8))
        } catch {
            throw .invalidArgument("auth_variable_override must be a JSON object or null.")
        }
        try self.init(value)
    }

    init(_ value: JSONValue) throws(Status) {
        switch value {
        case .null: self = .nobody
        case .object: self = .auth(value)
        default: throw .invalidArgument("auth_variable_override must be a JSON object or null.")
        }
    }

    /// - Parameter scope: of the administrator.
    func identity(by scope: AdministratorScope) -> RealtimeIdentity {
        switch self {
        case .nobody: .impersonation(auth: nil, by: scope)
        case .auth(let auth): .impersonation(auth: auth, by: scope)
        }
    }
}
