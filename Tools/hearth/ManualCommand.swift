import HearthModel
import Glibc
import HearthHost
import HearthToolSupport

/// `hearth manual`
enum ManualCommand {
    static let command = ToolCommand(
        name: "manual", summary: "Print the manual page, for man.", options: options, help: { help },
        run: { arguments throws(ToolFailure) in try run(arguments) })

    private static let options = [
        Option("date", "YYYY-MM-DD", "The date in the page's last line. Default: today.")
    ]

    private static let help = """
        Usage: hearth manual [options]

        Prints hearth(1), which has the help of all commands, in the format of man. Packages install it; otherwise:

            hearth manual | man --local-file -

        \(OptionHelp.string(options))
        """

    private static func run(_ arguments: [String]) throws(ToolFailure) {
        let parsed = try ParsedOptions(arguments, options: options)
        let date = if let given = parsed.string("date") { given } else { try today() }
        guard isDate(date) else {
            throw .usage("--date expects YYYY-MM-DD, not \"\(date)\".")
        }
        Output.string(page(date: date))
    }

    private static func isDate(_ string: String) -> Bool {
        string.map { "0"..."9" ~= $0 ? "0" : $0 } == Array("0000-00-00")
    }

    static func page(date: String) -> String {
        var page = ManualPage(
            program: "hearth", version: HearthVersion.string, date: date,
            summary: "Cloud Firestore and the Firebase Realtime Database as one program")
        page.section("SYNOPSIS")
        page.prose(["    hearth COMMAND [options]"])
        page.section("DESCRIPTION")
        page.prose([
            "Serves both products' public protocols on one port, keeps its data in one folder, and has the tools for it: "
                + "backups, exports, Security Rules, bundles, triggers."
        ])
        page.section("COMMANDS")
        for command in Tool.commands { page.command(command) }
        page.section("FILES")
        page.item("hearth.json", "Settings of `hearth serve`, in the folder where it is started.")
        page.item(
            "firebase.json, .firebaserc, firestore.rules, firestore.indexes.json, database.rules.json",
            "Read where projects of Firebase keep them.")
        page.item("hearth-data", "The data folder, unless a setting names another one.")
        page.section("ENVIRONMENT")
        page.item(
            "HEARTH_…",
            "A setting of `hearth serve`: the name of its option in capitals, with underscores, as HEARTH_TLS_CERT for --tls-cert."
        )
        page.item(
            "FIRESTORE_EMULATOR_HOST, FIREBASE_DATABASE_EMULATOR_HOST",
            "The server, for commands that talk to one.")
        return page.string
    }

    /// - Throws: 70 when the clock has no date.
    private static func today() throws(ToolFailure) -> String {
        var seconds = time(nil)
        var parts = tm()
        guard gmtime_r(&seconds, &parts) != nil else { throw ToolFailure(.software, "The clock has no date.") }
        func two(_ number: Int32) -> String { (number < 10 ? "0" : "") + String(number) }
        return "\(1900 + parts.tm_year)-\(two(parts.tm_mon + 1))-\(two(parts.tm_mday))"
    }
}
