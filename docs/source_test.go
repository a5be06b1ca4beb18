package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// source is what the Go files of the program, tests left out, hold of text.
type source struct {
	texts []text
	files map[string]*ast.File // by path from root
}

// text is one text in the source: a literal, or several joined by +, where what is no
// literal is a gap.
type text struct{ value string }

const gap = "\x00"

// readSource parses the program.
func readSource(t *testing.T) source {
	t.Helper()
	read := source{files: map[string]*ast.File{}}
	set := token.NewFileSet()
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		if entry.IsDir() {
			switch name := entry.Name(); {
			case relative == "test", relative == "scripts", relative == "bin", name == "testdata",
				relative != "." && strings.HasPrefix(name, "."):
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		read.files[filepath.ToSlash(relative)] = file
		read.collect(file)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return read
}

// collect takes the texts of a file, but for imports and tags.
func (s *source) collect(file *ast.File) {
	ast.Inspect(file, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.Field:
			return node.Tag == nil
		case *ast.BinaryExpr:
			if value := joined(node); strings.Trim(value, gap) != "" {
				s.texts = append(s.texts, text{value})
				return hasGap(value)
			}
		case *ast.BasicLit:
			if node.Kind == token.STRING {
				s.texts = append(s.texts, text{unquote(node)})
			}
		}
		return true
	})
}

// hasGap reports whether a text has parts that may hold further texts.
func hasGap(value string) bool { return strings.Contains(value, gap) }

// joined returns the text of an expression, with gaps for what is no literal.
func joined(expression ast.Expr) string {
	switch expression := expression.(type) {
	case *ast.BasicLit:
		if expression.Kind == token.STRING {
			return unquote(expression)
		}
	case *ast.BinaryExpr:
		if expression.Op == token.ADD {
			return joined(expression.X) + joined(expression.Y)
		}
	}
	return gap
}

func unquote(literal *ast.BasicLit) string {
	value, err := strconv.Unquote(literal.Value)
	if err != nil {
		return ""
	}
	return value
}

// has reports whether one text of the source has all parts, in their order.
func (s source) has(parts ...string) bool {
	return slices.ContainsFunc(s.texts, func(t text) bool { return t.has(parts) })
}

// has reports whether the text has all parts, in their order.
func (t text) has(parts []string) bool {
	rest := t.value
	for _, part := range parts {
		_, after, found := strings.Cut(rest, part)
		if !found {
			return false
		}
		rest = after
	}
	return true
}

// arguments returns the first arguments that functions of these names are called with,
// in a folder, as far as they are literals.
func (s source) arguments(folder string, functions ...string) []string {
	var found []string
	for path, file := range s.files {
		if filepath.ToSlash(filepath.Dir(path)) != folder {
			continue
		}
		ast.Inspect(file, func(node ast.Node) bool {
			call, ok := node.(*ast.CallExpr)
			if !ok || len(call.Args) == 0 {
				return true
			}
			name, ok := call.Fun.(*ast.Ident)
			literal, isText := call.Args[0].(*ast.BasicLit)
			for _, function := range functions {
				if ok && isText && name.Name == function {
					found = append(found, unquote(literal))
				}
			}
			return true
		})
	}
	return found
}

// constants returns the values of a file's exported constants that are texts.
func (s source) constants(t *testing.T, path string) []string {
	t.Helper()
	file := s.files[path]
	if file == nil {
		t.Fatalf("there is no %s", path)
	}
	var values []string
	for _, declaration := range file.Decls {
		general, ok := declaration.(*ast.GenDecl)
		if !ok || general.Tok != token.CONST {
			continue
		}
		for _, spec := range general.Specs {
			value := spec.(*ast.ValueSpec)
			for i, name := range value.Names {
				if literal, ok := value.Values[i].(*ast.BasicLit); ok && name.IsExported() && literal.Kind == token.STRING {
					values = append(values, unquote(literal))
				}
			}
		}
	}
	return values
}

// read returns the content of a file.
func read(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
