package main

import (
	"context"
	"log/slog"
	"os"
	"time"

	"github.com/go-logr/logr"
	"github.com/rs/zerolog"
	"golang.org/x/term"
	"k8s.io/klog/v2"

	"github.com/kubesync/kubesync/sync/config"
)

// newLogger returns the log on standard error: for people on a terminal, else
// JSON. No secret that is known gets past it.
func newLogger(settings config.Config) zerolog.Logger {
	out := settings.Redactor.Writer(os.Stderr)
	console := settings.LogFormat == config.LogConsole || settings.LogFormat == config.LogAuto && term.IsTerminal(int(os.Stderr.Fd()))
	if console {
		out = zerolog.ConsoleWriter{Out: out, NoColor: !colour(os.Stderr), TimeFormat: time.DateTime}
	}
	return zerolog.New(out).Level(settings.LogLevel).With().Timestamp().Logger()
}

// colour reports whether a stream wants colours: a terminal, unless NO_COLOR is set.
func colour(stream *os.File) bool {
	return os.Getenv("NO_COLOR") == "" && term.IsTerminal(int(stream.Fd()))
}

// routeForeignLogs has what client-go and the standard library log appear in our
// log, at debug level: what matters of it comes back as errors, and is logged there.
// What it considers verbose never does, whatever our level: from V(8) on client-go
// would log the bodies of requests and answers, Secrets included.
func routeForeignLogs(log zerolog.Logger) {
	handler := demoted{zerolog.NewSlogHandler(log)}
	klog.SetLoggerWithOptions(logr.FromSlogHandler(handler), klog.ContextualLogger(true))
	slog.SetDefault(slog.New(handler))
}

// demoted is a handler that takes what is not verbose, as if it were at debug level.
type demoted struct{ slog.Handler }

// Enabled implements slog.Handler.
func (d demoted) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelInfo && d.Handler.Enabled(ctx, slog.LevelDebug)
}

// Handle implements slog.Handler.
func (d demoted) Handle(ctx context.Context, record slog.Record) error {
	record.Level = slog.LevelDebug
	return d.Handler.Handle(ctx, record)
}

// WithAttrs implements slog.Handler.
func (d demoted) WithAttrs(attrs []slog.Attr) slog.Handler {
	return demoted{d.Handler.WithAttrs(attrs)}
}

// WithGroup implements slog.Handler.
func (d demoted) WithGroup(name string) slog.Handler { return demoted{d.Handler.WithGroup(name)} }
