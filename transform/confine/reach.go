package confine

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Reach is what a confined process may do with files. Everything else is denied.
type Reach struct {
	// Read may be read and executed, with all that is below.
	Read []string
	// Write may moreover be changed, with all that is below.
	Write []string
}

// systemReads returns what every program may read and execute: the system's
// programs and libraries, what is needed to find and check hosts, users and
// times, and harmless facts about the machine. Of /etc it names single files and
// directories, because secrets are mounted there too; of /proc no process but, in the
// helper, the program's own.
func systemReads() []string {
	return []string{
		"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/usr", "/opt", "/nix/store", "/run/current-system",
		"/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/ld.so.preload", "/etc/ld-musl-x86_64.path", "/etc/ld-musl-aarch64.path", "/etc/alternatives",
		"/etc/ssl", "/etc/pki", "/etc/ca-certificates", "/etc/ca-certificates.conf", "/etc/crypto-policies", "/etc/gnutls", "/var/lib/ca-certificates",
		"/etc/hosts", "/etc/resolv.conf", "/etc/nsswitch.conf", "/etc/host.conf", "/etc/gai.conf", "/etc/services", "/etc/protocols", "/etc/networks",
		"/etc/passwd", "/etc/group", "/etc/os-release", "/etc/debian_version", "/etc/alpine-release",
		"/etc/localtime", "/etc/timezone", "/etc/locale.alias", "/etc/locale.conf", "/etc/default/locale", "/etc/terminfo",
		"/etc/gitconfig", "/etc/gitattributes", "/etc/mime.types", "/etc/magic", "/etc/profile", "/etc/bash.bashrc", "/etc/inputrc", "/etc/perl", "/etc/python3",
		"/proc/cpuinfo", "/proc/meminfo", "/proc/stat", "/proc/loadavg", "/proc/uptime", "/proc/version", "/proc/filesystems", "/proc/sys",
		"/sys/devices/system/cpu", "/sys/kernel/mm/transparent_hugepage",
	}
}

// systemWrites returns the devices that hold nothing.
func systemWrites() []string {
	return []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"}
}

// dataPlaces returns the directories that data is kept in: a directory on PATH that
// holds one of them is no program directory.
func dataPlaces() []string {
	return []string{"/proc", "/sys", "/dev", "/run", "/var", "/etc", "/root", "/home", "/tmp"}
}

// Reach returns what a program may do that works in the workspace, and which directories
// it may not read although other programs may, because something protected is in them.
// program is its absolute path if it is outside the repository, searchPath the value of
// PATH.
//
// A program outside the repository may be read itself, but not what lies beside it,
// which may be anything. Directories on PATH count as program directories. A program in
// the repository gives no right to read what it is a link to: the repository says that.
func (w *Workspace) Reach(program, searchPath string, protected []string) (r Reach, withheld []string) {
	secret := resolvePaths(append([]string{w.dir, "/var/run/secrets", "/run/secrets"}, protected...))
	candidates := systemReads()
	for _, dir := range filepath.SplitList(searchPath) {
		if filepath.IsAbs(dir) && !holds(dir, dataPlaces()) && !below(filepath.Clean(dir), "/proc") {
			candidates = append(candidates, filepath.Clean(dir))
		}
	}
	if program != "" && !inside(program, secret) {
		r.Read = []string{program}
	}
	for _, dir := range candidates {
		switch {
		case !holds(dir, secret) && !inside(dir, secret):
			r.Read = append(r.Read, dir)
		case !slices.Contains(withheld, dir):
			withheld = append(withheld, dir)
		}
	}
	r.Write = append([]string{w.Path(InDir), w.Path(OutDir), w.Path(TmpDir)}, systemWrites()...)
	return r, withheld
}

// holds reports whether dir is one of the places or above one of them.
func holds(dir string, places []string) bool {
	return slices.ContainsFunc(resolvePaths([]string{dir}), func(dir string) bool {
		return dir == "/" || slices.ContainsFunc(places, func(place string) bool { return below(place, dir) })
	})
}

// inside reports whether dir is one of the places or below one of them.
func inside(dir string, places []string) bool {
	return slices.ContainsFunc(resolvePaths([]string{dir}), func(dir string) bool {
		return slices.ContainsFunc(places, func(place string) bool { return below(dir, place) })
	})
}

// resolvePaths returns each path as it is and, where it differs, without symbolic
// links; what is not there yet stays as it is.
func resolvePaths(paths []string) []string {
	var all []string
	for _, name := range paths {
		if name == "" {
			continue
		}
		clean, err := filepath.Abs(name)
		if err != nil {
			clean = filepath.Clean(name)
		}
		all = append(all, clean)
		if resolved, err := filepath.EvalSymlinks(clean); err == nil && resolved != clean {
			all = append(all, resolved)
		}
	}
	return all
}

// Readable reports whether a path is inside what may be read, as far as its text says.
func (r Reach) Readable(name string) bool {
	clean := filepath.Clean(name)
	return slices.ContainsFunc(slices.Concat(r.Read, r.Write), func(dir string) bool {
		return below(clean, dir)
	})
}

// kinds splits existing paths into directories and others, which Landlock gives
// different rights. What does not exist is left out.
func kinds(paths []string) (dirs, files []string) {
	for _, name := range paths {
		info, err := os.Stat(name)
		switch {
		case err != nil:
		case info.IsDir():
			dirs = append(dirs, name)
		default:
			files = append(files, name)
		}
	}
	return dirs, files
}

// below reports whether name is dir or inside it.
func below(name, dir string) bool {
	return name == dir || strings.HasPrefix(name, dir+"/")
}
