package report

import (
	_ "embed"
	"html/template"
	"io"
)

//go:embed page.html
var pageText string

var page = template.Must(template.New("page").Funcs(template.FuncMap{
	"group": group, "percent": percent, "percentOf": percentOf, "span": span,
	"share": func(part, of int64) string { return percent(share(part, of)) },
}).Parse(pageText))

// view is a result with its pictures.
type view struct {
	*Result
	Headline, Answer       string
	Curve, Demand, Denials *picture
}

// HTML writes the report as one page, which needs nothing else.
func (r *Report) HTML(w io.Writer) error {
	var views []view
	for _, t := range r.Tracks {
		v := view{Result: t, Headline: t.headline()}
		if best := t.best(); best != nil {
			v.Answer = t.answer(best)
		}
		for to, draw := range map[**picture]func() (*picture, error){&v.Curve: t.curve, &v.Demand: t.demand, &v.Denials: t.denied} {
			var err error
			if *to, err = draw(); err != nil {
				return err
			}
		}
		views = append(views, v)
	}
	light, inTheDark := rules()
	return page.Execute(w, map[string]any{"Report": r, "Views": views, "Notes": r.notes(), "Light": light, "Dark": inTheDark})
}
