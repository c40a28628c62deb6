import HearthHost
import HearthDocuments
import HearthToolSupport
import HearthModel
import HearthServer

/// The settings of `hearth serve`: on the command line, in the environment and in `hearth.json`.
enum ServeOptions {
    static let options: [Option] = [
        Option("host", "ADDRESS", "Address or name to listen on; * for every interface. Default 127.0.0.1."),
        Option("port", "PORT", "Port; 0 takes a free one, which the start-up message shows. Default 8080."),
        Option("host-port", "ADDRESS:PORT", "Both at once, as Google's emulator takes it."),
        Option("data", "FOLDER", "Folder of the data, made if absent. Default hearth-data."),
        Option("memory", nil, "Keep everything in memory; it is lost at the end."),
        Option(
            "import", "FOLDER",
            "An export of `firebase emulators:export`, `hearth export` or Firestore, which is imported before the first "
                + "request. Triggers get no events of it."),
        Option("seed-from-export", "FILE", "The same, as Google's emulator takes it: a *.overall_export_metadata."),
        Option(
            "export-on-exit", "[FOLDER]",
            "Export after the last request, in the form of `firebase emulators:export`; without FOLDER to that of --import."
        ),
        Option(
            "project", "ID", aliases: ["project-id"],
            "Project of the clients under rules. Default: that of .firebaserc, else demo-hearth. Administrators, and everybody in "
                + "local development, may use any."
        ),
        Option("indexes", "FILE", "Index definitions of the default database, instead of those firebase.json names."),
        Option(
            "database-port", "PORT",
            "A second port, for clients of the Realtime Database that want one of their own; 0 takes a free one, none leaves "
                + "it out. Both ports serve everything. Default: emulators.database.port of firebase.json, if it is there."
        ),
        Option(
            "database-rules", "FILE",
            "Rules of the Realtime Database, for every namespace, instead of those firebase.json names."),
        Option("rules", "FILE", "Security rules of the default database, instead of those firebase.json names."),
        Option("tls-cert", "FILE", "Certificate chain (PEM). With it the port speaks TLS only."),
        Option("tls-key", "FILE", "Private key of the certificate (PEM)."),
        Option("log-format", "text|json", "Form of the log on standard error. Default text."),
        Option("log-level", "debug|info|warning|error", "What is logged. Default info."),
        Option("log-requests", nil, "Log every request."),
        Option("require-indexes", nil, "Refuse queries that would need a composite index in production."),
        Option(
            "emulator", nil,
            "Serve as Google's emulator does: believe \"owner\" and unsigned tokens, be open where there are no rules, and let "
                + "anybody clear a database, replace the rules and shut down over HTTP. Default: on loopback addresses only; --no-emulator there, too."
        ),
        Option(
            "allow-clock-skew", nil,
            "Open databases whose newest commit lies an hour or more ahead of the clock; else they are refused."),
        Option(
            "allow-origin", "ORIGIN", isRepeated: true,
            "Origin of web pages (https://app.example, or null for files) that may use a server for local development, besides "
                + "those at loopback addresses. May be repeated; a list with commas in the environment."
        ),
        Option(
            "allow-host", "NAME", isRepeated: true,
            "Name by which a server for local development is reached, besides localhost, IP addresses and names without a "
                + "dot. May be repeated; a list with commas in the environment."
        ),
        Option(
            "rules-list-emulation", nil,
            "Take the fields that a query filters for all that its documents have when rules of lists are asked, as Google's "
                + "emulator does: rules that test for absence then allow lists of what get refuses. Default: in local development "
                + "only."
        ),
        Option(
            "shared-sign-in", nil,
            "Let users of one project be users of all others on this server; otherwise a token is for one project."),
        Option(
            "functions-emulator", "HOST:PORT",
            "The functions emulator of Firebase's tools, which gets the events of functions that the tools register, in local "
                + "development only. Default: emulators.functions of firebase.json."
        ),
        Option(
            "functions-emulator-host", "HOST",
            "Its host alone, as Google's emulator of the Realtime Database takes it. Default 127.0.0.1."),
        Option("functions-emulator-port", "PORT", "Its port alone, likewise."),
        Option("location", "REGION", "The region that events of triggers name. Default us-central1."),
        Option(
            "once-collection", "ID",
            "Top-level collection of each database whose documents are deleted 8 days after their creation, for ledgers of what "
                + "was done once; empty for none. Default _once."
        ),
        Option(
            "ttl", "on|off",
            "Whether documents are deleted when they expire by a time-to-live policy; off is for tests. Default on."),
        Option(
            "export-folder", "FOLDER",
            "Folder for exports and imports of the admin API, made if absent; without it they are refused. hearth export and "
                + "hearth import need none."
        ),
        Option("loops", "N", "Event loops, each with a thread. Default: one a core."),
        Option("workers", "N", "Threads for long scans. Default 4."),
        Option(
            "checkpoint-kib", "N",
            "KiB of a database's write-ahead log from which it is copied into the database. Default 81920."),
        Option(
            "changes-retention", "DURATION",
            "For how long readers of the change feed may lag behind, such as 90s, 12h or 7d, the most. More than an hour also "
                + "keeps old versions of documents for as long. In hearth.json \"changes\": {\"retention\": \"12h\"}. Default 1h."
        ),
        Option("grace", "SECONDS", "How long requests may finish after SIGTERM. Default 5."),
        Option("config", "FILE", "Configuration to read instead of hearth.json."),
    ]

    /// Options of Google's emulator without effect, which are accepted so that its command lines work.
    static let ignored: [Option] = [
        Option("websocket-port", "PORT", ""), Option("webchannel-port", "PORT", ""),
        Option("single-project-mode", "true|false", ""), Option("single-project-mode-error", "true|false", ""),
        Option("database-mode", "MODE", ""), Option("database-edition", "EDITION", ""),
    ]

    static func help() -> String {
        """
        Usage: hearth serve [options]

        Serves Cloud Firestore over gRPC, REST and WebChannel, and the Realtime Database, on one port.

        \(OptionHelp.string(options))

        The same settings may stand in the environment (HEARTH_TLS_CERT) and in hearth.json ("tlsCert"). An option goes
        before the environment, that before hearth.json, that before firebase.json (emulators.firestore.host and .port,
        and those of emulators.database).

        Exit codes: 0 ended by a signal or on request, 64 wrong usage, 69 the address can't be had, 73 the data folder
        can't be used, the import is damaged, or the export failed, 78 a configuration file or a certificate is wrong.
        """
    }
}
