// HearthHost: what the servers of both products share. Neither product imports the other; they meet here.
//
// - `Databases/`: `Registry` opens databases at their first use, and closes them.
// - `Calls/` and `HTTP/`: `ServiceCall` and `StreamCall` are requests whatever carries them; `HTTPExtension` is a part
//   of a server's HTTP.
// - `Identity/`: who a client is: `Authenticator`, tokens and their keys.
// - `Sessions/` and `Work/`: sessions and streams that are open, and the memory that requests may use.
// - `Health/`, `Log/`, `Metrics/`: what an operator sees.
// - `Project/`: the files of a Firebase project: indexes, certificates, configuration.
