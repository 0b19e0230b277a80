package telemetry

// Tee returns an observer that calls the observers in the given order, without
// nil ones. If one panics, those after it do not get the event.
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
