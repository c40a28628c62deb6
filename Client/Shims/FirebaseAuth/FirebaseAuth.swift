// FirebaseAuth: the name that code written for Apple platforms imports for `Auth` and `User`.
//
// `Auth` takes tokens that something else made; it has no passwords: see docs/reference/client-api.md.

@_exported import FirebaseCore
