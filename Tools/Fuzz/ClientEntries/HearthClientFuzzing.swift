// HearthClientFuzzing: fuzz entries of the client libraries. They are a module of their own because server and client never import each
// other. An entry takes any bytes, as a hostile server would send them, and traps when an invariant is violated.
