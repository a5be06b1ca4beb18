package server

import (
	"crypto/tls"
	"os"
	"sync"
	"time"

	"github.com/rs/zerolog"
)

// certificate is a certificate that is read again when its files change. A pair that
// cannot be used, as while only one of its files has been replaced, leaves the last
// good one in force.
type certificate struct {
	files KeyPair
	log   zerolog.Logger

	mu      sync.Mutex // guards what follows
	current tls.Certificate
	stamp   [2]fileStamp
	said    string // the last problem
}

// fileStamp differs between two states of a file. A Secret's volume replaces files by
// way of a symlink, so both the time and the file itself count.
type fileStamp struct {
	modified time.Time
	info     os.FileInfo
}

func (s fileStamp) same(other fileStamp) bool {
	return s.info != nil && other.info != nil && s.modified.Equal(other.modified) && s.info.Size() == other.info.Size() && os.SameFile(s.info, other.info)
}

func newCertificate(files KeyPair, log zerolog.Logger) (*certificate, error) {
	c := &certificate{files: files, log: log}
	c.stamp = c.look()
	var err error
	c.current, err = files.Load()
	return c, err
}

// look returns the state of both files.
func (c *certificate) look() (stamps [2]fileStamp) {
	for i, name := range []string{c.files.CertFile, c.files.KeyFile} {
		if info, err := os.Stat(name); err == nil {
			stamps[i] = fileStamp{modified: info.ModTime(), info: info}
		}
	}
	return stamps
}

// get implements tls.Config.GetCertificate.
func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.look()
	if !now[0].same(c.stamp[0]) || !now[1].same(c.stamp[1]) {
		c.reload(now)
	}
	current := c.current
	return &current, nil
}

// reload reads the files; the caller has locked.
func (c *certificate) reload(now [2]fileStamp) {
	fresh, err := c.files.Load()
	if err != nil {
		if c.said != err.Error() {
			c.said = err.Error()
			c.log.Error().Err(err).Msg("cannot use the certificate of LISTEN, the last good one stays in force")
		}
		return
	}
	c.current, c.stamp, c.said = fresh, now, ""
	c.log.Info().Str("certificate", c.files.CertFile).Msg("certificate of LISTEN reloaded")
}
