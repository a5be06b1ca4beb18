package confine

import (
	"encoding/gob"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// launch becomes the program of the job it reads, confined if the job says so. It
// comes back only if that failed, and has then reported to its parent why.
func launch(in, out *os.File) int {
	var todo job
	if err := gob.NewDecoder(in).Decode(&todo); err != nil {
		return 1
	}
	// Files that the daemon has from whoever started it are not for the program.
	if err := unix.CloseRange(fromParent, math.MaxInt32, unix.CLOSE_RANGE_CLOEXEC); err != nil && todo.Reach != nil {
		return report(out, ending{Failure: fmt.Sprintf("confine it: close files: %v", err)})
	}
	// What follows is for the thread that becomes the program.
	runtime.LockOSThread()
	if err := todo.Most.impose(); err != nil {
		return report(out, ending{Failure: fmt.Sprintf("limit what it may use: %v", err)})
	}
	if todo.Reach != nil {
		err := todo.Reach.confine()
		if err == nil {
			err = forbidCalls()
		}
		if err != nil {
			return report(out, ending{Failure: fmt.Sprintf("confine it: %v", err)})
		}
	}
	err := become(todo.Path, todo.Args, todo.Env)
	if errors.Is(err, syscall.ENOEXEC) {
		// A script without a #! line is run by sh, as every shell would.
		err = syscall.Exec("/bin/sh", append([]string{"sh", todo.Path}, todo.Args[1:]...), todo.Env)
	}
	return report(out, ending{
		Failure: err.Error(),
		Missing: errors.Is(err, fs.ErrNotExist),
		Denied:  errors.Is(err, fs.ErrPermission),
	})
}

// busyWait is how long a program may be busy.
const busyWait = 2 * time.Second

// become becomes a program that may still be open for writing elsewhere: what the
// daemon forks for another repo just while it checks this one out holds the file
// for the moment until it has become its own program (golang.org/issue/22315).
func become(path string, args, env []string) error {
	for deadline := time.Now().Add(busyWait); ; time.Sleep(5 * time.Millisecond) {
		err := syscall.Exec(path, args, env)
		if !errors.Is(err, syscall.ETXTBSY) || time.Now().After(deadline) {
			return err
		}
	}
}
