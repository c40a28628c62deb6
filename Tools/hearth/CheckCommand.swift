import HearthToolSupport
import HearthModel
import HearthServer

/// `hearth check`
enum CheckCommand {
    static let command = ToolCommand(
        name: "check", summary: "Verify a data folder.", options: options, help: { help },
        run: { arguments throws(ToolFailure) in try run(arguments) })

    private static let options: [Option] = [
        Option("data", "FOLDER", "Folder of the data. Default: the one that `hearth serve` would use here."),
        Option("repair", nil, "Rebuild index entries that disagree with documents, and count events anew."),
        Option("accept-lost-logs", nil, "Go on without the commits of logs that are missing; they are lost then."),
    ]

    private static let help = """
        Usage: hearth check [options]

        Reads every database of a data folder that no server uses, and compares documents, index entries, the change
        feed and deletions with each other, the trees of the Realtime Database with their index entries, and the files
        with their own checksums and structure.

        \(OptionHelp.string(options))

        Nothing is changed without --repair. With it index entries are added, corrected and removed until they agree
        with the documents, and wrong counts of triggers' events are counted anew at the next start; documents and the
        feed are never changed. What is still wrong afterwards is listed: restore a backup then.

        A database whose log (the folder DATABASE.sqlite-log) is missing is not opened, because the last commits were there.
        With --accept-lost-logs it goes on as it was before them.

        Exit codes: 0 everything is sound (or was repaired), 1 there are problems, 64 wrong usage, 73 the data folder
        can't be used: it is none, a server uses it, its format is newer.
        """

    private static let advice =
        " `hearth check --repair` rebuilds index entries from documents, and has triggers' events counted anew."

    private static func run(_ arguments: [String]) throws(ToolFailure) {
        let parsed = try ParsedOptions(arguments, options: options)
        let folder = try folder(parsed)
        let isRepairing = parsed.flag("repair")
        let results: [DatabaseCheck]
        do throws(Status) {
            if parsed.flag("accept-lost-logs") {
                for (name, notice) in try Stores.acceptLostLogs(in: folder) { Output.line("\(name): \(notice)") }
            }
            results = try DatabaseCheck.all(in: folder, hasDatabases: true, isRepairing: isRepairing)
        } catch {
            throw ToolFailure(.data, error.message)
        }
        Output.line(CheckReport.block(results, folder: StartMessage.absolute(folder) ?? folder))
        let failures = results.filter { !$0.isSound }
        if failures.isEmpty { return }
        let canRepair = !isRepairing && failures.contains { $0.isRepairable }
        throw ToolFailure(
            .failed,
            "\(failures.count) of \(CheckReport.count(results.count, "database")) "
                + (failures.count == 1 ? "has problems." : "have problems.")
                + (canRepair ? Self.advice : ""))
    }

    private static func folder(_ parsed: ParsedOptions) throws(ToolFailure) -> String {
        if let given = parsed.string("data") { return given }
        if let folder = try ServeResolution.settings([], environment: Environment.all).dataFolder { return folder }
        throw .usage("The settings here keep data in memory; name a folder with --data.")
    }
}
