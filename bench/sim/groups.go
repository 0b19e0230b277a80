package sim

import "fmt"

// Group is a set of scenarios that are shown together.
type Group struct {
	Title     string
	Scenarios []Scenario
}

// mostRequests is about how many requests a run on other numbers of cores has.
const mostRequests = 150000

// Groups are all scenarios.
func Groups() []Group {
	all := []Group{
		{"Shared cores, 4 of them", Classic()},
		{"Other servers", Servers()},
		{"Other clients", Clients()},
		{"A Go server on one core", Processes()},
		{"Bursts and closed loops that drain within the SLO", Harmless()},
		{"A Go server with batches of requests, or a neighbour", Uneven()},
	}
	var many []Scenario
	for _, cores := range []int{2, 8, 64} {
		for h, handler := range Handlers {
			if handler.mean() < float64(cores)*float64(50*us) {
				continue // too many requests
			}
			for _, x := range []float64{.85, 5} {
				many = append(many, on(Process(h, x), cores))
			}
		}
	}
	all = append(all, Group{"A Go server on 2, 8 and 64 cores", many})
	for _, cores := range []int{1, 2, 8, 64} {
		g := Group{Title: fmt.Sprintf("Shared cores, %d", cores)}
		for _, s := range append(Classic(), Servers()...) {
			if cores > 10 && s.Service.mean() < float64(ms) {
				continue
			}
			g.Scenarios = append(g.Scenarios, on(s, cores))
		}
		all = append(all, g)
	}
	return all
}

// on is a scenario on another number of cores, under another name.
func on(s Scenario, cores int) Scenario {
	s = s.OnCores(cores, mostRequests)
	s.ID = fmt.Sprintf("%s@%d", s.ID, cores)
	s.About = fmt.Sprintf("%s; %d cores", s.About, cores)
	return s
}
