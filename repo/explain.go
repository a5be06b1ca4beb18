package repo

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"strings"
)

// errTimeout is the cause of a context that Options.Timeout ended.
var errTimeout = errors.New("timeout")

// explained is an error in words for a person. What it wraps is for errors.Is
// and As only: its own text may hold what must not be shown. It is never
// fs.ErrNotExist: that is a file which the revision does not have, and not one of ours,
// such as the key for ssh, that was missing when the revision was to be read.
type explained struct {
	text  string
	cause error
}

func (e *explained) Error() string { return e.text }

// Is implements what errors.Is asks for.
func (e *explained) Is(target error) bool {
	return target != fs.ErrNotExist && errors.Is(e.cause, target)
}

// As implements what errors.As asks for.
func (e *explained) As(target any) bool { return errors.As(e.cause, target) }

// explain says which repository failed, why, and what to do about it.
func (r *Repo) explain(ctx context.Context, err error) error {
	text := r.reason(ctx, err)
	if ctx.Err() != nil {
		// What broke because of it may not say so.
		err = errors.Join(ctx.Err(), err)
	}
	return &explained{text: fmt.Sprintf("%s (%s): %s", r.options.URL, r.options.Version, brief(r.redact(text), maxText)), cause: err}
}

// reason finds the words for an error. The order matters: what ended the poll
// goes before what broke because of it.
func (r *Repo) reason(ctx context.Context, err error) string {
	switch {
	case errors.Is(context.Cause(ctx), errTimeout):
		return fmt.Sprintf("not done after %s; if the repository is that large or the network that slow, raise TIMEOUT", r.options.Timeout)
	case ctx.Err() != nil:
		return "stopped before it was done"
	case errors.Is(err, fs.ErrNotExist) && r.options.URL.IsFile():
		return err.Error() + "; is the path right, and mounted where kubesync runs?"
	default:
		return err.Error()
	}
}

// redact takes the secrets of this repository out of a text that others had a
// part in.
func (r *Repo) redact(text string) string {
	for _, c := range r.secrets() {
		basic := base64.StdEncoding.EncodeToString([]byte(c.User + ":" + c.Password))
		word := c.Password
		if word == "" {
			word = c.User // a token may be the user's name
		}
		for _, secret := range []string{basic, word, url.QueryEscape(word), url.PathEscape(word)} {
			if secret != "" {
				text = strings.ReplaceAll(text, secret, Credentials{}.String())
			}
		}
	}
	return text
}
