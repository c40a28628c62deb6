import HearthModel

/// The resource of an administrator's request.
package enum AdministeredResource: Sendable {
    case database(DatabaseName)
    case project(String)
    /// The server as a whole: no credential of a single project administers it.
    case server

    var project: String? {
        switch self {
        case .database(let database): database.project
        case .project(let project): project
        case .server: nil
        }
    }
}
