package sender

import (
	"errors"
	"net/http"
	"testing"
	"time"
)

func TestJudge(t *testing.T) {
	t.Parallel()
	failed := errors.New("failed")
	for name, c := range map[string]struct {
		code  int
		after string
		want  error
	}{
		"well":        {http.StatusCreated, "", nil},
		"refused":     {http.StatusForbidden, "7", failed},
		"redirect":    {http.StatusFound, "7", failed},
		"busy":        {http.StatusTooManyRequests, "7", &Later{failed, 7 * time.Second}},
		"broken":      {http.StatusBadGateway, "", &Later{failed, 0}},
		"slow":        {http.StatusRequestTimeout, "-3", &Later{failed, 0}},
		"a date":      {http.StatusServiceUnavailable, "Fri, 31 Dec 1999 23:59:59 GMT", &Later{failed, 0}},
		"for an hour": {http.StatusServiceUnavailable, "3600", &Later{failed, 5 * time.Minute}},
	} {
		got := Judge(&http.Response{StatusCode: c.code, Header: http.Header{"Retry-After": {c.after}}}, failed)
		var is, want *Later
		switch {
		case !errors.As(c.want, &want):
			if !errors.Is(got, c.want) || errors.As(got, &is) {
				t.Errorf("%s: got %#v, want %v", name, got, c.want)
			}
		case !errors.As(got, &is) || *is != *want || !errors.Is(got, failed):
			t.Errorf("%s: got %#v, want %#v", name, got, want)
		}
	}
}
