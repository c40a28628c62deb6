import HearthModel

/// The metadata of a request.
package struct RequestHeaders: Sendable {
    /// `Bearer …` without the word; nil when nobody is signed in.
    package var authorizationToken: String?
    package var appCheckToken: String?
    /// `projects/P/databases/D`: sent as `google-cloud-resource-prefix` and in `x-goog-request-params`.
    package var database: DatabaseName

    package init(database: DatabaseName, authorizationToken: String? = nil, appCheckToken: String? = nil) {
        self.database = database
        self.authorizationToken = authorizationToken
        self.appCheckToken = appCheckToken
    }
}
