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
	Headline, Answer, Unit string
	Curve, Demand, Denials template.HTML
}

// HTML writes the report as one page, which needs nothing else.
func (r *Report) HTML(w io.Writer) error {
	var views []view
	for _, t := range r.Tracks {
		v := view{Result: t, Headline: t.headline()}
		if best := t.best(); best != nil {
			v.Answer = t.answer(best)
		}
		var err error
		if v.Curve, err = t.curve(); err != nil {
			return err
		}
		if v.Demand, err = t.demand(); err != nil {
			return err
		}
		if v.Denials, v.Unit, err = t.denied(); err != nil {
			return err
		}
		views = append(views, v)
	}
	return page.Execute(w, map[string]any{"Report": r, "Views": views, "Notes": r.notes(), "Rules": rules()})
}
