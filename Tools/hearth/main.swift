// Closures written in this file are bound to the main actor and trap on other threads, so nothing is written here.
Tool.main()
