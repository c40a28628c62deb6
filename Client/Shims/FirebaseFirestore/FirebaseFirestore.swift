// FirebaseFirestore: the name that code written for Apple platforms imports for Firestore.

@_exported import HearthFirestore
