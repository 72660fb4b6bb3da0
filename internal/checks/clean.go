package checks

import "slices"

// clean is the result with its texts cleaned.
func (r Result) clean(text func(string) string) Result {
	for _, s := range []*string{&r.Summary, &r.Said, &r.Remedy, &r.Output} {
		*s = text(*s)
	}
	r.Facts = slices.Clone(r.Facts)
	for i, f := range r.Facts {
		r.Facts[i].Text = text(f.Text)
		switch v := f.Value.(type) {
		case string:
			r.Facts[i].Value = text(v)
		case []string:
			v = slices.Clone(v)
			for j := range v {
				v[j] = text(v[j])
			}
			r.Facts[i].Value = v
		}
	}
	return r
}
