package metrics

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/rs/zerolog"
)

// mostScrapes is how many are answered at a time; more than one Prometheus may look,
// but no one shall keep a process busy with it.
const mostScrapes = 4

// Handler answers GET /metrics with what is registered, in the text format or, where
// asked for, OpenMetrics. What cannot be gathered is logged, and the rest served.
func Handler(registry *prometheus.Registry, log zerolog.Logger) http.Handler {
	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{
		ErrorLog:            complaints{log},
		ErrorHandling:       promhttp.ContinueOnError,
		MaxRequestsInFlight: mostScrapes,
		EnableOpenMetrics:   true,
	})
}

// complaints writes promhttp's errors to the log.
type complaints struct{ log zerolog.Logger }

// Println implements promhttp.Logger.
func (c complaints) Println(v ...any) {
	c.log.Error().Interface("problem", v).Msg("cannot gather all metrics")
}

// Registry returns a registry that has the metrics of the Go runtime and the process.
func Registry() *prometheus.Registry {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return registry
}
