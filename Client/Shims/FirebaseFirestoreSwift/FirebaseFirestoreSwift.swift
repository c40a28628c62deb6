// FirebaseFirestoreSwift: the name that older code imports for Firestore's `Codable`, which `FirebaseFirestore` has today.

@_exported import FirebaseFirestore
