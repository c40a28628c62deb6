// HearthApp: what the clients of both products share: `FirebaseApp` and its options, the signed-in user, the coders.
//
// `Auth` and other `AuthTokenProvider`s give the tokens; an `AuthShare` is one database's part of such a provider. The
// products export this module, so that a program imports a product alone.
