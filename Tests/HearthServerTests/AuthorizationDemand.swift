import HearthFirestoreServer
import HearthHost
import HearthModel

/// All kinds of callers.
enum Asker: String, CaseIterable {
    case nobody, user, foreignUser, administrator, readOnly, otherProject, ownProject, expired, garbage
}

/// The access that a method requires.
enum Demand {
    /// Permission to read data, which no rules grant here.
    case readsData
    case writesData
    case administers(AdministratorEffect)
    /// For administrators of the whole server: no credential of one project is enough.
    case administersServer
    case changesServer
    /// For everybody, whatever their credentials.
    case nothing

    /// The result of a request on a server that is not for local development and has no rules.
    func outcome(_ asker: Asker) -> Outcome {
        if case .nothing = self { return .passes }
        switch asker {
        case .expired, .garbage: return .unauthenticated
        case .nobody, .user, .otherProject: return .denied
        // A valid token of another project.
        case .foreignUser:
            switch self {
            // Of no project; a request that also names one may be refused for that.
            case .administersServer, .changesServer: return .denied
            default: return .unauthenticated
            }
        case .administrator: return .passes
        case .ownProject:
            switch self {
            case .administersServer, .changesServer: return .denied
            default: return .passes
            }
        case .readOnly:
            switch self {
            case .writesData, .administers(.writes), .changesServer: return .denied
            default: return .passes
            }
        }
    }
}

enum Outcome: Equatable {
    /// The method itself responds, with any result.
    case passes
    case denied
    case unauthenticated

    init(_ status: Status) {
        switch status.code {
        case .permissionDenied: self = .denied
        case .unauthenticated: self = .unauthenticated
        default: self = .passes
        }
    }

    init(http: Int) {
        switch http {
        case 403: self = .denied
        case 401: self = .unauthenticated
        default: self = .passes
        }
    }
}
