package main

import (
	"fmt"
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// phrases are those that the field does not use, and how often six loved Go
// codebases, together as large as the first version, have them.
var phrases = []struct {
	name, pattern string
	anchors       int
}{
	{"what is/was/a", `\bwhat (is|was|are|were|has|a|an)\b`, 5},
	{"tells, told", `\b(tells|told)\b`, 3},
	{"nobody, somebody, whoever", `\b(nobody|somebody|whoever)\b`, 3},
	{"stands", `\bstands\b`, 3},
	{"at most after the number", `\b([0-9]+|[A-Z]|one|two|three)( [a-z]+)? at most\b`, 0},
	{"that of, those of", `\b(that|those) of\b`, 0},
}

var englishRows = func() (rows []row) {
	for _, p := range phrases {
		pattern := regexp.MustCompile(`(?i)` + p.pattern)
		if p.anchors == 0 {
			pattern = regexp.MustCompile(p.pattern)
		}
		rows = append(rows, row{
			"English: " + p.name,
			fmt.Sprintf("in comments, strings and Markdown, and for each 1000 of their lines (anchors %d in a text as long as the first version)", p.anchors),
			func(t *tree) (string, error) {
				text, lines, err := t.prose()
				n := len(pattern.FindAllString(text, -1))
				return fmt.Sprintf("%d (%.1f)", n, 1000*float64(n)/float64(max(lines, 1))), err
			},
		})
	}
	return rows
}()

// prose is the text of the comments and strings of all Go files, the comments
// of Lua, and the Markdown, with its number of lines.
func (t *tree) prose() (text string, lines int, err error) {
	var all strings.Builder
	err = filepath.WalkDir(t.root, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			// This package names the phrases.
			if d.Name() == "testdata" || d.Name() == "structure" || d.Name() == "node_modules" || file != t.root && d.Name()[0] == '.' {
				return filepath.SkipDir
			}
			return nil
		}
		content, err := os.ReadFile(file)
		switch filepath.Ext(file) {
		case ".go":
			write(&all, content)
		case ".md":
			all.Write(content)
		case ".lua":
			for line := range strings.Lines(string(content)) {
				if _, comment, ok := strings.Cut(line, "--"); ok {
					all.WriteString(comment)
				}
			}
		}
		return err
	})
	text = all.String()
	return strings.Join(strings.Fields(text), " "), strings.Count(text, "\n"), err
}

// write adds the comments and strings of a Go file.
func write(all *strings.Builder, source []byte) {
	fset := token.NewFileSet()
	var s scanner.Scanner
	s.Init(fset.AddFile("", -1, len(source)), source, nil, scanner.ScanComments)
	for {
		switch _, tok, text := s.Scan(); tok {
		case token.EOF:
			return
		case token.COMMENT:
			all.WriteString(strings.TrimLeft(text, "/ \t") + "\n")
		case token.STRING:
			all.WriteString(text + "\n")
		}
	}
}
