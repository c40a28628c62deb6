// HearthFirestore: the public API of FirebaseFirestore on Linux.
