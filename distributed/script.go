package distributed

import (
	"embed"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/internal/remote"
)

//go:embed *.lua
var files embed.FS

// lua is the text of a file.
func lua(name string) string { return string(algo.Must(files.ReadFile(name + ".lua"))) }

var (
	clockSource         = lua("clock")
	functions           = lua("prelude")
	prelude             = clockSource + functions
	pingScript          = remote.NewScript("ping", lua("ping"), 1, 1)
	heartbeatScript     = remote.NewScript("heartbeat", lua("heartbeat"), 4, 3)
	bucketScript        = remote.NewScript("bucket", clockSource+lua("bucketfirst")+functions+lua("bucket"), 6, 3)
	fixedWindowScript   = remote.NewScript("fixed window", prelude+lua("fixedwindow"), 7, 3)
	slidingWindowScript = remote.NewScript("sliding window", prelude+lua("slidingwindow"), 6, 5)
	logScript           = remote.NewScript("sliding log", prelude+"local KIND, LOG = 'w', true\n"+lua("unitset"), 7, 5)
	inFlightScript      = remote.NewScript("in-flight limit", prelude+"local KIND, LOG = 'v', false\n"+lua("unitset"), 7, 5)
	creditsScript       = remote.NewScript("credits", prelude+lua("credits"), 3, 2)
	regionScript        = remote.NewScript("region", prelude+lua("region"), 7, 5)
	learnedScript       = remote.NewScript("learned", prelude+lua("learned"), 7, 3)
)

// The operations that the first argument of every script names.
const (
	opAcquire    = iota // decide and charge; a cost of 0 is a peek
	opRefund            // give back the part of a charge that still counts
	opForce             // charge whether it fits or not
	opReset             // forget the key's debt
	opBan               // deny everything for a time
	opRenew             // keep units in flight from expiring
	opAcquireAll        // decide about several keys and charge all of them or none
	opPeekAll           // the same without a charge
	_                   // a plan, of earlier versions
	_                   // its credits
	opReserve           // decide, charge and keep a record
	opSettle            // correct a charge by its record
	opLease             // add units that were leased
	opGiveBack          // give back units that still count, of whatever charge
)

// The last reply of a key; see [remote.Answer.Flag].
const (
	flagDenied = iota
	flagAdmitted
	flagBanned    // by opBan
	flagWrongType // the key holds the value of another algorithm or program, and is left alone
)
