// FirebaseDatabaseSwift: the name that older code imports for the Realtime Database's `Codable`, which `FirebaseDatabase`
// has today.

@_exported import FirebaseDatabase
