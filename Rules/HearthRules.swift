// HearthRules: both languages of Security Rules, compiled once and evaluated from any thread.
//
// - `Ruleset` is Cloud Firestore's language: `Syntax/` reads a source into a tree, `Checks/` finds its errors and
//   warnings, `Program/` compiles it, `Evaluation/` decides over the values of `Values/`.
// - `TreeRuleset` is the Realtime Database's language, all of it in `Database/`.
//
// What rules read comes from the caller: there is no store here. Invariants: any source compiles or is refused with a
// position, and every evaluation ends: `RulesLimits`, `TreeRulesLimits`.
