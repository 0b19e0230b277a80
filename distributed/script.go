package distributed

import (
	_ "embed"

	"github.com/sluice-go/sluice/internal/remote"
)

//go:embed ping.lua
var pingSource string

//go:embed prelude.lua
var prelude string

//go:embed bucket.lua
var bucketSource string

//go:embed fixedwindow.lua
var fixedWindowSource string

//go:embed slidingwindow.lua
var slidingWindowSource string

//go:embed credits.lua
var creditsSource string

//go:embed unitset.lua
var unitSetSource string

var (
	pingScript          = remote.NewScript("ping", pingSource, 1, 1)
	bucketScript        = remote.NewScript("bucket", prelude+bucketSource, 6, 3)
	fixedWindowScript   = remote.NewScript("fixed window", prelude+fixedWindowSource, 7, 3)
	slidingWindowScript = remote.NewScript("sliding window", prelude+slidingWindowSource, 6, 5)
	creditsScript       = remote.NewScript("credits", prelude+creditsSource, 3, 2)
	logScript           = remote.NewScript("sliding log", prelude+"local KIND, LOG = 'w', true\n"+unitSetSource, 7, 5)
	inFlightScript      = remote.NewScript("in-flight limit", prelude+"local KIND, LOG = 'v', false\n"+unitSetSource, 7, 5)
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
