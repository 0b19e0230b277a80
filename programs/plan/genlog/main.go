// Genlog writes the access log of a day of a shop that does not exist: browsers that load pages,
// apps that poll, offices behind one address, partners with a nightly batch, a scraper, and a script that
// runs in a loop for ten minutes. The same flags give the same log.
package main

import (
	"bufio"
	"cmp"
	"flag"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"time"
)

func main() {
	lines := flag.Int("lines", 1_000_000, "`number` of lines")
	users := flag.Int("users", 30_000, "`number` of users, each with an address")
	format := flag.String("format", "combined", "combined (of nginx, with the request's time behind it), or json (of nginx, with milliseconds)")
	seed := flag.Uint64("seed", 72, "`seed` of the random numbers")
	flag.Parse()
	if *lines < 1 || *users < 1 || *format != "combined" && *format != "json" {
		fmt.Fprintln(os.Stderr, "genlog: want 1 line or more, 1 user or more, and the format combined or json")
		os.Exit(2)
	}
	out := bufio.NewWriterSize(os.Stdout, 1<<20)
	d := newDay(*lines, *users, *seed)
	if err := d.write(out, *format == "json"); err != nil {
		fmt.Fprintln(os.Stderr, "genlog:", err)
		os.Exit(1)
	}
}

// midnight is when the day begins.
var midnight = time.Date(2026, 11, 27, 0, 0, 0, 0, time.UTC)

// request is a line. Times are in ms.
type request struct {
	at     int32 // arrival since midnight
	took   int32
	client int32
	path   uint16
	status uint16
}

// day is the requests of a day.
type day struct {
	rnd      *rand.Rand
	users    int
	requests []request
}

// Clients with a fixed behavior come after the users.
const (
	offices  = 12
	partners = 8
	scraper  = offices + partners
	looping  = scraper + 1
	actors   = looping + 1
)

var paths = [...]string{
	"/", "/api/cart", "/api/items", "/api/items/%d", "/api/search?q=%d", "/api/prices?id=%d", "/api/me", "/api/reviews/%d", "/api/stock/%d", "/api/orders", "/api/feed", "/api/export?page=%d",
}

func newDay(lines, users int, seed uint64) *day {
	d := &day{rnd: rand.New(rand.NewPCG(seed, 1)), users: users, requests: make([]request, 0, lines)}
	d.partners(lines)
	d.scraper(lines)
	d.offices(lines)
	per := max(lines/users, 1) // requests of a user
	for i := 0; len(d.requests) < lines; i++ {
		user := i
		if i >= users { // some come back
			user = int(float64(users) * math.Pow(d.rnd.Float64(), 2))
		}
		if d.rnd.IntN(4) == 0 {
			d.app(int32(user), per)
		} else {
			d.browser(int32(user), d.daytime(), 1+d.rnd.IntN(max(per/8, 1)))
		}
	}
	d.requests = d.requests[:lines]
	return d
}

// add is a request, if it is of this day.
func (d *day) add(client int32, at float64, path int) {
	if at < 0 || at >= 86400 {
		return
	}
	took := 3 + 20*d.rnd.ExpFloat64()
	if d.rnd.IntN(50) == 0 {
		took *= 20
	}
	status := 200
	switch d.rnd.IntN(200) {
	case 0:
		status = 404
	case 1:
		status = 304
	case 2:
		status = 500
	}
	d.requests = append(d.requests, request{int32(at * 1000), int32(took), client, uint16(path), uint16(status)})
}

// daytime is a random second, more often in the evening than at night.
func (d *day) daytime() float64 {
	for {
		at := d.rnd.Float64() * 86400
		if d.rnd.Float64() < .55-.45*math.Cos(2*math.Pi*(at/86400-.15)) {
			return at
		}
	}
}

// browser loads pages: a document, then several calls at once, then the user reads.
func (d *day) browser(client int32, at float64, pages int) {
	for range pages {
		d.add(client, at, 0)
		at += .05 + .1*d.rnd.Float64()
		for range 3 + d.rnd.IntN(8) {
			d.add(client, at, 1+d.rnd.IntN(9))
			at += .06 * d.rnd.ExpFloat64()
		}
		at += 4 + 25*d.rnd.ExpFloat64()
	}
}

