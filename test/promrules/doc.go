// Package promrules proves the alerts and the dashboard of deploy/components/monitoring
// with Prometheus itself: its rules fire and end on made-up series as they should, and
// nothing asks for a metric that kubesync does not have. It is a module of its own, so
// that Prometheus is no dependency of the program.
package promrules
