// Package log writes what syncs come to into the log.
//
// # Flow
//
//  1. [Logger.Observe] takes each report, [Logger.Drift] each correction, [Logger.Unlist] the
//     end of a repo.
//  2. A sync gets a line if it changed something, failed, or ended differently from the one
//     before; what goes on unchanged gets one again when [backoff.Repeat] says so, and at debug
//     level every time.
//  3. Warnings about a revision are logged once.
//  4. [Logger.Run] logs every hour how many repos are in which state.
//
// # Safety
//
// Nothing of a manifest but names, reasons and warnings is logged, and no value of a Secret.
// The writer below masks credentials and escapes control characters.
package log
