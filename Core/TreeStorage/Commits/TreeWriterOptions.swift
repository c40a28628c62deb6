import HearthModel

/// The time slices of a writer.
struct TreeWriterOptions: Sendable {
    var replacementNodesMin = Limits.treeReplacementNodesMin
    var replacementBytesMin = Limits.treeReplacementBytesMin
    var replacementLocationsMax = Limits.treeReplacementLocationsMax
    var compareBytesMax = Limits.treeCompareBytesMax
    var judgeStepsMax = Limits.treeJudgeStepsMax
    var judgeAgainStepsMax = Limits.treeJudgeAgainStepsMax
    var groupCostMax = Limits.treeGroupCostMax
    var groupMilliseconds = Limits.treeGroupMilliseconds
    var slices = SliceBounds()
    let counters = TreeWriterCounters()
}
