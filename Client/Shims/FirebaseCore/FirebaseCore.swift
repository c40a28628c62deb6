// FirebaseCore: the name that code written for Apple platforms imports for `FirebaseApp` and `FirebaseOptions`.
//
// The modules of `Client/Shims` declare nothing. Each has the name of a module of Google's library and exports the module
// of Hearth that has its API, so that such code compiles unchanged. Foundation comes along, as on Apple platforms.

@_exported import Foundation
@_exported import HearthApp
