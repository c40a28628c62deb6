// Closures in this file are bound to the main actor and trap on other threads, so the file contains no closure.
Tool.main()
