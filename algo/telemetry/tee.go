package telemetry

// Tee calls the observers one after the other, in the order given; nil ones are
// left out. What one of them panics with keeps the event from those after it.
func Tee(observers ...Observer) Observer {
	var all []Observer
	for _, o := range observers {
		if o != nil {
			all = append(all, o)
		}
	}
	if len(all) == 1 {
		return all[0]
	}
	return func(e Event) {
		for _, o := range all {
			o(e)
		}
	}
}