// app polls, and asks for everything that it has missed when it is opened.
func (d *day) app(client int32, requests int) {
	at := d.daytime()
	for range min(6+d.rnd.IntN(10), requests) {
		d.add(client, at, 1+d.rnd.IntN(9))
		at += .02 * d.rnd.ExpFloat64()
	}
	for range requests / 2 {
		at += 30 + d.rnd.Float64()
		d.add(client, at, 10)
	}
}

// offices are many users behind one address each.
func (d *day) offices(lines int) {
	for i := range offices {
		for range lines * 5 / 1000 / offices / 25 {
			d.browser(int32(d.users+i), 8*3600+d.rnd.Float64()*9*3600, 3+d.rnd.IntN(3))
		}
	}
}

// partners ask for prices all day, and export everything at night.
func (d *day) partners(lines int) {
	for i := range partners {
		client := int32(d.users + offices + i)
		pause := 86400 / (float64(lines) * .004)
		for at := d.rnd.Float64() * pause; at < 86400; at += pause * (.5 + d.rnd.Float64()) {
			d.add(client, at, 5)
		}
		at := 2*3600 + float64(i)*600
		for range lines / 2500 {
			d.add(client, at, 11)
			at += .03 + .02*d.rnd.Float64()
		}
	}
}

// scraper reads all items for three hours; another client asks again at once, for ten minutes.
func (d *day) scraper(lines int) {
	for range lines * 3 / 100 {
		d.add(int32(d.users+scraper), 3*3600+d.rnd.Float64()*3*3600, 3)
	}
	for range lines / 100 {
		d.add(int32(d.users+looping), 14*3600+d.rnd.Float64()*600, 6)
	}
}

// write writes the lines in the order in which the requests end.
func (d *day) write(out *bufio.Writer, asJSON bool) error {
	slices.SortStableFunc(d.requests, func(a, b request) int { return cmp.Compare(a.at+a.took, b.at+b.took) })
	for _, r := range d.requests {
		if err := d.writeOne(out, r, asJSON); err != nil {
			return err
		}
	}
	return out.Flush()
}

func (d *day) writeOne(out io.Writer, r request, asJSON bool) (err error) {
	path := paths[r.path]
	if path[len(path)-1] == 'd' {
		path = path[:len(path)-2] + strconv.Itoa(d.rnd.IntN(5000))
	}
	end := midnight.Add(time.Duration(r.at+r.took) * time.Millisecond)
	agent := "Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0"
	if int(r.client) >= d.users+offices {
		agent = "python-requests/2.32.5"
	}
	if asJSON {
		_, err = fmt.Fprintf(out, `{"time":"%s","msec":%.3f,"remote_addr":"%s","remote_user":"%s","method":"GET","uri":"%s","status":%d,"bytes":%d,"request_time":%.3f,"user_agent":"%s"}`+"\n",
			end.Format(time.RFC3339), float64(end.UnixMilli())/1000, address(r.client), user(r.client), path, r.status, 200+r.took*7, float64(r.took)/1000, agent)
		return err
	}
	name := user(r.client)
	_, err = fmt.Fprintf(out, "%s - %s [%s] \"GET %s HTTP/1.1\" %d %d \"-\" \"%s\" %.3f\n",
		address(r.client), cmp.Or(name, "-"), end.Format("02/Jan/2006:15:04:05 -0700"), path, r.status, 200+r.took*7, agent, float64(r.took)/1000)
	return err
}

// address is the address of a client, in networks that are private or for documentation.
func address(client int32) string {
	n := uint32(client) * 2654435761 >> 8 // each number once below 2^24
	if client%5 == 0 {
		return fmt.Sprintf("2001:db8:%x:%x::%x", n>>16, n&0xffff, 1+client%7)
	}
	return fmt.Sprintf("10.%d.%d.%d", n>>16, n>>8&0xff, n&0xff)
}

// user is the name of a client, empty if it is not signed in.
func user(client int32) string {
	if client%3 == 0 {
		return ""
	}
	return "u" + strconv.Itoa(int(client))
}
