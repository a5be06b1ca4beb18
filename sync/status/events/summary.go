package events

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/kubesync/kubesync/apply"
	"github.com/kubesync/kubesync/sync"
)

// summarize says what a sync came to; reason is "" for what is no event.
func summarize(report sync.Report) (kind, reason, text string) {
	problem := ""
	if err := report.Problem(); err != nil {
		problem = err.Error()
	}
	switch state := report.State(); {
	case state == sync.Interrupted, state == sync.Progressing:
		return "", "", ""
	case state == sync.Failed:
		return corev1.EventTypeWarning, Failed, problem
	case state == sync.Partial:
		return corev1.EventTypeWarning, Partial, report.Result.Summary() + ": " + problem
	case state == sync.Unhealthy:
		return corev1.EventTypeWarning, Unhealthy, problem
	case state == sync.Suspended:
		return corev1.EventTypeWarning, Suspended, report.Result.Suspended
	case report.Result.PruneHeld != "":
		return corev1.EventTypeWarning, PruneHeld, report.Result.PruneHeld
	}
	return corev1.EventTypeNormal, Synced, report.Result.Summary()
}

// headline names the revision that a sync was about.
func headline(report sync.Report) string {
	if report.Revision.ID == "" || report.Err != nil { // an error names it itself
		return ""
	}
	return "revision " + report.Revision.Short() + ": "
}

// objectReasons are the reasons of events about single objects, by what became of
// them. What is pending is not there yet.
func objectReasons() map[apply.Action]string {
	return map[apply.Action]string{apply.Blocked: Blocked, apply.Failed: ApplyFailed, apply.Refused: Refused}
}
