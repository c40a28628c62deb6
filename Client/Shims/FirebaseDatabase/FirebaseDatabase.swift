// FirebaseDatabase: the name that code written for Apple platforms imports for the Realtime Database.

@_exported import HearthDatabase
