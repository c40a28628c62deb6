import HearthDocuments
import HearthWire

/// The explanation of a query. Source: google/firestore/v1/query_profile.proto.
enum Explain {
    static func planSummary(_ indexes: [QueryExecution.IndexUse]) -> PlanSummaryMessage {
        PlanSummaryMessage(
            indexesUsed: indexes.map { index in
                StructMessage([
                    ("query_scope", .string(index.isGroupScope ? "Collection group" : "Collection")),
                    ("properties", .string(index.properties)),
                ])
            })
    }

    static func statistics(results: Int, meter: WorkMeter, nanoseconds: UInt64) -> ExecutionStatsMessage {
        let reads = max(1, results)
        return ExecutionStatsMessage(
            resultsReturned: Int64(results),
            executionDuration: DurationMessage(
                seconds: Int64(nanoseconds / 1_000_000_000), nanos: Int32(max(1, nanoseconds % 1_000_000_000))),
            readOperations: Int64(reads),
            debugStats: StructMessage([
                ("index_entries_scanned", .string(String(meter.entriesScanned))),
                ("documents_scanned", .string(String(meter.documentsRead))),
                (
                    "billing_details",
                    .object(
                        StructMessage([
                            ("documents_billable", .string(String(results))),
                            ("index_entries_billable", .string("0")),
                            ("small_ops", .string("0")),
                            ("min_query_cost", .string(results == 0 ? "1" : "0")),
                        ]))
                ),
            ]))
    }
}
