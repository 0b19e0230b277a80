package distributed

import (
	"embed"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/distributed/internal/remote"
)

//go:embed *.lua
var files embed.FS

func lua(names ...string) (text string) {
	for _, name := range names {
		text += string(algo.Must(files.ReadFile(name + ".lua")))
	}
	return text
}

// prelude returns the beginning of the scripts that are made at run time.
var prelude = func() string { return lua("clock", "prelude") }

// scripts lists the scripts of limits that [Store.Ping] loads: all but those with the floors of shares.
var scripts []*remote.Script

var (
	pingScript          = remote.NewScript("ping", func() string { return lua("ping") }, 1, 1)
	heartbeatScript     = remote.NewScript("heartbeat", func() string { return lua("heartbeat") }, 4, 3)
	bucketScript        = limitScript("bucket", 6, 3, "", "clock", "bucketfirst", "prelude", "bucket")
	fixedWindowScript   = limitScript("fixed window", 7, 3, "", "clock", "prelude", "fixedwindow")
	slidingWindowScript = limitScript("sliding window", 6, 5, "", "clock", "prelude", "slidingwindow")
	logScript           = limitScript("sliding log", 7, 5, "local KIND, LOG = 'w', true\n", "clock", "prelude", "unitset")
	inFlightScript      = script("in-flight limit", 7, 5, "local KIND, LOG = 'v', false\n", "clock", "prelude", "unitset")
	warmupScript        = limitScript("smooth warming up", 7, 3, "", "clock", "prelude", "warmup")
	creditsScript       = script("credits", 3, 2, "", "clock", "prelude", "credits")
	regionScript        = limitScript("region", 7, 5, "", "clock", "prelude", "region")
	learnedScript       = script("learned", 7, 3, "", "clock", "prelude", "learned")
)

// script makes a script from the files names, with constants before the last one.
func script(name string, args, replies int, constants string, names ...string) *remote.Script {
	last := len(names) - 1
	s := remote.NewScript(name, func() string { return lua(names[:last]...) + constants + lua(names[last]) }, args, replies)
	scripts = append(scripts, s)
	return s
}

// limitScript makes a script of limits that [NewBan] takes.
func limitScript(name string, args, replies int, constants string, names ...string) *remote.Script {
	s := script(name, args, replies, constants, names...)
	scripts = append(scripts, banScript(s))
	return s
}

// The operations that the first argument of every script names.
const (
	opAcquire    = iota // decide and charge; a cost of 0 is a peek
	opRefund            // give back the part of a charge that still counts
	opForce             // charge whether it fits or not
	opReset             // forget the key's debt
	opBan               // deny everything until a time
	opRenew             // keep units in flight from expiring
	opAcquireAll        // decide about several keys and charge all of them or none
	opPeekAll           // the same without a charge
	_                   // a plan, of earlier versions
	_                   // its credits
	opReserve           // decide, charge and keep a record
	opSettle            // correct a charge by its record
	opLease             // add leased units
	opGiveBack          // give back units that still count, of any charge
)

// The last reply of a key; see [remote.Answer.Flag].
const (
	flagDenied = iota
	flagAdmitted
	flagBanned    // by opBan
	flagWrongType // the key holds the value of another algorithm or program; unchanged
)
