/// `hearth bench`
enum BenchCommand {
    static let command = Tool.Command(
        name: "bench", summary: "Measure a server.", help: { "Usage: hearth bench" },
        run: { _ throws(ToolFailure) in throw .usage("Not yet.") })
}
