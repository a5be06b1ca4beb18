package repo

import (
	"os"
	"path/filepath"
	"testing"
)

func TestOriginName(t *testing.T) {
	t.Parallel()
	remote := func(url string) map[string]string {
		return map[string]string{".git/HEAD": "ref: refs/heads/master\n", ".git/config": "[remote \"origin\"]\n\turl = " + url + "\n"}
	}
	tests := map[string]struct {
		files map[string]string
		dir   string
		want  string
		fails bool
	}{
		"https":           {files: remote("https://joe:secret@git.example.com/team/site.git"), want: "site"},
		"without .git":    {files: remote("https://git.example.com/team/site/"), want: "site"},
		"scp-like":        {files: remote("git@git.example.com:team/site.git"), want: "site"},
		"a shorthand":     {files: remote("gh:site"), want: "site"},
		"a path":          {files: remote("/srv/git/site.git"), want: "site"},
		"a relative path": {files: remote("../site"), want: "site"},
		"another scheme":  {files: remote("svn://example.com/site"), want: ""},
		"another remote": {
			files: map[string]string{".git/HEAD": "ref: refs/heads/master\n", ".git/config": "[remote \"upstream\"]\n\turl = https://h/site\n"},
		},
		"no config": {files: map[string]string{".git/HEAD": "ref: refs/heads/master\n"}},
		"no .git":   {files: map[string]string{"a.yaml": ""}},
		"not there": {dir: "absent"},
		"a linked one": {files: map[string]string{
			"main/.git/HEAD": "ref: refs/heads/master\n", "main/.git/config": "[remote \"origin\"]\n\turl = https://h/site.git\n",
			"main/.git/worktrees/linked/HEAD": "ref: refs/heads/other\n", "main/.git/worktrees/linked/commondir": "../..\n",
			"linked/.git": "gitdir: ../main/.git/worktrees/linked\n",
		}, dir: "linked", want: "site"},
		"a directory inside": {files: map[string]string{
			".git/HEAD": "ref: refs/heads/master\n", ".git/config": "[remote \"origin\"]\n\turl = https://h/site.git\n", "deploy/a.yaml": "",
		}, dir: "deploy"},
		"damaged": {files: map[string]string{".git/HEAD": "ref: refs/heads/master\n", ".git/config": "[remote \"origin\n"}, fails: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			top := t.TempDir()
			for file, content := range test.files {
				path := filepath.Join(top, file)
				if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			url, err := ParseURL("file://" + filepath.Join(top, test.dir))
			if err != nil {
				t.Fatal(err)
			}
			if got, err := url.OriginName(); got != test.want || (err != nil) != test.fails {
				t.Errorf("got %q, %v; want %q", got, err, test.want)
			}
		})
	}
	remoteURL, err := ParseURL("https://git.example.com/team/app.git")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := remoteURL.OriginName(); got != "" || err != nil {
		t.Errorf("a repository elsewhere: %q, %v", got, err)
	}
}
